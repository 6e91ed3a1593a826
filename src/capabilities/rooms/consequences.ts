/** What an entry that has come in changes about others: which of them are set aside, and what the room is called. */
import type { Aid } from '../../foundation/identity/aid.ts';
import type { RoomEntryStore } from '../../foundation/store/room-entries.ts';
import type { RoomStore } from '../../foundation/store/rooms.ts';
import { besides } from './besides.ts';
import type { ControlLog } from './control.ts';
import { decodeEntry, type Entry } from './entry.ts';
import { bodyText } from './kinds.ts';

/** What is known of a room. */
interface Room {
  readonly rid: number;
  readonly creator: Aid;
  readonly control: ControlLog;
  /** True where the removal at a place counts. */
  readonly counts: (removal: number) => boolean;
}

/** Sets aside what stands beside a removal, and takes back what removals of a fallen admin had set aside. */
export function judgeBesides(room: Room, entry: Entry, controlNo: number, seq: number, entries: RoomEntryStore): void {
  // protocol-groups.md, step 5
  const [subject] = entry.to ?? [];
  if (subject === undefined) return;
  if (entry.kind === 'remove') {
    for (const beside of besides(entries, room.rid, seq, subject)) entries.addConflict(room.rid, controlNo, beside);
    judge(room, controlNo, entries);
  }
  if (entry.author !== room.creator) return;
  for (const removal of room.control.removalsBy(subject)) judge(room, removal, entries);
}

function judge(room: Room, removal: number, entries: RoomEntryStore): void {
  for (const { seq, removals } of entries.conflictsOf(room.rid, removal))
    entries.setVoid(room.rid, seq, removals.some(room.counts));
}

/** Keeps the title that stands: the last one that is not set aside, otherwise that of the first entry. */
export function refreshTitle(rid: number, rooms: RoomStore, entries: RoomEntryStore): void {
  const bytes = entries.lastTitle(rid) ?? entries.controlAt(rid, 0);
  if (bytes !== null) rooms.setTitle(rid, bodyText(decodeEntry(bytes)) ?? '');
}
