/** How rooms and entries are shown. */
import { MAX_ENTRIES_PAGE } from '../../foundation/domain/rooms.ts';
import { SvcError } from '../../foundation/errors.ts';
import { MAX_SCANNED, type RoomEntryStore, type StoredEntry } from '../../foundation/store/room-entries.ts';
import type { RoomRow } from '../../foundation/store/rooms.ts';
import { decodeEntry } from './entry.ts';
import type { Replica } from './replica.ts';
import { roomLinkText } from './room-link.ts';
import type { ReadQuery, RoomEntry, RoomHead, RoomPage, RoomSummary } from './types.ts';

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

export function headOf(row: RoomRow, replica: Replica): RoomHead {
  const { maxSeq, readSeq: readCursor } = row;
  return { ...summaryOf(row, replica), link: roomLinkText(row), members: replica.members(), maxSeq, readCursor };
}

/** Damaged ones are left out; pages are counted with them. */
function shown(entries: readonly StoredEntry[]): RoomEntry[] {
  return entries.filter(({ isDamaged }) => !isDamaged).map(entryView);
}

/** A page in order of arrival, with how far it was looked for. */
export function pageOf(row: RoomRow, entries: RoomEntryStore, query: ReadQuery): RoomPage {
  const { afterSeq, limit, ...filter } = query;
  const { rid, maxSeq, readSeq: readCursor, unread: unreadCount } = row;
  const upTo = Math.min(maxSeq, afterSeq + MAX_SCANNED);
  const count = Math.min(limit, MAX_ENTRIES_PAGE);
  const found = entries.page(rid, afterSeq, upTo, count, filter);
  const last = found.at(-1)?.seq ?? upTo;
  const scannedToSeq = found.length < count ? Math.max(upTo, Math.min(afterSeq, maxSeq)) : last;
  return { entries: shown(found), scannedToSeq, hasMore: scannedToSeq < maxSeq, readCursor, unreadCount };
}

/** The newest entries before a place, in order of arrival; `hasMore`: more go before. */
export function pageBefore(row: RoomRow, entries: RoomEntryStore, beforeSeq: number, limit: number): RoomPage {
  const { rid, readSeq: readCursor, unread: unreadCount } = row;
  const count = Math.min(limit, MAX_ENTRIES_PAGE);
  const found = entries.pageBefore(rid, beforeSeq, count + 1);
  const newest = found.slice(-count);
  const scannedToSeq = Math.min(beforeSeq - 1, row.maxSeq);
  return { entries: shown(newest), scannedToSeq, hasMore: found.length > count, readCursor, unreadCount };
}

/** An entry as it is shown: what was retracted keeps its place and loses its content; a join secret is not shown. */
export function entryView({ seq, bytes, retracted }: StoredEntry): RoomEntry {
  const { id, author, kind, at, body, ref, replyTo, to } = decodeEntry(bytes);
  const entry = { seq, entryId: id, author, kind, at, retracted, replyTo };
  return retracted || kind === 'rekey' ? entry : { ...entry, body, ref, to };
}

/** The error for an entry of our own that the room does not admit. */
export function refusal(problem: string): SvcError {
  if (problem === 'the author is not a member') return new SvcError('not_member');
  const message = `The group does not take this entry: ${problem}.`;
  return new SvcError(problem.startsWith('only ') ? 'access_denied' : 'invalid_request', { message });
}
