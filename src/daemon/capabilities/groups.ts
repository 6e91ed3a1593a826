/** Groups, with invitations sent as notes. */
import { Groups } from '../../capabilities/groups/groups.ts';
import { GroupEntryStore } from '../../foundation/store/group-entries.ts';
import { GroupStore } from '../../foundation/store/groups.ts';
import type { Foundation } from '../foundation.ts';
import type { Network } from '../network.ts';
import type { Agents } from './agents.ts';
import type { Messages, Shared } from './messages.ts';

export function buildGroups(
  { life, clock, log, store, delegations }: Foundation,
  { registry, onDeleted }: Agents,
  { links, events, objects, notes, isKnown }: Shared & Pick<Messages, 'notes' | 'isKnown'>,
  { records }: Network,
): Groups {
  const groups = new Groups({
    groups: new GroupStore(store),
    entries: new GroupEntryStore(store),
    links,
    notes,
    objects: { has: (aid, objectId) => objects.stat(aid, objectId) !== null },
    delegations,
    events,
    clock,
    log,
    identity: (aid) => registry.identity(aid),
    random: Math.random,
    isKnown,
    clockAheadMs: () => records.clockAheadMs(),
  });
  life.add('acting', groups);
  onDeleted((aid) => groups.forget(aid));
  return groups;
}
