/** Nodes that exchange notes over in-memory links and an in-memory record network. */
import { NoteKeys } from '../../src/capabilities/notes/note-keys.ts';
import { Notes } from '../../src/capabilities/notes/notes.ts';
import type { KeyDirectory } from '../../src/capabilities/notes/types.ts';
import type { Clock } from '../../src/foundation/clock.ts';
import { unixSeconds } from '../../src/foundation/clock.ts';
import type { EventPayloads, EventType } from '../../src/foundation/events.ts';
import type { Aid } from '../../src/foundation/identity/aid.ts';
import { DelegationVerifier } from '../../src/foundation/identity/delegation-verifier.ts';
import { silentLog } from '../../src/foundation/log.ts';
import { agentKey } from '../../src/foundation/records/keys.ts';
import { signRecord } from '../../src/foundation/records/record.ts';
import { RECORD, type RecordType } from '../../src/foundation/records/types.ts';
import { AgentStore } from '../../src/foundation/store/agents.ts';
import { NoteCopyStore } from '../../src/foundation/store/note-copies.ts';
import { NoteOutboxStore } from '../../src/foundation/store/note-outbox.ts';
import { NoteStore } from '../../src/foundation/store/notes.ts';
import { MIGRATIONS } from '../../src/foundation/store/schema.ts';
import { Store } from '../../src/foundation/store/store.ts';
import type { LocalIdentity } from '../../src/network/links/types.ts';
import type { FlakyNode } from './flaky-links.ts';
import { localIdentity, newIdentity, type TestIdentity } from './identities.ts';
import { idle } from './idle.ts';
import { MemoryRecordHub, MemoryRecordNetwork } from './memory-records.ts';
import { testRecord } from './records.ts';
import { SteppedWorld } from './stepped-world.ts';

export interface TestEvent {
  readonly aid: Aid;
  readonly type: EventType;
  readonly data: EventPayloads[EventType];
}

/** Secrets without a disk. */
export class MemorySecrets {
  readonly secrets = new Map<string, Uint8Array>();

  putSecret(name: string, secret: Uint8Array): void {
    this.secrets.set(name, Uint8Array.from(secret));
  }

  getSecret(name: string): Uint8Array | null {
    return this.secrets.get(name) ?? null;
  }

  delete(name: string): void {
    this.secrets.delete(name);
  }
}

export class MailWorld extends SteppedWorld {
  readonly hub: MemoryRecordHub = new MemoryRecordHub(this.clock);

  async node(
    name: string,
    store: Store = Store.open(':memory:', MIGRATIONS),
    vault = new MemorySecrets(),
  ): Promise<MailNode> {
    const node = new MailNode(this, name, store, vault);
    await node.records.start();
    await node.notes.start();
    return node;
  }
}

export class MailNode {
  readonly world: MailWorld;
  readonly name: string;
  readonly store: Store;
  readonly vault: MemorySecrets;
  readonly links: FlakyNode;
  readonly records: MemoryRecordNetwork;
  readonly notes: Notes;
  readonly agents: AgentStore;
  readonly events: TestEvent[] = [];
  readonly newest = new Map<Aid, number>();
  /** AIDs whose keys were created here recently. */
  readonly made = new Set<Aid>();
  /** Agents that are known to the owner. */
  readonly known = new Set<Aid>();
  /** How far other nodes report this node's clock to be ahead, milliseconds. */
  aheadMs = 0;
  readonly #identities = new Map<Aid, LocalIdentity>();

