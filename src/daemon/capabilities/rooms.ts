/** Rooms, whose invitations are notes. */
import { Rooms } from '../../capabilities/rooms/rooms.ts';
import { RoomEntryStore } from '../../foundation/store/room-entries.ts';
import { RoomStore } from '../../foundation/store/rooms.ts';
import type { Foundation } from '../foundation.ts';
import type { Network } from '../network.ts';
import type { Agents } from './agents.ts';
import type { Messages, Shared } from './messages.ts';

export function buildRooms(
  { life, clock, log, store, delegations }: Foundation,
  { registry, onDeleted }: Agents,
  { links, events, objects, notes, isKnown }: Shared & Pick<Messages, 'notes' | 'isKnown'>,
  { records }: Network,
): Rooms {
  const rooms = new Rooms({
    rooms: new RoomStore(store),
    entries: new RoomEntryStore(store),
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
  life.add('acting', rooms);
  onDeleted((aid) => rooms.forget(aid));
  return rooms;
}
