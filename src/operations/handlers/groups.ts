/** Handlers of the group operations. */
import type { EventWaits, Wait } from '../../capabilities/events/event-waits.ts';
import type { Groups } from '../../capabilities/groups/groups.ts';
import { setsState } from '../../capabilities/groups/kinds.ts';
import type {
  GroupEntry,
  GroupInvitation,
  GroupPage,
  GroupSummary,
  ListedGroup,
  ReadQuery,
} from '../../capabilities/groups/types.ts';
import type { Written } from '../../capabilities/groups/writer.ts';
import { toBase64 } from '../../foundation/base64.ts';
import { plainText } from '../../foundation/bytes.ts';
import { isoTime } from '../../foundation/clock.ts';
import { excerpt } from '../../foundation/display-text.ts';
import { MAX_ENTRIES_PAGE, MAX_ENTRY_BODY_BYTES } from '../../foundation/domain/groups.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { groupOperations } from '../groups.ts';
import type { Handlers } from '../operation.ts';
import { listPage, numberCursor } from '../paging.ts';
import type { Repeats } from './repeats.ts';
import { bodyOf, eitherCursor, timeOf } from './values.ts';

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

/** A group entry as it is returned to clients. */
export function groupEntryView({ seq, entryId, author, kind, at, body, ref, replyTo, to, retracted }: GroupEntry) {
  return {
    seq,
    entry_id: entryId,
    author,
    kind,
    timestamp: isoTime(at),
    at: isoTime(at),
    body: body === undefined ? undefined : toBase64(body),
    text: body === undefined ? undefined : plainText(body),
    ref,
    reply_to: replyTo,
    to,
    retracted: retracted ? (true as const) : undefined,
  };
}

/** An invitation as it is returned to clients. */
export function groupInvitationView({ groupId: group_id, title, creator, inviter, at }: GroupInvitation) {
  return { group_id, title, creator, inviter, at: isoTime(at) };
}

function pageView({ entries, scannedToSeq, hasMore, readCursor, unreadCount }: GroupPage) {
  return {
    entries: entries.map(groupEntryView),
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
function entryBody(text: string | undefined, base64: string | undefined): Uint8Array | undefined {
  const bytes = bodyOf(text, base64, 'body');
  const limit = MAX_ENTRY_BODY_BYTES;
  if (bytes === undefined || bytes.length <= limit) return bytes;
  throw new SvcError('too_large', {
    message: `The body has ${bytes.length} bytes, but an entry can have only ${limit}. Send a file instead.`,
    details: { size: bytes.length, limit },
  });
}

export interface GroupHandlerDependencies {
  readonly groups: Groups;
  readonly waits: Pick<EventWaits, 'until'>;
  readonly repeats: Pick<Repeats, 'run'>;
}

export function groupHandlers({ groups, waits, repeats }: GroupHandlerDependencies): Handlers<typeof groupOperations> {
  const waiting = (wait: Wait, read: () => GroupPage): Promise<GroupPage> =>
    waits.until(wait, read, ({ entries }) => entries.length === 0);
  return {
    groupList: ({ aid, ...query }) => {
      const sortable = groups.list(aid).map((group) => ({ sortKey: numberCursor(group.place), entry: group }));
      const { entries, next_cursor } = listPage(sortable, query);
      return { groups: entries.map(listedView), next_cursor };
    },
    groupInvitations: ({ aid }) => ({
      invitations: groups.invitations(aid).map(groupInvitationView),
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
    groupEntries: async ({ aid, group_id, after_seq, before_seq, limit = MAX_ENTRIES_PAGE, wait_s }, client) => {
      if (after_seq !== undefined && before_seq !== undefined) throw eitherCursor();
      const read = () =>
        before_seq === undefined
          ? groups.read(aid, group_id, { afterSeq: after_seq ?? 0, limit })
          : groups.readBefore(aid, group_id, before_seq, limit);
      return pageView(await waiting({ aid, wait_s, client }, read));
    },
    groupLeave: ({ aid, group_id }) => {
      groups.leave(aid, group_id);
      return { ok: true };
    },
    groupCreate: async ({ aid, title = '' }, context) => {
      const { groupId, link } = await repeats.run(
        {
          aid,
          content: { group: title },
          act: (keep) => groups.create(aid, title, keep),
          again: (groupId) =>
            groups.list(aid).some((one) => one.groupId === groupId)
              ? { groupId, link: groups.head(aid, groupId).link }
              : null,
        },
        context,
      );
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
    groupAppend: async ({ aid, group_id, kind = 'msg', text, body: base64, ref, reply_to, to }, context) => {
      const body = entryBody(text, base64);
      const draft = {
        kind,
        ...(body === undefined ? {} : { body }),
        ...(ref === undefined ? {} : { ref }),
        ...(reply_to === undefined ? {} : { replyTo: reply_to }),
        ...(to === undefined ? {} : { to: [...new Set(to)] }),
      };
      if (setsState(kind)) return writtenView(groups.append(aid, group_id, draft));
      const written = await repeats.run<Written>(
        {
          aid,
          content: { in: group_id, ...draft },
          act: (keep) => groups.append(aid, group_id, draft, keep),
          again: (entryId) => groups.entry(aid, group_id, entryId),
        },
        context,
      );
      return writtenView(written);
    },
    groupRead: async ({ aid, group_id, after_seq = 0, limit = MAX_ENTRIES_PAGE, wait_s, ...filter }, client) => {
      const query: ReadQuery = {
        afterSeq: after_seq,
        limit,
        kind: filter.kind,
        author: filter.author,
        sinceAt: timeOf(filter.since_ts),
        untilAt: timeOf(filter.until_ts),
        to: filter.to,
        replyTo: filter.reply_to,
      };
      return pageView(await waiting({ aid, wait_s, client }, () => groups.read(aid, group_id, query)));
    },
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
