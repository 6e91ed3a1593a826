/** A node without a network, as source and target of moves. */
import { createHash } from 'node:crypto';
import { AccessLists } from '../../src/capabilities/access/access-lists.ts';
import { AddressBook } from '../../src/capabilities/address-book/address-book.ts';
import { AgentRegistry } from '../../src/capabilities/agents/registry.ts';
import { signEntry } from '../../src/capabilities/groups/entry.ts';
import { Groups } from '../../src/capabilities/groups/groups.ts';
import { Replica } from '../../src/capabilities/groups/replica.ts';
import { type ExportedNoteKey, NoteKeys } from '../../src/capabilities/notes/note-keys.ts';
import { buildMover } from '../../src/daemon/moving.ts';
import { canonicalJson } from '../../src/foundation/cards/canonical-json.ts';
import { signCard } from '../../src/foundation/cards/signature.ts';
import { unixSeconds } from '../../src/foundation/clock.ts';
import type { Aid } from '../../src/foundation/identity/aid.ts';
import { DelegationVerifier } from '../../src/foundation/identity/delegation-verifier.ts';
import { silentLog } from '../../src/foundation/log.ts';
import type { AgentDocument } from '../../src/foundation/moving/agent-document.ts';
import { encodeServicePayload } from '../../src/foundation/records/payloads.ts';
import { AccessRepository } from '../../src/foundation/store/access.ts';
import { AgentStore } from '../../src/foundation/store/agents.ts';
import { CardStore } from '../../src/foundation/store/cards.ts';
import { ChatStore } from '../../src/foundation/store/chat.ts';
import { ChatLog } from '../../src/foundation/store/chat-log.ts';
import { GroupEntryStore } from '../../src/foundation/store/group-entries.ts';
import { GroupStore } from '../../src/foundation/store/groups.ts';
import { MetaStore } from '../../src/foundation/store/meta.ts';
import { NoteOutboxStore } from '../../src/foundation/store/note-outbox.ts';
import { NoteStore } from '../../src/foundation/store/notes.ts';
import { OriginStore } from '../../src/foundation/store/origins.ts';
import { PublicationStore } from '../../src/foundation/store/publications.ts';
import { MIGRATIONS } from '../../src/foundation/store/schema.ts';
import { Store } from '../../src/foundation/store/store.ts';
import { TunnelStore } from '../../src/foundation/store/tunnels.ts';
import { cheapDerivation } from './cheap-scrypt.ts';
import { FlakyNetwork } from './flaky-links.ts';
import { newIdentity, type TestIdentity } from './identities.ts';
import { MemoryVault } from './memory-vault.ts';
import { testSecrets } from './stored-secrets.ts';
import { TestClock } from './test-clock.ts';

/** Keys of both kinds, without a disk. */
class Vault extends MemoryVault {
  readonly secrets = new Map<string, Uint8Array>();

  putSecret(name: string, secret: Uint8Array): void {
    this.secrets.set(name, secret);
  }

  getSecret(name: string): Uint8Array | null {
    return this.secrets.get(name) ?? null;
  }

  override delete(name: string): void {
    super.delete(name);
    this.secrets.delete(name);
  }
}

export class MoverNode {
  readonly clock = new TestClock();
  readonly store = Store.open(':memory:', MIGRATIONS);
  readonly vault = new Vault();
  readonly registry: AgentRegistry;
  readonly accessLists: AccessLists;
  readonly addressBook: AddressBook;
  readonly noteKeys: NoteKeys;
  /** Agents whose export was reported to the directory. */
  readonly exported: Aid[] = [];
  readonly mover: ReturnType<typeof buildMover>;
  /** Agents whose tunnels were reopened. */
  readonly resumed: Aid[] = [];
  /** Agents whose local addresses were opened, and cards that were stored. */
  readonly served: Aid[] = [];
  readonly settled: Aid[] = [];
  /** Agents whose groups were loaded. */
  readonly synced: Aid[] = [];

