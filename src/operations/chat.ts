/** Operations on chat between two agents that accepted each other. */
import { Type } from 'typebox';
import { MAX_EXCERPT_CHARS, sizeText, timeText } from '../foundation/display-text.ts';
import {
  CONTACT_STATES,
  ENTRY_STATUSES,
  MAX_REQUEST_NOTE_CHARS,
  MAX_TEXT_BYTES,
  REQUEST_LIFE_MS,
} from '../foundation/domain/chat.ts';
import { MAX_FILE_PATH_CHARS, SHA256_PATTERN } from '../foundation/domain/objects.ts';
import { declare } from './declare.ts';
import { NextCursor, PAGE_MEMBERS, PageQuery } from './paging.ts';
import { AidParams, AidText, closed, exactlyOne, nullable, Ok, oneOf, Timestamp, WaitS } from './schemas.ts';

/** Default and largest page of entries. */
export const CHAT_PAGE_DEFAULT = 50;
export const CHAT_PAGE_MAX = 200;

const COMMON = { params: AidParams, heartbeat: true, tag: 'Chat' } as const;
const ERRORS = ['bad_aid', 'not_found', 'self'] as const;

const Seq = Type.Integer({ minimum: 0 });
const Peer = { peer: AidText };
const PeerBody = closed(Peer);
const Relation = Type.Object({ state: oneOf(CONTACT_STATES) });

const Direction = Type.Union([Type.Literal('in'), Type.Literal('out')]);

const Entry = Type.Object({
  seq: Type.Integer({ minimum: 1, description: 'Position in this log, without gaps.' }),
  id: Type.String({ description: 'The same at both agents.' }),
  dir: Direction,
  at: Timestamp,
  kind: Type.Union([Type.Literal('text'), Type.Literal('file')]),
  text: Type.Optional(Type.String()),
  object_id: Type.Optional(Type.String()),
  name: Type.Optional(Type.String()),
  size: Type.Optional(Seq),
  url: Type.Optional(Type.String({ description: '`svc://<sender>/cas/<object_id>`.' })),
  status: oneOf(ENTRY_STATUSES, {
    description: "`sent`: received by the peer's node. `dropped`: not delivered before the friendship ended.",
  }),
});

const Waiting = Type.Object({ peer: AidText, since: Timestamp, note: Type.String() });

/** A text, a file, or both. */
const SendBody = closed({
  ...Peer,
  text: Type.Optional(Type.String({ description: `At most ${sizeText(MAX_TEXT_BYTES)}.` })),
  path: Type.Optional(
    Type.String({ minLength: 1, maxLength: MAX_FILE_PATH_CHARS, description: 'A file below files_root.' }),
  ),
  object_id: Type.Optional(
    Type.String({ pattern: SHA256_PATTERN, description: 'An object of the agent. Not together with path.' }),
  ),
});

