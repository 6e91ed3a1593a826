/** The handlers of the operations on groups. */

import type { Rooms } from '../../capabilities/rooms/rooms.ts';
import type { ReadQuery, RoomEntry, RoomPage, RoomSummary } from '../../capabilities/rooms/types.ts';
import { toBase64 } from '../../foundation/base64.ts';
import { fromBase64 } from '../../foundation/bytes.ts';
import { isoTime } from '../../foundation/clock.ts';
import { MAX_ENTRIES_PAGE, MAX_ENTRY_BODY_BYTES } from '../../foundation/domain/rooms.ts';
import { SvcError } from '../../foundation/errors.ts';
import { parseAid } from '../../foundation/identity/aid.ts';
import type { Handlers } from '../operation.ts';
import type { roomOperations } from '../rooms.ts';

function summaryView(room: RoomSummary) {
  return {
    group_id: room.groupId,
    title: room.title,
    creator: room.creator,
    role: room.role,
    entry_count: room.entryCount,
    unread_count: room.unreadCount,
    mention_count: room.mentionCount,
    member_count: room.memberCount,
    last_activity_at: isoTime(room.lastActivityAt),
  };
}

function entryView({ seq, entryId, author, kind, at, body, ref, replyTo, to, retracted }: RoomEntry) {
  return {
    seq,
    entry_id: entryId,
    author,
    kind,
    at: isoTime(at),
    ...(body === undefined ? {} : { body: toBase64(body) }),
    ...(ref === undefined ? {} : { ref }),
    ...(replyTo === undefined ? {} : { reply_to: replyTo }),
    ...(to === undefined ? {} : { to: [...to] }),
    ...(retracted ? { retracted: true as const } : {}),
  };
}

function pageView({ entries, scannedToSeq, hasMore, readCursor, unreadCount }: RoomPage) {
  return {
    entries: entries.map(entryView),
    scanned_to_seq: scannedToSeq,
    has_more: hasMore,
    read_cursor: readCursor,
    unread_count: unreadCount,
  };
}

function writtenView({ seq, entryId, at }: { readonly seq: number; readonly entryId: string; readonly at: number }) {
  return { seq, entry_id: entryId, at: isoTime(at) };
}

/** @throws SvcError `invalid_request`, `too_large` */
function bodyBytes(text: string): Uint8Array {
  const bytes = fromBase64(text);
  if (bytes === null)
    throw new SvcError('invalid_request', { message: 'body is not valid base64.', details: { path: '/body' } });
  const limit = MAX_ENTRY_BODY_BYTES;
  if (bytes.length <= limit) return bytes;
  throw new SvcError('too_large', {
    message: `The body has ${bytes.length} bytes; an entry takes ${limit}.`,
    details: { size: bytes.length, limit },
  });
}

function timeOf(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Date.parse(text);
}

/** The agents that were named, those that were not left out. */
function named(...texts: readonly (string | undefined)[]) {
  return texts.flatMap((text) => (text === undefined ? [] : [parseAid(text)]));
}

export function roomHandlers({ rooms }: { readonly rooms: Rooms }): Handlers<typeof roomOperations> {
  const read = (aid: string, groupId: string, query: ReadQuery) => pageView(rooms.read(parseAid(aid), groupId, query));
  return {
    groupList: ({ aid }) => ({ groups: rooms.list(parseAid(aid)).map(summaryView) }),
    groupHead: ({ aid, group_id }) => {
      const head = rooms.head(parseAid(aid), group_id);
      const { link, members, maxSeq, readCursor } = head;
      return { ...summaryView(head), link, members: [...members], max_seq: maxSeq, read_cursor: readCursor };
    },
    groupEntries: ({ aid, group_id, after_seq = 0, limit = MAX_ENTRIES_PAGE }) =>
      read(aid, group_id, { afterSeq: after_seq, limit }),
    groupLeave: ({ aid, group_id }) => {
      rooms.leave(parseAid(aid), group_id);
      return { ok: true };
    },
    groupCreate: ({ aid, title }) => {
      const { groupId, link } = rooms.create(parseAid(aid), title);
      return { group_id: groupId, link };
    },
    groupInvite: async ({ aid, group_id, target_aid }) => ({
      ok: true,
      delivered: await rooms.invite(parseAid(aid), group_id, parseAid(target_aid)),
    }),
    groupJoin: async (input) => {
      const { groupId, joined, title } = await rooms.join(parseAid(input.aid), {
        link: input.link,
        groupId: input.group_id,
        creator: named(input.creator_aid)[0],
        hints: named(input.peer_aid, input.inviter_aid, ...(input.member_hints ?? [])),
        title: input.title,
      });
      return { group_id: groupId, state: joined ? 'joined' : 'joining', title };
    },
    groupGetLink: ({ aid, group_id }) => ({ link: rooms.head(parseAid(aid), group_id).link }),
    groupMembers: ({ aid, group_id }) => ({
      members: [...rooms.head(parseAid(aid), group_id).members],
    }),
    groupAppend: ({ aid, group_id, kind = 'msg', body, ref, reply_to, to }) =>
      writtenView(
        rooms.append(parseAid(aid), group_id, {
          kind,
          ...(body === undefined ? {} : { body: bodyBytes(body) }),
          ...(ref === undefined ? {} : { ref }),
          ...(reply_to === undefined ? {} : { replyTo: reply_to }),
          ...(to === undefined ? {} : { to: [...new Set(to.map(parseAid))] }),
        }),
      ),
    groupRead: ({ aid, group_id, after_seq = 0, limit = MAX_ENTRIES_PAGE, ...filter }) =>
      read(aid, group_id, {
        afterSeq: after_seq,
        limit,
        kind: filter.kind,
        author: named(filter.author)[0],
        sinceAt: timeOf(filter.since_ts),
        untilAt: timeOf(filter.until_ts),
        to: named(filter.to)[0],
        replyTo: filter.reply_to,
      }),
    groupMarkRead: ({ aid, group_id, seq }) => {
      const { readCursor, unreadCount } = rooms.markRead(parseAid(aid), group_id, seq);
      return { read_cursor: readCursor, unread_count: unreadCount };
    },
    groupRetract: ({ aid, group_id, entry_id }) => writtenView(rooms.retract(parseAid(aid), group_id, entry_id)),
    groupSync: async ({ aid, group_id, peer_aid }) => {
      const { added, entryCount } = await rooms.sync(parseAid(aid), group_id, parseAid(peer_aid));
      return { ok: true, added, entry_count: entryCount };
    },
  };
}