  constructor() {
    const { store, clock, vault } = this;
    this.registry = new AgentRegistry(
      { nodeAid: newIdentity().aid },
      {
        agents: new AgentStore(store),
        vault,
        clock,
        log: silentLog,
        own: { api: () => ({ host: '127.0.0.1', port: 2121 }), interfaces: () => [], lookup: async () => [] },
        checkTcp: async () => ({ ok: true, ms: 1 }),
      },
    );
    this.accessLists = new AccessLists(new AccessRepository(store), clock, cheapDerivation);
    this.addressBook = new AddressBook(new MetaStore(store));
    this.noteKeys = new NoteKeys(vault, clock, (aid) => this.registry.identity(aid));
    this.mover = buildMover(
      { store, secrets: testSecrets(), clock, delegations: new DelegationVerifier() },
      {
        directory: { exported: (aid) => void this.exported.push(aid) },
        registry: this.registry,
        accessLists: this.accessLists,
        addressBook: this.addressBook,
        notes: {
          discardDelivered: () => {},
          exportSecrets: (aid: Aid) => this.noteKeys.export(aid),
          importSecrets: (aid: Aid, keys: readonly ExportedNoteKey[]) => this.noteKeys.import(aid, keys),
          discardSecrets: (aid: Aid) => this.noteKeys.forget(aid),
        },
        tunnels: {
          resume: async (aid: Aid) => {
            this.resumed.push(aid);
            return [];
          },
        },
        origins: {
          resume: async (aid: Aid) => {
            this.served.push(aid);
            return [];
          },
        },
        ownCards: { complete: async (aid: Aid) => void this.settled.push(aid) },
        groups: { admitted: () => {}, imported: (aid: Aid) => void this.synced.push(aid) },
      },
    );
  }

  /** All stored data, for comparisons. */
  dump(): string {
    const tables = this.store.all("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'");
    const rows = tables.map(({ name }) => [name, this.store.all(`SELECT * FROM ${String(name)}`)]);
    const text = JSON.stringify(rows, (_key, value: unknown) =>
      value instanceof Uint8Array ? Buffer.from(value).toString('hex') : value,
    );
    return `${text} ${[...this.vault.seeds.keys(), ...this.vault.secrets.keys()].sort().join(' ')}`;
  }

  close(): void {
    this.accessLists.stop();
    this.store.close();
  }
}

/** Gives a registered agent data of every kind. */
export async function furnish(node: MoverNode, agent: TestIdentity, peers: readonly TestIdentity[]): Promise<void> {
  const { store, clock } = node;
  const { aid } = agent;
  const [friend = agent, stranger = agent, member = agent] = peers;
  const now = clock.now();
  const publications = new PublicationStore(store);
  publications.claim(aid, now);
  publications.reserve(aid, 41, 1);
  const card = { service: 'test.one', name: 'One', protocols: ['a'], tags: ['b'], brief: 'It', meta: '' };
  publications.put(aid, { type: 0x10, name: 'test.one', payload: encodeServicePayload(card), ttl: 3600 });
  publications.put(aid, { type: 1, name: '', payload: new Uint8Array(), ttl: 3600 });
  publications.put(aid, { type: 7, name: '', payload: Uint8Array.of(1, 2), ttl: 600 });
  await node.accessLists.allow(aid, { aid: friend.aid, label: 'friend' });
  await node.accessLists.allow(aid, { secret: 'open sesame', expiresAt: now + 1000 });
  node.accessLists.deny(aid, stranger.aid);
  node.accessLists.setDefault(aid, 'deny');
  node.addressBook.label(aid, 'mover', 'my mover');
  new TunnelStore(store, testSecrets()).save({
    id: 'ab'.repeat(8),
    localAid: aid,
    remoteAid: friend.aid,
    accessToken: 'token',
    localPort: 4242,
    idleTimeoutSec: -1,
    disableRelay: true,
  });
  const origin = { id: 'cd'.repeat(8), localAid: aid, remoteAid: friend.aid, accessToken: 'token', openedAt: now };
  new OriginStore(store, testSecrets()).save({ ...origin, port: 4343 });
  new AgentStore(store).setEvidence(aid, true);
  furnishCard(node, agent);
  node.noteKeys.secure(aid);
  const note = { aid, sender: friend.aid, msgType: 3, body: Uint8Array.of(7), sentAt: now, receivedAt: now };
  const ids = { messageId: new Uint8Array(32).fill(1), digest: new Uint8Array(8).fill(2), token: new Uint8Array(16) };
  new NoteStore(store).add({ ...note, ...ids }, now + 1000);
  const outgoing = { aid, messageId: new Uint8Array(32), recipient: friend.aid, msgType: 3, body: Uint8Array.of(8) };
  const times = { sentAt: now, until: now + 9, dueAt: now + 5, attempts: 0 };
  new NoteOutboxStore(store).add({ ...outgoing, ...times, nonce: new Uint8Array(16).fill(6) });
  new NoteStore(store).markSeen(aid, new Uint8Array(32).fill(9), now + 500);
  furnishChat(node, aid, friend.aid, stranger.aid);
  await furnishGroups(node, agent, member);
}

