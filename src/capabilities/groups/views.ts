/** Converts groups and entries to what clients see. */
import { JOIN_SECRET_BYTES, MAX_ENTRIES_PAGE, MAX_MEMBERS } from '../../foundation/domain/groups.ts';
import { SvcError } from '../../foundation/errors.ts';
import { type Aid, parseAid } from '../../foundation/identity/aid.ts';
import { type GroupEntryStore, MAX_SCANNED, type StoredEntry } from '../../foundation/store/group-entries.ts';
import type { GroupRow } from '../../foundation/store/groups.ts';
import { decodeEntry } from './entry.ts';
import { GROUP_FULL, type Replica } from './replica.ts';
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

/** Skips damaged entries. They still count toward the size of the page. */
function visibleEntries(entries: readonly StoredEntry[]): GroupEntry[] {
  return entries.filter(({ isDamaged }) => !isDamaged).map(entryView);
}

/** Returns a page in order of arrival, and the position up to which entries were examined. */
export function pageOf(row: GroupRow, entries: GroupEntryStore, query: ReadQuery): GroupPage {
  const { afterSeq, limit, ...filter } = query;
  const { lid, maxSeq, readSeq: readCursor, unread: unreadCount } = row;
  const upTo = Math.min(maxSeq, afterSeq + MAX_SCANNED);
  const count = Math.min(limit, MAX_ENTRIES_PAGE);
  const found = entries.page(lid, afterSeq, upTo, count, filter);
  const last = found.at(-1)?.seq ?? upTo;
  const scannedToSeq = found.length < count ? Math.max(upTo, Math.min(afterSeq, maxSeq)) : last;
  return { entries: visibleEntries(found), scannedToSeq, hasMore: scannedToSeq < maxSeq, readCursor, unreadCount };
}

/** Returns the newest entries before a position, in order of arrival. `hasMore` is true if there are earlier ones. */
export function pageBefore(row: GroupRow, entries: GroupEntryStore, beforeSeq: number, limit: number): GroupPage {
  const { lid, readSeq: readCursor, unread: unreadCount } = row;
  const count = Math.min(limit, MAX_ENTRIES_PAGE);
  const found = entries.pageBefore(lid, Math.min(beforeSeq, row.maxSeq + 1), count + 1);
  const newest = found.slice(-count);
  const scannedToSeq = Math.min(beforeSeq - 1, row.maxSeq);
  return { entries: visibleEntries(newest), scannedToSeq, hasMore: found.length > count, readCursor, unreadCount };
}

/**
 * Converts an entry for clients. A retracted entry keeps its position and loses its content. Join secrets are removed.
 */
export function entryView({ seq, bytes, retracted }: StoredEntry): GroupEntry {
  const { id, author, kind, at, body, ref, replyTo, to } = decodeEntry(bytes);
  const entry = { seq, entryId: id, author, kind, at, retracted, replyTo };
  return retracted || kind === 'rekey' ? entry : { ...entry, body, ref, to };
}

/** The error for a new entry of a local agent that the rules of the group do not admit. */
export function rejectedError(problem: string): SvcError {
  if (problem === 'the author is not a member') return new SvcError('not_member');
  if (problem === GROUP_FULL)
    return new SvcError('quota_exceeded', { message: `A group can have at most ${MAX_MEMBERS} members.` });
  const message = `The group does not accept this entry: ${problem}.`;
  return new SvcError(problem.startsWith('only ') ? 'access_denied' : 'invalid_request', { message });
}

// The shareable link of a group: `svc://<creator>/groups/<group id>#<join secret>`.

const LINK = /^svc:\/\/([0-9A-Za-z]{1,100})\/groups\/([0-9a-f]{64})(?:#([A-Za-z0-9_-]{43}))?$/;

export interface GroupLink {
  readonly creator: Aid;
  readonly groupId: string;
  /** Admits anyone who knows it. Without it, the link only locates the group. */
  readonly secret: Uint8Array | null;
}

export function groupLinkText({ creator, groupId, secret }: GroupLink): string {
  const fragment = secret === null ? '' : `#${Buffer.from(secret).toString('base64url')}`;
  return `svc://${creator}/groups/${groupId}${fragment}`;
}

/** @throws SvcError `invalid_request` (the message never includes the link, because it contains a secret), `bad_aid` */
export function parseGroupLink(text: string): GroupLink {
  const [, creator, groupId, secret] = LINK.exec(text.trim()) ?? [];
  if (creator === undefined || groupId === undefined)
    throw new SvcError('invalid_request', {
      message: 'Invalid group link. Expected svc://<aid>/groups/<group_id>#<secret>.',
      details: { path: '/link' },
    });
  const bytes = secret === undefined ? null : new Uint8Array(Buffer.from(secret, 'base64url'));
  if (bytes !== null && bytes.length !== JOIN_SECRET_BYTES) throw new SvcError('invalid_request');
  return { creator: parseAid(creator), groupId, secret: bytes };
}
