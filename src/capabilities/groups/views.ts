/** How groups and entries are shown. */
import { MAX_ENTRIES_PAGE } from '../../foundation/domain/groups.ts';
import { SvcError } from '../../foundation/errors.ts';
import { type GroupEntryStore, MAX_SCANNED, type StoredEntry } from '../../foundation/store/group-entries.ts';
import type { GroupRow } from '../../foundation/store/groups.ts';
import { decodeEntry } from './entry.ts';
import { groupLinkText } from './group-link.ts';
import type { Replica } from './replica.ts';
import type { GroupEntry, GroupHead, GroupPage, GroupSummary, ReadQuery } from './types.ts';

export function summaryOf(row: GroupRow, replica: Replica): GroupSummary {
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

export function headOf(row: GroupRow, replica: Replica): GroupHead {
  const { maxSeq, readSeq: readCursor } = row;
  return { ...summaryOf(row, replica), link: groupLinkText(row), members: replica.members(), maxSeq, readCursor };
}

/** Damaged ones are left out; pages are counted with them. */
function shown(entries: readonly StoredEntry[]): GroupEntry[] {
  return entries.filter(({ isDamaged }) => !isDamaged).map(entryView);
}

/** A page in order of arrival, with how far it was looked for. */
export function pageOf(row: GroupRow, entries: GroupEntryStore, query: ReadQuery): GroupPage {
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
export function pageBefore(row: GroupRow, entries: GroupEntryStore, beforeSeq: number, limit: number): GroupPage {
  const { rid, readSeq: readCursor, unread: unreadCount } = row;
  const count = Math.min(limit, MAX_ENTRIES_PAGE);
  const found = entries.pageBefore(rid, beforeSeq, count + 1);
  const newest = found.slice(-count);
  const scannedToSeq = Math.min(beforeSeq - 1, row.maxSeq);
  return { entries: shown(newest), scannedToSeq, hasMore: found.length > count, readCursor, unreadCount };
}

/** An entry as it is shown: what was retracted keeps its place and loses its content; a join secret is not shown. */
export function entryView({ seq, bytes, retracted }: StoredEntry): GroupEntry {
  const { id, author, kind, at, body, ref, replyTo, to } = decodeEntry(bytes);
  const entry = { seq, entryId: id, author, kind, at, retracted, replyTo };
  return retracted || kind === 'rekey' ? entry : { ...entry, body, ref, to };
}

/** The error for an entry of our own that the group does not admit. */
export function refusal(problem: string): SvcError {
  if (problem === 'the author is not a member') return new SvcError('not_member');
  const message = `The group does not take this entry: ${problem}.`;
  return new SvcError(problem.startsWith('only ') ? 'access_denied' : 'invalid_request', { message });
}
