/** Handlers of the group operations. */

import type { Rooms } from '../../capabilities/rooms/rooms.ts';
import type { ListedRoom, ReadQuery, RoomEntry, RoomPage, RoomSummary } from '../../capabilities/rooms/types.ts';
import { toBase64 } from '../../foundation/base64.ts';
import { isoTime } from '../../foundation/clock.ts';
import { MAX_ENTRIES_PAGE, MAX_ENTRY_BODY_BYTES } from '../../foundation/domain/rooms.ts';
import { SvcError } from '../../foundation/errors.ts';
import { excerpt } from '../../foundation/excerpt.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { Handlers } from '../operation.ts';
import { listPage, numberPlace } from '../paging.ts';
import type { roomOperations } from '../rooms.ts';
import { bytesOf, eitherCursor, timeOf } from './values.ts';

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

function listedView(room: ListedRoom) {
  const { last, lastSeq } = room;
  return {
    ...summaryView(room),
    last_seq: lastSeq,
    last:
      last === null
        ? null
        : {
            author: last.author,
            at: isoTime(last.at),
            kind: last.kind,
            text: last.body === undefined ? '' : excerpt(Buffer.from(last.body).toString('utf8')),
          },
  };
}

function entryView({ seq, entryId, author, kind, at, body, ref, replyTo, to, retracted }: RoomEntry) {
  return {
    seq,
    entry_id: entryId,
    author,
    kind,
    at: isoTime(at),
    body: body === undefined ? undefined : toBase64(body),
    ref,
    reply_to: replyTo,
    to,
    retracted: retracted ? (true as const) : undefined,
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
  const bytes = bytesOf(text, 'body');
  const limit = MAX_ENTRY_BODY_BYTES;
  if (bytes.length <= limit) return bytes;
  throw new SvcError('too_large', {
    message: `The body has ${bytes.length} bytes, but an entry can have only ${limit}. Send a file instead.`,
    details: { size: bytes.length, limit },
  });
}

export function roomHandlers({ rooms }: { readonly rooms: Rooms }): Handlers<typeof roomOperations> {
  const read = (aid: Aid, groupId: string, query: ReadQuery) => pageView(rooms.read(aid, groupId, query));
  return {
    groupList: ({ aid, ...query }) => {
      const placed = rooms.list(aid).map((room) => ({ place: numberPlace(room.place), entry: room }));
      const { entries, next_cursor } = listPage(placed, query);
      return { groups: entries.map(listedView), next_cursor };
    },
    groupInvitations: ({ aid }) => ({
      invitations: rooms.invitations(aid).map(({ groupId: group_id, title, creator, inviter, at }) => ({
        group_id,
        title,
        creator,
        inviter,
        at: isoTime(at),
      })),
    }),
    groupRefuse: ({ aid, group_id }) => {
      rooms.refuseInvitation(aid, group_id);
      return { ok: true };
    },
    groupHead: ({ aid, group_id }) => {
      const head = rooms.head(aid, group_id);
      const { link, members, maxSeq, readCursor } = head;
      return { ...summaryView(head), link, members, max_seq: maxSeq, read_cursor: readCursor };
    },
    groupEntries: ({ aid, group_id, after_seq, before_seq, limit = MAX_ENTRIES_PAGE }) => {
      if (after_seq !== undefined && before_seq !== undefined) throw eitherCursor();
      return before_seq === undefined
        ? read(aid, group_id, { afterSeq: after_seq ?? 0, limit })
        : pageView(rooms.readBefore(aid, group_id, before_seq, limit));
    },
    groupLeave: ({ aid, group_id }) => {
      rooms.leave(aid, group_id);
      return { ok: true };
    },
    groupCreate: ({ aid, title }) => {
      const { groupId, link } = rooms.create(aid, title);
      return { group_id: groupId, link };
    },
    groupInvite: async ({ aid, group_id, target_aid }) => ({
      ok: true,
      delivered: await rooms.invite(aid, group_id, target_aid),
    }),
    groupJoin: async (input) => {
      const { groupId, joined, title } = await rooms.join(input.aid, {
        link: input.link,
        groupId: input.group_id,
        creator: input.creator_aid,
        hints: [input.peer_aid, input.inviter_aid, ...(input.member_hints ?? [])].filter((aid) => aid !== undefined),
        title: input.title,
      });
      return { group_id: groupId, state: joined ? 'joined' : 'joining', title };
    },
    groupGetLink: ({ aid, group_id }) => ({ link: rooms.head(aid, group_id).link }),
    groupMembers: ({ aid, group_id }) => ({ members: rooms.head(aid, group_id).members }),
    groupAppend: ({ aid, group_id, kind = 'msg', body, ref, reply_to, to }) =>
      writtenView(
        rooms.append(aid, group_id, {
          kind,
          ...(body === undefined ? {} : { body: bodyBytes(body) }),
          ...(ref === undefined ? {} : { ref }),
          ...(reply_to === undefined ? {} : { replyTo: reply_to }),
          ...(to === undefined ? {} : { to: [...new Set(to)] }),
        }),
      ),
    groupRead: ({ aid, group_id, after_seq = 0, limit = MAX_ENTRIES_PAGE, ...filter }) =>
      read(aid, group_id, {
        afterSeq: after_seq,
        limit,
        kind: filter.kind,
        author: filter.author,
        sinceAt: timeOf(filter.since_ts),
        untilAt: timeOf(filter.until_ts),
        to: filter.to,
        replyTo: filter.reply_to,
      }),
    groupMarkRead: ({ aid, group_id, seq }) => {
      const { readCursor, unreadCount } = rooms.markRead(aid, group_id, seq);
      return { read_cursor: readCursor, unread_count: unreadCount };
    },
    groupRetract: ({ aid, group_id, entry_id }) => writtenView(rooms.retract(aid, group_id, entry_id)),
    groupSync: async ({ aid, group_id, peer_aid }) => {
      const { added, entryCount } = await rooms.sync(aid, group_id, peer_aid);
      return { ok: true, added, entry_count: entryCount };
    },
  };
}