export const chatOperations = declare(COMMON, {
  chatRequest: {
    summary: `Sends a chat request, or accepts the request of the peer, and removes a block. Valid for ${timeText(REQUEST_LIFE_MS)}.`,
    route: 'POST /agents/{aid}/chat/request',
    body: closed({
      ...Peer,
      note: Type.Optional(Type.String({ description: `At most ${MAX_REQUEST_NOTE_CHARS} characters.` })),
    }),
    output: Relation,
    errors: [...ERRORS, 'too_large', 'wrong_state', 'quota_exceeded'],
    tool: {
      name: 'chat_request',
      description: 'Ask an agent to chat.',
      idempotent: true,
    },
  },

  chatAccept: {
    summary: 'Accepts a chat request.',
    route: 'POST /agents/{aid}/chat/accept',
    body: PeerBody,
    output: Relation,
    errors: [...ERRORS, 'wrong_state', 'quota_exceeded'],
    tool: { name: 'chat_accept', description: 'Accept a chat request.', idempotent: true },
  },

  chatRefuse: {
    summary: 'Refuses a chat request and notifies the peer.',
    route: 'POST /agents/{aid}/chat/refuse',
    body: PeerBody,
    output: Ok,
    errors: [...ERRORS, 'wrong_state'],
    tool: { name: 'chat_refuse', description: 'Refuse a chat request.' },
  },

  chatRemove: {
    summary: 'Ends a friendship or withdraws a request, and notifies the peer. The log stays.',
    route: 'POST /agents/{aid}/chat/remove',
    body: PeerBody,
    output: Ok,
    errors: [...ERRORS, 'wrong_state'],
    tool: { name: 'chat_remove', description: 'End a chat friendship, or withdraw a request.', destructive: true },
  },

  chatBlock: {
    summary: 'Blocks a peer without notifying it. A new request to the peer removes the block.',
    route: 'POST /agents/{aid}/chat/block',
    body: PeerBody,
    output: Ok,
    errors: [...ERRORS, 'quota_exceeded'],
    tool: { name: 'chat_block', description: 'Block an agent in chat.', destructive: true, idempotent: true },
  },

  chatSend: {
    summary: 'Sends a text, a file, or both. If the peer is offline, they are delivered later, in order.',
    route: 'POST /agents/{aid}/chat/send',
    body: SendBody,
    shownBody: exactlyOne(SendBody, ['path', 'object_id'], true),
    output: Type.Object({
      seq: Type.Integer({ minimum: 1 }),
      status: Type.Union([Type.Literal('sent'), Type.Literal('queued')]),
    }),
    errors: [
      ...ERRORS,
      'not_friends',
      'too_large',
      'quota_exceeded',
      'local_only',
      'files_root_required',
      'wrong_state',
      'not_writable',
    ],
    tool: {
      name: 'chat_send',
      description: 'Send text, or a file (path or object_id, not both) with or without text.',
    },
  },

  chatMarkRead: {
    summary: 'Marks a conversation as read up to a position. The position never moves back.',
    route: 'POST /agents/{aid}/chat/mark-read',
    body: closed({
      ...Peer,
      scanned_to: Type.Optional(
        Type.Integer({ minimum: 0, default: 0, description: 'From chat_read; 0: the whole log.' }),
      ),
    }),
    output: Type.Object({ read_cursor: Seq, unread_count: Seq }),
    errors: ERRORS,
    tool: { name: 'chat_mark_read', description: 'Mark a conversation as read.', idempotent: true },
  },

  chatContacts: {
    summary: 'Lists friends, open requests in both directions, and blocked peers, in this order.',
    route: 'GET /agents/{aid}/chat/contacts',
    query: PageQuery,
    output: Type.Object({
      friends: Type.Array(
        Type.Object({
          peer: AidText,
          since: Timestamp,
          unread_count: Seq,
          last_at: Type.Union([Timestamp, Type.Null()], { description: 'Null if there are no entries.' }),
          last_seq: Type.Integer({ minimum: 0, description: 'Position of the newest entry, or 0.' }),
          last: nullable(
            Type.Object(
              {
                dir: Direction,
                at: Timestamp,
                text: Type.String({
                  description: `Its first ${MAX_EXCERPT_CHARS} characters, or the name of its file.`,
                }),
                status: oneOf(ENTRY_STATUSES),
              },
              { description: 'The newest entry.' },
            ),
          ),
        }),
      ),
      out_pending: Type.Array(Waiting),
      in_pending: Type.Array(Waiting),
      blocked: Type.Array(Type.Object({ peer: AidText, since: Timestamp })),
      next_cursor: NextCursor,
    }),
    errors: ['bad_aid', 'not_found'],
    tool: {
      name: 'chat_contacts',
      description: 'Friends, chat requests, blocked peers.',
      omit: PAGE_MEMBERS,
      foreignText: true,
    },
  },

  chatRead: {
    summary: 'Reads a conversation, oldest entry first. Nothing is marked as read.',
    route: 'GET /agents/{aid}/chat/peers/{peer}',
    params: closed({ aid: AidText, peer: AidText }),
    query: closed({
      after_seq: Type.Optional(
        Type.Integer({ minimum: 0, default: 0, description: '`scanned_to` of the previous page.' }),
      ),
      before_seq: Type.Optional(
        Type.Integer({
          minimum: 1,
          description: 'Read the newest entries before this one instead, oldest first.',
        }),
      ),
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: CHAT_PAGE_MAX, default: CHAT_PAGE_DEFAULT })),
      wait_s: WaitS,
    }),
    output: Type.Object({
      entries: Type.Array(Entry),
      scanned_to: Type.Integer({ minimum: 0, description: 'The next `after_seq`.' }),
      has_more: Type.Boolean({
        description: 'There are more entries: after this page, or with `before_seq` before it.',
      }),
      read_cursor: Seq,
      unread_count: Seq,
    }),
    errors: ERRORS,
    tool: {
      name: 'chat_read',
      description: 'Read a conversation; page with scanned_to as after_seq.',
      omit: ['before_seq'],
      foreignText: true,
    },
  },
});
