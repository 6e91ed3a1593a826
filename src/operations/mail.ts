/** Operations on the mailboxes of local agents: notes. */
import { Type } from 'typebox';
import { declare } from './operation.ts';
import { AidParams, AidText, Base64, closed, NONE, Timestamp } from './schemas.ts';

/** Notes per page of a list, unless `limit` says otherwise. */
export const MAILBOX_PAGE_DEFAULT = 100;
/** Most notes per page. */
export const MAILBOX_PAGE_MAX = 500;
/** Largest `msg_type`. */
const MSG_TYPE_MAX = 0xffff_ffff;

const MAILBOX = {
  params: AidParams,
  query: NONE,
  body: NONE,
  heartbeat: true,
  permission: 'write',
  errors: ['bad_aid', 'not_found'],
  tag: 'Mailbox',
} as const;

const Message = Type.Object({
  message_id: Type.String({ description: 'The same for every copy of a note: a note that comes twice is one.' }),
  sender: AidText,
  msg_type: Type.Integer({ minimum: 0, maximum: MSG_TYPE_MAX, description: '3: text; 16: invitation to a group.' }),
  body_base64: Base64,
  sent_at: Timestamp,
});

export const mailOperations = declare({
  mailboxSend: {
    ...MAILBOX,
    summary:
      'Seals a note for an agent, hands it over where the agent is there, and leaves it on the network for 7 days.',
    method: 'POST',
    path: '/agents/{aid}/mailbox/send',
    body: closed({
      recipient: AidText,
      msg_type: Type.Integer({ minimum: 0, maximum: MSG_TYPE_MAX, description: 'What the body is; 3: text.' }),
      body_base64: Type.String({ contentEncoding: 'base64', description: 'At most 32 KiB when decoded.' }),
    }),
    output: Type.Object({
      ok: Type.Literal(true),
      message_id: Type.String(),
      replicas: Type.Integer({ minimum: 0, description: 'Nodes of the network that keep the note.' }),
      delivered: Type.Boolean({ description: "The recipient's node has it already." }),
    }),
    errors: [
      'bad_aid',
      'not_found',
      'too_large',
      'rate_limited',
      'quota_exceeded',
      'resolve_failed',
      'bad_delegation',
      'not_acknowledged',
      'timeout',
    ],
    tool: { name: 'svc_mailbox_send', description: 'Send a sealed note to an agent, online or not.' },
  },

  mailboxList: {
    ...MAILBOX,
    summary: 'Lists the notes that wait, oldest first. Nothing changes, and it does not count as a heartbeat.',
    method: 'GET',
    path: '/agents/{aid}/mailbox',
    query: closed({
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: MAILBOX_PAGE_MAX, default: MAILBOX_PAGE_DEFAULT })),
      cursor: Type.Optional(Type.String({ maxLength: 32, description: '`next_cursor` of the page before.' })),
    }),
    output: Type.Object({
      messages: Type.Array(Message),
      next_cursor: Type.Optional(Type.String({ description: 'Present where more notes follow.' })),
    }),
    permission: 'read',
    heartbeat: false,
    tool: {
      name: 'svc_mailbox_list',
      description: 'Notes that wait for an agent; they stay.',
      omit: ['limit', 'cursor'],
      foreignText: true,
    },
  },

  mailboxPoll: {
    ...MAILBOX,
    summary: 'Returns the notes that wait, oldest first, at most 500 and 8 MiB, and deletes them.',
    method: 'POST',
    path: '/agents/{aid}/mailbox/poll',
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
