/** Operations on chat: conversations of two agents that have agreed on it. */
import { Type } from 'typebox';
import {
  CONTACT_STATES,
  ENTRY_STATUSES,
  MAX_REQUEST_NOTE_CHARS,
  MAX_TEXT_BYTES,
  REQUEST_LIFE_MS,
} from '../foundation/domain/chat.ts';
import { SHA256_PATTERN } from '../foundation/domain/hashes.ts';
import { MAX_FILE_PATH_CHARS } from '../foundation/domain/objects.ts';
import { MAX_EXCERPT_CHARS } from '../foundation/excerpt.ts';
import { sizeText, timeText } from '../foundation/quantities.ts';
import { declare } from './declare.ts';
import { NextCursor, PAGE_MEMBERS, PageQuery } from './paging.ts';
import { AidParams, AidText, closed, exactlyOne, nullable, Ok, oneOf, Timestamp } from './schemas.ts';

/** Entries of a page where nothing is said, and at most. */
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
  seq: Type.Integer({ minimum: 1, description: 'Place in this log, without holes.' }),
  id: Type.String({ description: 'The same on both sides.' }),
  dir: Direction,
  at: Timestamp,
  kind: Type.Union([Type.Literal('text'), Type.Literal('file')]),
  text: Type.Optional(Type.String()),
  object_id: Type.Optional(Type.String()),
  name: Type.Optional(Type.String()),
  size: Type.Optional(Seq),
  url: Type.Optional(Type.String({ description: '`svc://<sender>/cas/<object_id>`.' })),
  status: oneOf(ENTRY_STATUSES, {
    description: "`sent`: the peer's node has it; `dropped`: it was not delivered before the friendship ended.",
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
    Type.String({ pattern: SHA256_PATTERN, description: "An object of the agent's. Not together with path." }),
  ),
});

export const chatOperations = declare(COMMON, {
  chatRequest: {
    summary: `Asks a peer to chat, accepts where the peer has asked, and lifts a block. Open for ${timeText(REQUEST_LIFE_MS)}.`,
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
    summary: 'Accepts the request of a peer.',
    route: 'POST /agents/{aid}/chat/accept',
    body: PeerBody,
    output: Relation,
    errors: [...ERRORS, 'wrong_state', 'quota_exceeded'],
    tool: { name: 'chat_accept', description: 'Accept a chat request.', idempotent: true },
  },

  chatRefuse: {
    summary: 'Refuses the request of a peer, which is told.',
    route: 'POST /agents/{aid}/chat/refuse',
    body: PeerBody,
    output: Ok,
    errors: [...ERRORS, 'wrong_state'],
    tool: { name: 'chat_refuse', description: 'Refuse a chat request.' },
  },

  chatRemove: {
    summary: 'Ends a friendship or withdraws a request; the peer is told. The log stays.',
    route: 'POST /agents/{aid}/chat/remove',
    body: PeerBody,
    output: Ok,
    errors: [...ERRORS, 'wrong_state'],
    tool: { name: 'chat_remove', description: 'End a chat friendship, or withdraw a request.', destructive: true },
  },

  chatBlock: {
    summary: 'Hears nothing more from a peer, which is not told. A request of ours lifts it.',
    route: 'POST /agents/{aid}/chat/block',
    body: PeerBody,
    output: Ok,
    errors: [...ERRORS, 'quota_exceeded'],
    tool: { name: 'chat_block', description: 'Block an agent in chat.', destructive: true, idempotent: true },
  },

  chatSend: {
    summary: 'Sends a text, or a file with or without one; where the peer is away it goes out later, in order.',
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
    summary: 'Marks a conversation as read up to a place; the mark never moves back.',
    route: 'POST /agents/{aid}/chat/mark-read',
    body: closed({
      ...Peer,
      scanned_to: Type.Optional(
        Type.Integer({ minimum: 0, default: 0, description: 'As chat_read gave it; 0: the whole log.' }),
      ),
    }),
    output: Type.Object({ read_cursor: Seq, unread_count: Seq }),
    errors: ERRORS,
    tool: { name: 'chat_mark_read', description: 'Mark a conversation as read.', idempotent: true },
  },

  chatContacts: {
    summary: 'Friends, open requests in both directions, and blocked peers, in this order.',
    route: 'GET /agents/{aid}/chat/contacts',
    query: PageQuery,
    output: Type.Object({
      friends: Type.Array(
        Type.Object({
          peer: AidText,
          since: Timestamp,
          unread_count: Seq,
          last_at: Type.Union([Timestamp, Type.Null()], { description: 'Null: nothing was said yet.' }),
          last_seq: Type.Integer({ minimum: 0, description: 'Place of the newest entry; 0: nothing was said yet.' }),
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
    summary: 'Reads a conversation, oldest first. Nothing is marked as read.',
    route: 'GET /agents/{aid}/chat/peers/{peer}',
    params: closed({ aid: AidText, peer: AidText }),
    query: closed({
      after_seq: Type.Optional(
        Type.Integer({ minimum: 0, default: 0, description: '`scanned_to` of the page before.' }),
      ),
      before_seq: Type.Optional(
        Type.Integer({
          minimum: 1,
          description: 'The entries before this one instead: the newest of them, oldest first.',
        }),
      ),
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: CHAT_PAGE_MAX, default: CHAT_PAGE_DEFAULT })),
    }),
    output: Type.Object({
      entries: Type.Array(Entry),
      scanned_to: Type.Integer({ minimum: 0, description: 'The next `after_seq`.' }),
      has_more: Type.Boolean({ description: 'More follow; with `before_seq`: more go before.' }),
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
