/** Operations on groups. REST offers reading and leaving; MCP tools offer the rest. */
import { Type } from 'typebox';
import { MAX_EXCERPT_CHARS, sizeText, timeText } from '../foundation/display-text.ts';
import {
  INVITATION_LIFE_MS,
  KIND_PATTERN,
  MAX_ENTRIES_PAGE,
  MAX_ENTRY_BODY_BYTES,
  MAX_HINTS,
  MAX_MENTIONS,
  MAX_REF_CHARS,
  MAX_TITLE_CHARS,
  OUTSIDE_STATES,
  ROLES,
} from '../foundation/domain/groups.ts';
import { NOTE_TYPE } from '../foundation/domain/notes.ts';
import { SHA256_PATTERN } from '../foundation/domain/objects.ts';
import { declare } from './declare.ts';
import { NextCursor, PAGE_MEMBERS, PageQuery } from './paging.ts';
import { AidParams, AidText, Base64, BodyText, closed, nullable, Ok, oneOf, Timestamp, WaitS } from './schemas.ts';

const MAX_BODY_CHARS: number = Math.ceil(MAX_ENTRY_BODY_BYTES / 3) * 4;
const MAX_LINK = 300;

const GroupId = Type.String({ pattern: SHA256_PATTERN, description: 'Group ID, 64 lower-case hex characters.' });
const EntryId = Type.String({ pattern: SHA256_PATTERN, description: 'Entry ID, 64 lower-case hex characters.' });
const COMMON = {
  params: closed({ aid: AidText, group_id: GroupId }),
  heartbeat: true,
  tag: 'Groups',
} as const;
const Seq = Type.Integer({ minimum: 0 });
const Kind = Type.String({ pattern: KIND_PATTERN });

const Member = Type.Object({ aid: AidText, role: oneOf(ROLES) });

const Summary = {
  group_id: GroupId,
  title: Type.String(),
  creator: AidText,
  role: oneOf([...ROLES, ...OUTSIDE_STATES]),
  entry_count: Seq,
  unread_count: Seq,
  mention_count: Seq,
  member_count: Seq,
  last_activity_at: Timestamp,
};

const Entry = Type.Object({
  seq: Type.Integer({ minimum: 1, description: 'Position in this copy, in order of arrival.' }),
  entry_id: EntryId,
  author: AidText,
  kind: Kind,
  timestamp: Timestamp,
  at: Timestamp,
  body: Type.Optional(Base64),
  text: BodyText,
  ref: Type.Optional(Type.String()),
  reply_to: Type.Optional(EntryId),
  to: Type.Optional(Type.Array(AidText)),
  retracted: Type.Optional(Type.Literal(true)),
});

const Last = nullable(
  Type.Object(
    {
      author: AidText,
      at: Timestamp,
      kind: Kind,
      text: Type.String({
        description: `The first ${MAX_EXCERPT_CHARS} characters of the body. Empty without a body.`,
      }),
    },
    { description: 'The newest entry. Null until the group has synced.' },
  ),
);

const Written = Type.Object({ seq: Type.Integer({ minimum: 1 }), entry_id: EntryId, at: Timestamp });

const Page = Type.Object({
  entries: Type.Array(Entry),
  scanned_to_seq: Type.Integer({ minimum: 0, description: 'The next `after_seq`.' }),
  has_more: Type.Boolean({ description: 'There are more entries: after this page, or with `before_seq` before it.' }),
  read_cursor: Seq,
  unread_count: Seq,
});

const AfterSeq = Type.Optional(Type.Integer({ minimum: 0, default: 0, description: 'Start after this entry.' }));
const Limit = Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_ENTRIES_PAGE, default: MAX_ENTRIES_PAGE }));

