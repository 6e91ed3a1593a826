/** Operations on notes and mailboxes. */
import { Type } from 'typebox';
import { sizeText, timeText } from '../foundation/display-text.ts';
import {
  MAX_NOTE_BODY_BYTES,
  MAX_NOTE_TYPE,
  MAX_NOTES_PAGE,
  MAX_NOTES_PAGE_BYTES,
  MAX_READ_NOTES,
  NOTE_TYPE,
} from '../foundation/domain/notes.ts';
import { SHA256_PATTERN } from '../foundation/domain/objects.ts';
import { MAX_NOTE_TTL_S } from '../foundation/records/types.ts';
import { declare } from './declare.ts';
import { AidParams, AidText, Base64, BodyText, Cursor, closed, exactlyOne, Ok, Timestamp, WaitS } from './schemas.ts';

/** Default page size of a list of notes. */
export const MAILBOX_PAGE_DEFAULT = 100;

const COMMON = { params: AidParams, heartbeat: true, errors: ['bad_aid', 'not_found'], tag: 'Mailbox' } as const;

const Message = Type.Object({
  message_id: Type.String({ description: 'Identical in every copy of a note. Drop a note whose ID you have seen.' }),
  sender: AidText,
  msg_type: Type.Integer({
    minimum: 0,
    maximum: MAX_NOTE_TYPE,
    description: `${NOTE_TYPE.text}: text; ${NOTE_TYPE.invitation}: invitation to a group.`,
  }),
  body_base64: Base64,
  text: BodyText,
  sent_at: Timestamp,
});

const SendBody = closed({
  recipient: AidText,
  text: Type.Optional(Type.String({ description: `At most ${sizeText(MAX_NOTE_BODY_BYTES)} in UTF-8.` })),
  body_base64: Type.Optional(Type.String({ contentEncoding: 'base64', description: 'In place of text: any bytes.' })),
  msg_type: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: MAX_NOTE_TYPE,
      default: NOTE_TYPE.text,
      description: `Kind of the body; ${NOTE_TYPE.text}: text.`,
    }),
  ),
});

const Queued = Type.Object({
  message_id: Type.String(),
  recipient: AidText,
  msg_type: Type.Integer({ minimum: 0, maximum: MAX_NOTE_TYPE }),
  size: Type.Integer({ description: 'Size of the body in bytes.' }),
  sent_at: Timestamp,
  expires_at: Timestamp,
  next_attempt_at: Timestamp,
  attempts: Type.Integer({ description: 'Attempts since the note was queued.' }),
});

export const mailOperations = declare(COMMON, {
  mailboxSend: {
    summary: `Seals a note, delivers it if the recipient is online, and stores it in the network for ${timeText(MAX_NOTE_TTL_S * 1000)}.`,
    route: 'POST /agents/{aid}/mailbox/send',
    body: SendBody,
    shownBody: exactlyOne(SendBody, ['text', 'body_base64']),
    output: Type.Object({
      ok: Type.Literal(true),
      message_id: Type.String(),
      replicas: Type.Integer({ minimum: 0, description: 'Nodes that store the note so far.' }),
      delivered: Type.Boolean({ description: "The recipient's node has the note." }),
      queued: Type.Boolean({
        description: `Status 202: no other node has the note yet. This node stores it and retries for up to ${timeText(MAX_NOTE_TTL_S * 1000)}, also after restarts.`,
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
    summary: 'Lists the notes in the mailbox, oldest first. Nothing is deleted, and it is no heartbeat.',
    route: 'GET /agents/{aid}/mailbox',
    query: closed({
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_NOTES_PAGE, default: MAILBOX_PAGE_DEFAULT })),
      cursor: Type.Optional(Cursor),
      wait_s: WaitS,
      read: Type.Optional(
        Type.Boolean({
          description: `The last ${MAX_READ_NOTES} notes that a channel marked as read, in place of others.`,
        }),
      ),
    }),
    output: Type.Object({
      messages: Type.Array(Message),
      next_cursor: Type.Optional(Type.String({ description: 'Absent on the last page.' })),
    }),
    tool: {
      name: 'svc_mailbox_list',
      description: "Notes in an agent's mailbox; they stay.",
      omit: ['limit', 'cursor', 'read'],
      foreignText: true,
    },
  },

  mailboxDelete: {
    summary: 'Deletes a note from the mailbox and from the network.',
    route: 'DELETE /agents/{aid}/mailbox/{message_id}',
    params: closed({ aid: AidText, message_id: Type.String({ pattern: SHA256_PATTERN }) }),
    output: Ok,
  },

  mailboxQueued: {
    summary: 'Lists the notes in the outbox, oldest first. No other node has them yet.',
    route: 'GET /agents/{aid}/mailbox/queued',
    query: closed({
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_NOTES_PAGE, default: MAILBOX_PAGE_DEFAULT })),
      cursor: Type.Optional(Cursor),
    }),
    output: Type.Object({
      messages: Type.Array(Queued),
      next_cursor: Type.Optional(Type.String({ description: 'Absent on the last page.' })),
    }),
  },

  mailboxQueuedDelete: {
    summary: 'Withdraws a note from the outbox. It may still arrive if it is being sent.',
    route: 'DELETE /agents/{aid}/mailbox/queued/{message_id}',
    params: closed({ aid: AidText, message_id: Type.String({ pattern: SHA256_PATTERN }) }),
    output: Ok,
  },

  mailboxPoll: {
    summary: `Returns and deletes the notes in the mailbox, oldest first: at most ${MAX_NOTES_PAGE} notes and ${sizeText(MAX_NOTES_PAGE_BYTES)}.`,
    route: 'POST /agents/{aid}/mailbox/poll',
    output: Type.Object({
      messages: Type.Array(Message),
      has_more: Type.Boolean({ description: 'There are more notes. Poll again.' }),
    }),
    tool: {
      name: 'svc_mailbox_poll',
      description: "Get an agent's new notes; they are deleted.",
      destructive: true,
      foreignText: true,
    },
  },
});