/** A signed card of the agent. */
export function furnishCard(node: MoverNode, { aid, delegation, operational }: TestIdentity): void {
  const signedAt = unixSeconds(node.clock);
  const content = { protocolVersion: '0.3.0', url: `svc://${aid}/`, name: 'Mover', skills: [] };
  const signed = signCard(content, { aid, delegation, sign: (bytes) => operational.sign(bytes) }, signedAt);
  const card = canonicalJson(signed);
  const objectId = createHash('sha256').update(card).digest('hex');
  new CardStore(node.store).putOwn(aid, { card, objectId, signedAt });
}

function furnishChat(node: MoverNode, aid: Aid, friend: Aid, stranger: Aid): void {
  const now = node.clock.now();
  const chats = new ChatStore(node.store);
  const log = new ChatLog(node.store);
  const pair = chats.open(aid, friend, now);
  const invite = chats.open(aid, stranger, now);
  if (pair === null || invite === null) throw new Error('the agent is not here');
  const streams = { outStream: new Uint8Array(16).fill(3), inStream: new Uint8Array(16).fill(4) };
  chats.setRelationship(pair.id, {
    ...pair,
    ...streams,
    state: 'friends',
  });
  chats.setRelationship(invite.id, {
    ...invite,
    state: 'in_pending',
    note: 'hello',
    inStream: new Uint8Array(16).fill(5),
    expiresAt: now + 9,
  });
  const entry = (id: number, text: string) => ({ id: new Uint8Array(16).fill(id), at: now, text, file: null });
  log.queue(pair.id, entry(1, 'sent'));
  log.markSent(pair.id, 1);
  const before = chats.byId(pair.id);
  if (before !== null) log.receive(before, [entry(2, 'came')], new Uint8Array(16).fill(2), now);
  log.queue(pair.id, { ...entry(3, 'waits'), file: { objectId: 'cd'.repeat(32), name: 'a.txt', size: 5 } });
}

async function furnishGroups(node: MoverNode, agent: TestIdentity, member: TestIdentity): Promise<void> {
  const { store, clock, registry } = node;
  const tables = { groups: new GroupStore(store), entries: new GroupEntryStore(store) };
  const groups = new Groups({
    isKnown: () => false,
    ...tables,
    links: new FlakyNetwork(clock, 1).node('nobody'),
    notes: { send: async () => ({ delivered: false }), onNote: () => {} },
    delegations: new DelegationVerifier(),
    events: { emit: () => 0 },
    clock,
    log: silentLog,
    identity: (aid) => registry.identity(aid),
    random: () => 0,
  });
  const { groupId } = groups.create(agent.aid, 'Group');
  await groups.invite(agent.aid, groupId, member.aid);
  const row = tables.groups.find(agent.aid, groupId);
  if (row === null) throw new Error('the group is not there');
  // The member joins and writes an entry.
  const sign = (bytes: Uint8Array) => member.operational.sign(bytes);
  const identity = { aid: member.aid, delegation: member.delegation, sign };
  for (const draft of [{ kind: 'join' }, { kind: 'msg', body: Buffer.from('hi') }]) {
    const replica = new Replica({ ...row, ...tables.groups.byRid(row.rid) }, tables);
    const content = { ...replica.compose(draft, clock.now()), author: member.aid };
    replica.admit([signEntry(content, identity)], clock.now(), () => {});
  }
  groups.markRead(agent.aid, groupId, 2);
  tables.groups.putInviteIn(
    {
      aid: agent.aid,
      groupId: 'ef'.repeat(32),
      inviter: member.aid,
      creator: member.aid,
      title: 'Other',
      secret: null,
      at: 5,
    },
    10,
  );
  await groups.stop();
}

/** A document without its creation time, with its access list in a stable order. */
export function timeless({ exported_at: _at, access, ...rest }: AgentDocument): Omit<AgentDocument, 'exported_at'> {
  if (access === undefined) return rest;
  const allow = access.allow.toSorted((a, b) => JSON.stringify(a).localeCompare(JSON.stringify(b)));
  return { ...rest, access: { ...access, allow } };
}