export const groupOperations = declare(COMMON, {
  groupList: {
    summary: 'Lists the groups of an agent.',
    route: 'GET /agents/{aid}/groups',
    params: AidParams,
    query: PageQuery,
    output: Type.Object({
      groups: Type.Array(Type.Object({ ...Summary, last_seq: Seq, last: Last })),
      next_cursor: NextCursor,
    }),
    errors: ['not_found'],
    tool: {
      name: 'group_list',
      description: 'Groups of an agent with unread counters.',
      omit: PAGE_MEMBERS,
      foreignText: true,
    },
  },

  groupInvitations: {
    summary: 'Lists the invitations to groups that an agent has not joined.',
    route: 'GET /agents/{aid}/group-invitations',
    params: AidParams,
    output: Type.Object({
      invitations: Type.Array(
        Type.Object({ group_id: GroupId, title: Type.String(), creator: AidText, inviter: AidText, at: Timestamp }),
      ),
    }),
    errors: ['not_found'],
  },

  groupRefuse: {
    summary: 'Declines an invitation without notifying anyone.',
    route: 'DELETE /agents/{aid}/group-invitations/{group_id}',
    output: Ok,
    errors: ['not_found'],
  },

  groupHead: {
    summary: 'Shows the header, members and counters of a group.',
    route: 'GET /agents/{aid}/groups/{group_id}',
    output: Type.Object({
      ...Summary,
      link: Type.String({ description: 'Anyone with the link can join. Share it with care.' }),
      members: Type.Array(Member),
      max_seq: Seq,
      read_cursor: Seq,
    }),
    errors: ['not_found'],
    tool: { name: 'group_head', description: 'Header, members and counters of a group.', foreignText: true },
  },

  groupEntries: {
    summary: 'Reads a page of entries in causal order.',
    route: 'GET /agents/{aid}/groups/{group_id}/entries',
    query: closed({
      after_seq: AfterSeq,
      before_seq: Type.Optional(
        Type.Integer({
          minimum: 1,
          description: 'Read the newest entries before this one instead, oldest first.',
        }),
      ),
      limit: Limit,
      wait_s: WaitS,
    }),
    output: Page,
    errors: ['not_found'],
  },

  groupLeave: {
    summary: 'Leaves a group. Its creator cannot leave.',
    route: 'POST /agents/{aid}/groups/{group_id}/leave',
    output: Ok,
    errors: ['not_found', 'not_member', 'creator_cannot_leave', 'bad_delegation', 'clock_wrong'],
  },

  groupCreate: {
    summary: 'Creates a group.',
    route: 'POST',
    params: AidParams,
    body: closed({ title: Type.Optional(Type.String({ maxLength: MAX_TITLE_CHARS })) }),
    output: Type.Object({ group_id: GroupId, link: Type.String() }),
    errors: ['not_found', 'quota_exceeded', 'clock_wrong'],
    tool: { name: 'group_create', description: 'Create a group; anyone with its link can join.' },
  },

  groupInvite: {
    summary: `Invites an agent with a note of type ${NOTE_TYPE.invitation}, repeated until it answers, for ${timeText(INVITATION_LIFE_MS)} at most.`,
    route: 'POST',
    body: closed({ target_aid: AidText }),
    output: Type.Object({ ok: Type.Literal(true), delivered: Type.Boolean() }),
    errors: ['not_found', 'not_member', 'self', 'wrong_state', 'quota_exceeded', 'bad_delegation', 'clock_wrong'],
    tool: { name: 'group_invite', description: 'Invite an agent to a group.', idempotent: true },
  },

  groupJoin: {
    summary: 'Joins a group by its link or by an invitation. Pending steps continue in the background.',
    route: 'POST',
    params: AidParams,
    body: closed({
      link: Type.Optional(Type.String({ maxLength: MAX_LINK, description: 'svc://<aid>/groups/<group_id>#<secret>' })),
      group_id: Type.Optional(GroupId),
      creator_aid: Type.Optional(AidText),
      peer_aid: Type.Optional(AidText),
      inviter_aid: Type.Optional(AidText),
      member_hints: Type.Optional(Type.Array(AidText, { maxItems: MAX_HINTS })),
      title: Type.Optional(
        Type.String({ maxLength: MAX_TITLE_CHARS, description: 'Shown until the group has synced.' }),
      ),
    }),
    output: Type.Object({
      group_id: GroupId,
      state: Type.Union([Type.Literal('joined'), Type.Literal('joining')]),
      title: Type.String(),
    }),
    errors: ['not_found', 'bad_aid', 'quota_exceeded', 'clock_wrong'],
    tool: {
      name: 'group_join',
      description:
        'Join by link, or by group_id and creator_aid from an invitation. The other members help to find peers.',
      foreignText: true,
      idempotent: true,
    },
  },

  groupGetLink: {
    summary: 'Returns the link of a group.',
    route: 'GET',
    output: Type.Object({ link: Type.String() }),
    errors: ['not_found'],
    tool: { name: 'group_get_link', description: 'The link of a group; anyone with it can join.' },
  },

  groupMembers: {
    summary: 'Lists the members of a group.',
    route: 'GET',
    output: Type.Object({ members: Type.Array(Member) }),
    errors: ['not_found'],
    tool: { name: 'group_members', description: 'Members of a group and their roles.' },
  },

  groupAppend: {
    summary: 'Adds an entry to a group.',
    route: 'POST',
    body: closed({
      kind: Type.Optional(
        Type.String({
          pattern: KIND_PATTERN,
          default: 'msg',
          description:
            'msg; file (ref: object_id); title (body); remove (to: one); role (to: one, body: admin or member); rekey (new link); or your own.',
        }),
      ),
      text: Type.Optional(Type.String({ description: `At most ${sizeText(MAX_ENTRY_BODY_BYTES)} in UTF-8.` })),
      body: Type.Optional(
        Type.String({
          maxLength: MAX_BODY_CHARS,
          contentEncoding: 'base64',
          description: 'In place of text: any bytes.',
        }),
      ),
      ref: Type.Optional(Type.String({ maxLength: MAX_REF_CHARS })),
      reply_to: Type.Optional(EntryId),
      to: Type.Optional(
        Type.Array(AidText, { minItems: 1, maxItems: MAX_MENTIONS, description: 'Agents to mention.' }),
      ),
    }),
    output: Written,
    errors: [
      'not_found',
      'not_member',
      'access_denied',
      'too_large',
      'quota_exceeded',
      'bad_delegation',
      'bad_aid',
      'clock_wrong',
    ],
    tool: { name: 'group_append', description: 'Add an entry to a group, msg by default.' },
  },

  groupRead: {
    summary: 'Reads a filtered page of entries in causal order.',
    route: 'GET',
    query: closed({
      after_seq: AfterSeq,
      limit: Limit,
      kind: Type.Optional(Kind),
      author: Type.Optional(AidText),
      since_ts: Type.Optional(Timestamp),
      until_ts: Type.Optional(Timestamp),
      to: Type.Optional(AidText),
      reply_to: Type.Optional(EntryId),
      wait_s: WaitS,
    }),
    output: Page,
    errors: ['not_found', 'bad_aid'],
    tool: {
      name: 'group_read',
      description: 'Entries of a group, oldest first. Pass scanned_to_seq as the next after_seq.',
      foreignText: true,
    },
  },

  groupMarkRead: {
    summary: 'Moves the read cursor forward. It never moves back.',
    route: 'POST',
    body: closed({ seq: Type.Integer({ minimum: 0, description: 'Last read entry; 0 marks nothing.' }) }),
    output: Type.Object({ read_cursor: Seq, unread_count: Seq }),
    errors: ['not_found'],
    tool: { name: 'group_mark_read', description: 'Mark entries up to seq as read.', idempotent: true },
  },

  groupRetract: {
    summary: 'Withdraws an entry. Only its author and admins can.',
    route: 'POST',
    body: closed({ entry_id: EntryId }),
    output: Written,
    errors: ['not_found', 'not_member', 'access_denied', 'quota_exceeded', 'bad_delegation', 'clock_wrong'],
    tool: { name: 'group_retract', description: 'Withdraw an entry.', destructive: true },
  },

  groupSync: {
    summary: 'Syncs a group with one member now, for diagnosis.',
    route: 'POST',
    body: closed({ peer_aid: AidText }),
    output: Type.Object({ ok: Type.Literal(true), added: Seq, entry_count: Seq }),
    errors: [
      'not_found',
      'not_member',
      'resolve_failed',
      'network_unavailable',
      'clock_wrong',
      'connect_failed',
      'access_denied',
      'protocol_error',
      'timeout',
      'bad_delegation',
    ],
    tool: { name: 'group_sync', description: 'Sync a group with one member now (diagnostic).', idempotent: true },
  },
});
