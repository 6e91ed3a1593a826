/** The parts of groups for the agents of one node, without links to others. */
import { decodeEntry, type Entry } from '../../src/capabilities/groups/entry.ts';
import { Replicas } from '../../src/capabilities/groups/replicas.ts';
import { GroupWriter } from '../../src/capabilities/groups/writer.ts';
import type { EventSink, EventType } from '../../src/foundation/events.ts';
import type { Aid } from '../../src/foundation/identity/aid.ts';
import { silentLog } from '../../src/foundation/log.ts';
import { GroupEntryStore } from '../../src/foundation/store/group-entries.ts';
import { GroupStore } from '../../src/foundation/store/groups.ts';
import { MIGRATIONS } from '../../src/foundation/store/schema.ts';
import { Store } from '../../src/foundation/store/store.ts';
import type { LocalIdentity } from '../../src/network/links/types.ts';
import { localIdentity, newIdentity, type TestIdentity } from './identities.ts';
import { TestClock } from './test-clock.ts';

export class GroupParts {
  readonly clock: TestClock;
  readonly store: Store = Store.open(':memory:', MIGRATIONS);
  readonly groups: GroupStore = new GroupStore(this.store);
  readonly entries: GroupEntryStore = new GroupEntryStore(this.store);
  readonly agents = new Map<Aid, LocalIdentity>();
  readonly objects = new Set<string>();
  readonly events: EventType[] = [];
  /** By how much other nodes say that this one's clock is ahead, milliseconds. */
  aheadMs = 0;
  readonly replicas: Replicas;
  readonly writer: GroupWriter;

  constructor(clock: TestClock = new TestClock()) {
    this.clock = clock;
    const { groups, entries } = this;
    this.replicas = new Replicas({ groups, entries, clock, identity: (aid) => this.agents.get(aid) ?? null });
    const objects = { has: (_aid: Aid, objectId: string) => this.objects.has(objectId) };
    const events: EventSink = { emit: (_aid, type) => this.events.push(type) };
    const parts = { groups, entries, objects, events, clock, log: silentLog, clockAheadMs: () => this.aheadMs };
    this.writer = new GroupWriter(parts, this.replicas);
  }

  agent(identity: TestIdentity = newIdentity()): Aid {
    this.agents.set(identity.aid, localIdentity(identity));
    return identity.aid;
  }

  /** Every entry that is here of an agent's group, in the order in which they came. */
  log(aid: Aid, groupId: string): Entry[] {
    const { lid } = this.replicas.row(aid, groupId);
    return this.entries.bytesAfter(lid, 0, 1000).flatMap(({ bytes }) => (bytes === null ? [] : decodeEntry(bytes)));
  }

  kinds(aid: Aid, groupId: string): string[] {
    return this.log(aid, groupId).map(({ kind }) => kind);
  }
}