  constructor(world: MailWorld, name: string, store: Store, vault: MemorySecrets) {
    this.world = world;
    this.name = name;
    this.store = store;
    this.vault = vault;
    this.agents = new AgentStore(store);
    this.links = world.links.node(name);
    this.records = new MemoryRecordNetwork(world.hub);
    this.notes = new Notes({
      store: new NoteStore(store),
      copies: new NoteCopyStore(store),
      outbox: new NoteOutboxStore(store),
      network: this.records,
      links: this.links,
      vault,
      directory: new KeyRecords(this),
      delegations: new DelegationVerifier(),
      events: { emit: (aid, type, data) => this.events.push({ aid, type, data }) },
      clock: world.clock,
      log: silentLog,
      identity: (aid) => this.identity(aid),
      agents: () => ({ aids: [...this.#identities.keys()], next: null }),
      isNew: (aid) => this.made.has(aid),
      isKnown: (_, peer) => this.known.has(peer),
      newestDelegation: (aid) => this.newest.get(aid) ?? 0,
      clockAheadMs: () => this.aheadMs,
      random: () => world.links.random.next(),
    });
  }

  identity(aid: Aid): LocalIdentity | null {
    return this.#identities.get(aid) ?? null;
  }

  /** Hosts an agent and publishes its endpoint and encryption key. */
  async host(agent: TestIdentity = newIdentity()): Promise<TestIdentity> {
    this.register(agent);
    await this.publish(agent);
    return agent;
  }

  /** Registers an agent here. */
  register(agent: TestIdentity, kind: 'registered' | 'rotated' = 'registered'): void {
    const { aid, delegation } = agent;
    const keyName = `${aid} ${delegation.issuedAt}`;
    if (kind === 'rotated') this.notes.beforeRotation(aid);
    this.agents.put({ keyName, delegation, serviceTcp: '', registeredAt: this.world.clock.now() });
    this.#identities.set(aid, localIdentity(agent));
    this.links.agents.add(aid);
    this.notes.agentChanged({ aid, kind });
  }

  async publish(agent: TestIdentity): Promise<void> {
    const timestamp = unixSeconds(this.world.clock);
    const record = testRecord(agent, RECORD.endpoints, { timestamp, seq: timestamp });
    await this.records.put(agentKey(agent.aid), record);
    this.notes.published(record);
    await idle();
  }

  remove(aid: Aid): void {
    this.agents.delete(aid);
    this.#identities.delete(aid);
    this.links.agents.delete(aid);
    this.notes.agentChanged({ aid, kind: 'deleted' });
  }

  /** IDs of the pending notes. */
  waiting(aid: Aid): string[] {
    return this.notes.list(aid, 1000).notes.map((note) => note.messageId);
  }

  /** Reads everything, like a client that confirms. */
  poll(aid: Aid): string[] {
    const all: string[] = [];
    for (;;) {
      const taken = this.notes.take(aid);
      taken.confirm();
      all.push(...taken.notes.map((note) => note.messageId));
      if (!taken.more) return all;
    }
  }

  /** Crashes this node, and starts another one with its data. */
  async restart(store: Store = this.store): Promise<MailNode> {
    await this.down();
    const next = await this.world.node(this.name, store, this.vault);
    for (const [aid, identity] of this.#identities) {
      next.#identities.set(aid, identity);
      next.links.agents.add(aid);
    }
    return next;
  }

  async down(): Promise<void> {
    this.links.crash();
    await this.records.stop();
    await this.notes.stop();
  }
}

/** The part of the directory that notes need: records are signed and stored immediately. */
class KeyRecords implements KeyDirectory {
  readonly #node: MailNode;
  readonly #published = new Map<Aid, { payload: Uint8Array; publishedAt: number }>();

  constructor(node: MailNode) {
    this.#node = node;
  }

  published(aid: Aid) {
    return this.#published.get(aid) ?? null;
  }

  async publishRecord(aid: Aid, type: RecordType, payload: Uint8Array, ttl: number): Promise<void> {
    const identity = this.#node.identity(aid);
    if (identity === null) throw new Error('not hosted');
    const { clock } = this.#node.world;
    const timestamp = unixSeconds(clock);
    const { delegation } = identity;
    await this.#node.records.put(
      agentKey(aid),
      signRecord({ aid, type, seq: timestamp, timestamp, ttl, payload, delegation }, identity),
    );
    this.#published.set(aid, { payload, publishedAt: clock.now() });
  }
}

/** Keys of a node without agents. */
export function keysOfNone(clock: Clock): NoteKeys {
  return new NoteKeys(new MemorySecrets(), clock, () => null);
}
