/** Nodes with groups between them, over links in memory that misbehave as told. */
import { Groups } from '../../src/capabilities/groups/groups.ts';
import type { InvitationNote } from '../../src/capabilities/groups/types.ts';
import { abortable } from '../../src/foundation/deadline.ts';
import type { EventPayloads, EventType } from '../../src/foundation/events.ts';
import type { Aid } from '../../src/foundation/identity/aid.ts';
import { DelegationVerifier } from '../../src/foundation/identity/delegation-verifier.ts';
import { silentLog } from '../../src/foundation/log.ts';
import { GroupEntryStore } from '../../src/foundation/store/group-entries.ts';
import { GroupStore } from '../../src/foundation/store/groups.ts';
import { MIGRATIONS } from '../../src/foundation/store/schema.ts';
import { Store } from '../../src/foundation/store/store.ts';
import type { LocalIdentity } from '../../src/network/links/types.ts';
import type { FlakyNode } from './flaky-links.ts';
import { localIdentity, newIdentity, type TestIdentity } from './identities.ts';
import { SteppedWorld } from './stepped-world.ts';

type NoteHandler = (recipient: Aid, note: InvitationNote) => void;

export class GroupWorld extends SteppedWorld {
  readonly nodes: GroupNode[] = [];
  /** Whether notes come through. */
  mail = true;
  /** Notes are under way until their sender cancels them. */
  mailHangs = false;
  notesSent = 0;

  async node(
    agent: TestIdentity = newIdentity(),
    store: Store = Store.open(':memory:', MIGRATIONS),
  ): Promise<GroupNode> {
    const node = new GroupNode(this, agent, store);
    this.nodes.push(node);
    await node.groups.start();
    return node;
  }

  async stop(): Promise<void> {
    for (const node of this.nodes) await node.groups.stop();
  }

  deliver(recipient: Aid, note: InvitationNote): boolean {
    const node = this.nodes.findLast(({ aid }) => aid === recipient);
    if (!this.mail || node === undefined) return false;
    node.store.transaction(() => node.noteHandler?.(recipient, note));
    return true;
  }
}

export class GroupNode {
  readonly world: GroupWorld;
  readonly agent: TestIdentity;
  readonly aid: Aid;
  readonly store: Store;
  readonly links: FlakyNode;
  readonly groups: Groups;
  readonly entries: GroupEntryStore;
  readonly table: GroupStore;
  readonly events: { readonly type: EventType; readonly data: EventPayloads[EventType] }[] = [];
  identity: LocalIdentity;
  noteHandler: NoteHandler | undefined;

  constructor(world: GroupWorld, agent: TestIdentity, store: Store) {
    this.world = world;
    this.agent = agent;
    this.aid = agent.aid;
    this.store = store;
    this.links = world.links.node(`${agent.aid} ${world.nodes.length}`);
    this.links.agents.add(agent.aid);
    this.identity = localIdentity(agent);
    this.entries = new GroupEntryStore(store);
    this.table = new GroupStore(store);
    this.groups = new Groups({
      isKnown: () => false,
      groups: this.table,
      entries: this.entries,
      links: this.links,
      notes: {
        send: async (sender, recipient, _type, body, signal) => {
          world.notesSent++;
          if (world.mailHangs) await abortable(new Promise(() => {}), signal);
          return { delivered: world.deliver(recipient, { sender, body }) };
        },
        onNote: (_type, handler) => {
          this.noteHandler = handler;
        },
      },
      delegations: new DelegationVerifier(),
      events: { emit: (_aid, type, data) => this.events.push({ type, data }) },
      clock: world.clock,
      log: silentLog,
      identity: (aid) => (aid === this.aid ? this.identity : null),
      random: () => world.links.random.next(),
    });
  }

  say(groupId: string, text: string, more: { to?: Aid[]; replyTo?: string; kind?: string } = {}) {
    return this.groups.append(this.aid, groupId, { kind: 'msg', body: Buffer.from(text), ...more });
  }

  /** The texts of all messages that are shown. */
  texts(groupId: string): string[] {
    const texts: string[] = [];
    for (let afterSeq = 0; ; ) {
      const page = this.groups.read(this.aid, groupId, { afterSeq, limit: 50, kind: 'msg' });
      texts.push(...page.entries.map(({ body }) => Buffer.from(body ?? []).toString()));
      if (!page.hasMore) return texts;
      afterSeq = page.scannedToSeq;
    }
  }

  /** The common state of all replicas: IDs, ignored entries, and members. */
  fingerprint(groupId: string): string {
    const lid = this.table.find(this.aid, groupId)?.lid ?? 0;
    const rows = this.store.all(
      'SELECT hex(bytes) AS bytes, void FROM group_entries WHERE lid = ? ORDER BY entry_id',
      lid,
    );
    const { members, title } = this.groups.head(this.aid, groupId);
    const named = members.map(({ aid, role }) => `${aid} ${role}`).sort();
    return JSON.stringify([rows, named, title]);
  }

  /** Unread entries and mentions: the stored counters, and a recount. */
  counters(groupId: string): { readonly kept: number[]; readonly counted: number[] } {
    const row = this.table.find(this.aid, groupId);
    const again = this.store.one(
      `SELECT count(*) AS unread, count(m.seq) AS mentions FROM group_entries e
       LEFT JOIN group_mentions m ON m.lid = e.lid AND m.seq = e.seq AND m.aid = ?3
       WHERE e.lid = ?1 AND e.seq > ?2 AND e.seq <= ?4 AND counts = 1 AND author <> ?3 AND void = 0 AND NOT EXISTS (
         SELECT 1 FROM group_retracts r JOIN group_entries x ON x.lid = r.lid AND x.seq = r.seq
         WHERE r.lid = ?1 AND r.target = e.entry_id AND x.void = 0 AND (r.by_admin = 1 OR x.author = e.author))`,
      row?.lid ?? 0,
      row?.readSeq ?? 0,
      this.aid,
      row?.maxSeq ?? 0,
    );
    return {
      kept: [row?.unread ?? 0, row?.mentions ?? 0],
      counted: [Number(again?.['unread']), Number(again?.['mentions'])],
    };
  }

  /** Ends this node without a word, and starts another one on what it has left. */
  async restart(store: Store = this.store): Promise<GroupNode> {
    this.links.crash();
    await this.groups.stop();
    this.world.nodes.splice(this.world.nodes.indexOf(this), 1);
    return this.world.node(this.agent, store);
  }
}

/** A group of the first node that all other nodes joined by its link. */
export async function groupOf(world: GroupWorld, nodes: readonly GroupNode[]): Promise<string> {
  const [creator, ...others] = nodes;
  if (creator === undefined) throw new RangeError('nobody');
  const { groupId, link } = creator.groups.create(creator.aid, 'test');
  for (const node of others) await world.during(node.groups.join(node.aid, { link, hints: [] }));
  return groupId;
}
