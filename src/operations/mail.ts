/** Operations on the mailboxes of local agents: notes. */
import { Type } from 'typebox';
import { SHA256_PATTERN } from '../foundation/domain/hashes.ts';
import {
  MAX_NOTE_BODY_BYTES,
  MAX_NOTE_TYPE,
  MAX_NOTES_PAGE,
  MAX_NOTES_PAGE_BYTES,
  NOTE_TYPE,
} from '../foundation/domain/notes.ts';
import { sizeText, timeText } from '../foundation/quantities.ts';
import { MAX_NOTE_TTL_S } from '../foundation/records/types.ts';
import { declare } from './declare.ts';
import { AidParams, AidText, Base64, Cursor, closed, Ok, Timestamp } from './schemas.ts';

/** Notes per page of a list, unless `limit` says otherwise. */
export const MAILBOX_PAGE_DEFAULT = 100;

const COMMON = { params: AidParams, heartbeat: true, errors: ['bad_aid', 'not_found'], tag: 'Mailbox' } as const;

const Message = Type.Object({
  message_id: Type.String({ description: 'The same for every copy of a note: a note that comes twice is one.' }),
  sender: AidText,
  msg_type: Type.Integer({
    minimum: 0,
    maximum: MAX_NOTE_TYPE,
    description: `${NOTE_TYPE.text}: text; ${NOTE_TYPE.invitation}: invitation to a group.`,
  }),
  body_base64: Base64,
  sent_at: Timestamp,
});

const Queued = Type.Object({
  message_id: Type.String(),
  recipient: AidText,
  msg_type: Type.Integer({ minimum: 0, maximum: MAX_NOTE_TYPE }),
  size: Type.Integer({ description: 'Bytes of the body.' }),
  sent_at: Timestamp,
  expires_at: Timestamp,
  next_attempt_at: Timestamp,
  attempts: Type.Integer({ description: 'Attempts since it was queued.' }),
});

export const mailOperations = declare(COMMON, {
  mailboxSend: {
    summary: `Seals a note for an agent, hands it over where the agent is there, and leaves it on the network for ${timeText(MAX_NOTE_TTL_S * 1000)}.`,
    route: 'POST /agents/{aid}/mailbox/send',
    body: closed({
      recipient: AidText,
      msg_type: Type.Integer({
        minimum: 0,
        maximum: MAX_NOTE_TYPE,
        description: `What the body is; ${NOTE_TYPE.text}: text.`,
      }),
      body_base64: Type.String({
        contentEncoding: 'base64',
        description: `At most ${sizeText(MAX_NOTE_BODY_BYTES)} when decoded.`,
      }),
    }),
    output: Type.Object({
      ok: Type.Literal(true),
      message_id: Type.String(),
      replicas: Type.Integer({ minimum: 0, description: 'Nodes of the network that keep the note so far.' }),
      delivered: Type.Boolean({ description: "The recipient's node has it already." }),
      queued: Type.Boolean({
        description: `Status 202: no other node has the note yet. It is on disk here and is sent again, over restarts, for up to ${timeText(MAX_NOTE_TTL_S * 1000)}.`,
      }),
    }),
    otherStatuses: [202],
    errors: [
      'bad_aid',
      'not_found',
      'too_large',
      'rate_limited',
      'quota_exceeded',
      'resolve_failed',
      'network_unavailable',
      'clock_wrong',
      'bad_delegation',
      'not_acknowledged',
      'timeout',
    ],
    tool: { name: 'svc_mailbox_send', description: 'Send a sealed note to an agent, online or not.' },
  },

  mailboxList: {
    summary: 'Lists the notes that wait, oldest first. Nothing changes, and it does not count as a heartbeat.',
    route: 'GET /agents/{aid}/mailbox',
    query: closed({
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_NOTES_PAGE, default: MAILBOX_PAGE_DEFAULT })),
      cursor: Type.Optional(Cursor),
    }),
    output: Type.Object({
      messages: Type.Array(Message),
      next_cursor: Type.Optional(Type.String({ description: 'Present where more notes follow.' })),
    }),
    tool: {
      name: 'svc_mailbox_list',
      description: 'Notes that wait for an agent; they stay.',
      omit: ['limit', 'cursor'],
      foreignText: true,
    },
  },

  mailboxDelete: {
    summary: 'Deletes one note that waits, here and on the network.',
    route: 'DELETE /agents/{aid}/mailbox/{message_id}',
    params: closed({ aid: AidText, message_id: Type.String({ pattern: SHA256_PATTERN }) }),
    output: Ok,
  },

  mailboxQueued: {
    summary: 'Lists the notes that are queued here because no other node has them yet, oldest first.',
    route: 'GET /agents/{aid}/mailbox/queued',
    query: closed({
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_NOTES_PAGE, default: MAILBOX_PAGE_DEFAULT })),
      cursor: Type.Optional(Cursor),
    }),
    output: Type.Object({
      messages: Type.Array(Queued),
      next_cursor: Type.Optional(Type.String({ description: 'Present if more notes follow.' })),
    }),
  },

  mailboxQueuedDelete: {
    summary: 'Takes a queued note back. It may still arrive if it is being sent.',
    route: 'DELETE /agents/{aid}/mailbox/queued/{message_id}',
    params: closed({ aid: AidText, message_id: Type.String({ pattern: SHA256_PATTERN }) }),
    output: Ok,
  },

  mailboxPoll: {
    summary: `Returns the notes that wait, oldest first, at most ${MAX_NOTES_PAGE} and ${sizeText(MAX_NOTES_PAGE_BYTES)}, and deletes them.`,
    route: 'POST /agents/{aid}/mailbox/poll',
    output: Type.Object({
      messages: Type.Array(Message),
      has_more: Type.Boolean({ description: 'More notes wait: poll again.' }),
    }),
    tool: {
      name: 'svc_mailbox_poll',
      description: 'Collect the notes that wait for an agent; they are deleted.',
      destructive: true,
      foreignText: true,
    },
  },
});
