/** Rooms, whose invitations are notes. */
import type { EventLog } from '../../capabilities/events/event-log.ts';
import type { Notes } from '../../capabilities/notes/notes.ts';
import type { ObjectService } from '../../capabilities/objects/object-service.ts';
import { Rooms } from '../../capabilities/rooms/rooms.ts';
import { RoomEntryStore } from '../../foundation/store/room-entries.ts';
import { RoomStore } from '../../foundation/store/rooms.ts';
import type { AgentLinks } from '../../network/links/links.ts';
import type { Foundation } from '../foundation.ts';
import type { Life } from '../life.ts';
import type { Agents } from './agents.ts';

interface RoomsNeeds {
  readonly links: AgentLinks;
  readonly events: EventLog;
  readonly objects: ObjectService;
  readonly notes: Notes;
}

export function buildRooms(
  { clock, log, store, delegations }: Foundation,
  { registry, onDeleted }: Agents,
  { links, events, objects, notes }: RoomsNeeds,
  life: Life,
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
  });
  life.add('acting', rooms);
  onDeleted((aid) => rooms.forget(aid));
  return rooms;
}
