/** Handlers of the group operations. */
import type { Groups } from '../../capabilities/groups/groups.ts';
import type { GroupEntry, GroupPage, GroupSummary, ListedGroup, ReadQuery } from '../../capabilities/groups/types.ts';
import { toBase64 } from '../../foundation/base64.ts';
import { isoTime } from '../../foundation/clock.ts';
import { excerpt } from '../../foundation/display-text.ts';
import { MAX_ENTRIES_PAGE, MAX_ENTRY_BODY_BYTES } from '../../foundation/domain/groups.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { groupOperations } from '../groups.ts';
import type { Handlers } from '../operation.ts';
import { listPage, numberCursor } from '../paging.ts';
import { bytesOf, eitherCursor, timeOf } from './values.ts';

function summaryView(group: GroupSummary) {
  return {
    group_id: group.groupId,
    title: group.title,
    creator: group.creator,
    role: group.role,
    entry_count: group.entryCount,
    unread_count: group.unreadCount,
    mention_count: group.mentionCount,
    member_count: group.memberCount,
    last_activity_at: isoTime(group.lastActivityAt),
  };
}

function listedView(group: ListedGroup) {
  const { last, lastSeq } = group;
  return {
    ...summaryView(group),
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

function entryView({ seq, entryId, author, kind, at, body, ref, replyTo, to, retracted }: GroupEntry) {
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

function pageView({ entries, scannedToSeq, hasMore, readCursor, unreadCount }: GroupPage) {
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

export function groupHandlers({ groups }: { readonly groups: Groups }): Handlers<typeof groupOperations> {
  const read = (aid: Aid, groupId: string, query: ReadQuery) => pageView(groups.read(aid, groupId, query));
  return {
    groupList: ({ aid, ...query }) => {
      const sortable = groups.list(aid).map((group) => ({ sortKey: numberCursor(group.place), entry: group }));
      const { entries, next_cursor } = listPage(sortable, query);
      return { groups: entries.map(listedView), next_cursor };
    },
    groupInvitations: ({ aid }) => ({
      invitations: groups.invitations(aid).map(({ groupId: group_id, title, creator, inviter, at }) => ({
        group_id,
        title,
        creator,
        inviter,
        at: isoTime(at),
      })),
    }),
    groupRefuse: ({ aid, group_id }) => {
      groups.refuseInvitation(aid, group_id);
      return { ok: true };
    },
    groupHead: ({ aid, group_id }) => {
      const head = groups.head(aid, group_id);
      const { link, members, maxSeq, readCursor } = head;
      return { ...summaryView(head), link, members, max_seq: maxSeq, read_cursor: readCursor };
    },
    groupEntries: ({ aid, group_id, after_seq, before_seq, limit = MAX_ENTRIES_PAGE }) => {
      if (after_seq !== undefined && before_seq !== undefined) throw eitherCursor();
      return before_seq === undefined
        ? read(aid, group_id, { afterSeq: after_seq ?? 0, limit })
        : pageView(groups.readBefore(aid, group_id, before_seq, limit));
    },
    groupLeave: ({ aid, group_id }) => {
      groups.leave(aid, group_id);
      return { ok: true };
    },
    groupCreate: ({ aid, title }) => {
      const { groupId, link } = groups.create(aid, title);
      return { group_id: groupId, link };
    },
    groupInvite: async ({ aid, group_id, target_aid }) => ({
      ok: true,
      delivered: await groups.invite(aid, group_id, target_aid),
    }),
    groupJoin: async (input) => {
      const { groupId, joined, title } = await groups.join(input.aid, {
        link: input.link,
        groupId: input.group_id,
        creator: input.creator_aid,
        hints: [input.peer_aid, input.inviter_aid, ...(input.member_hints ?? [])].filter((aid) => aid !== undefined),
        title: input.title,
      });
      return { group_id: groupId, state: joined ? 'joined' : 'joining', title };
    },
    groupGetLink: ({ aid, group_id }) => ({ link: groups.head(aid, group_id).link }),
    groupMembers: ({ aid, group_id }) => ({ members: groups.head(aid, group_id).members }),
    groupAppend: ({ aid, group_id, kind = 'msg', body, ref, reply_to, to }) =>
      writtenView(
        groups.append(aid, group_id, {
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
      const { readCursor, unreadCount } = groups.markRead(aid, group_id, seq);
      return { read_cursor: readCursor, unread_count: unreadCount };
    },
    groupRetract: ({ aid, group_id, entry_id }) => writtenView(groups.retract(aid, group_id, entry_id)),
    groupSync: async ({ aid, group_id, peer_aid }) => {
      const { added, entryCount } = await groups.sync(aid, group_id, peer_aid);
      return { ok: true, added, entry_count: entryCount };
    },
  };
}
