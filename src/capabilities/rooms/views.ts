/** How rooms and entries are shown. */
import { SvcError } from '../../foundation/errors.ts';
import type { StoredEntry } from '../../foundation/store/room-entries.ts';
import type { RoomRow } from '../../foundation/store/rooms.ts';
import { decodeEntry } from './entry.ts';
import type { Replica } from './replica.ts';
import type { RoomEntry, RoomSummary } from './types.ts';

export function summaryOf(row: RoomRow, replica: Replica): RoomSummary {
  return {
    groupId: row.groupId,
    title: row.title,
    creator: row.creator,
    role: row.state === 'member' ? (replica.role(row.aid) ?? 'removed') : row.state,
    entryCount: row.maxSeq,
    unreadCount: row.unread,
    mentionCount: row.mentions,
    memberCount: replica.members().length,
    lastActivityAt: row.lastAt,
  };
}

/** An entry as it is shown: what was retracted keeps its place and loses its content; a join secret is not shown. */
export function entryView({ seq, bytes, retracted }: StoredEntry): RoomEntry {
  const { id, author, kind, at, body, ref, replyTo, to } = decodeEntry(bytes);
  const shown = { seq, entryId: id, author, kind, at, retracted, ...(replyTo === undefined ? {} : { replyTo }) };
  if (retracted || kind === 'rekey') return shown;
  return {
    ...shown,
    ...(body === undefined ? {} : { body }),
    ...(ref === undefined ? {} : { ref }),
    ...(to === undefined ? {} : { to }),
  };
}

/** The error for an entry of our own that the room does not admit. */
export function refusal(problem: string): SvcError {
  if (problem === 'the author is not a member') return new SvcError('not_member');
  const message = `The group does not take this entry: ${problem}.`;
  return new SvcError(problem.startsWith('only ') ? 'access_denied' : 'invalid_request', { message });
}
