/** `svc note`: sealed messages that wait for their recipient. */
import { MAX_NOTE_BODY_BYTES, NOTE_TYPE } from '../../../foundation/domain/notes.ts';
import { SvcError } from '../../../foundation/errors.ts';
import { counted, relativeTime } from '../../../foundation/plain-words.ts';
import { sizeText } from '../../../foundation/quantities.ts';
import type { AnswerOf } from '../client.ts';
import type { CommandGroup } from '../command-group.ts';
import { integer } from '../takes.ts';
import { formatFields } from '../text.ts';

type Messages = AnswerOf<'mailboxList'>['messages'];
type Queued = AnswerOf<'mailboxQueued'>['messages'];

/** `msg_type` of a note that is not given as text, unless the command says otherwise. */
const DEFAULT_TYPE = 1;

function bodyOf(base64: string | undefined, text: string | undefined): string {
  if ((base64 === undefined) === (text === undefined))
    throw new SvcError('invalid_request', {
      message:
        'Say who sends, who receives, and what: svc note send <local> <remote> --text "Guten Tag", or the body in base64 in place of --text.',
    });
  return base64 ?? Buffer.from(text ?? '').toString('base64');
}

/** The body as text where it is text, in base64 otherwise. */
function shownBody(base64: string): string {
  const bytes = Buffer.from(base64, 'base64');
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return base64;
  }
}

function messageText({ sender, msg_type, sent_at, message_id, body_base64 }: Messages[number]): string {
  const body = shownBody(body_base64).replaceAll('\n', '\n    ');
  return `${relativeTime(sent_at, Date.now())} ${sender} type ${msg_type} ${message_id}\n    ${body}`;
}

function queuedText({ message_id, recipient, msg_type, sent_at, expires_at, attempts }: Queued[number]): string {
  const [sent, expires] = [sent_at, expires_at].map((time) => relativeTime(time, Date.now()));
  return `${sent} to ${recipient} type ${msg_type} ${message_id}\n    ${counted(attempts, 'attempt')}, expires ${expires}`;
}

const NOTES = {
  text: ({ messages }: { readonly messages: Messages }) =>
    messages.length === 0 ? 'No notes.' : messages.map(messageText).join('\n'),
  quiet: ({ messages }: { readonly messages: Messages }) => messages.map(({ message_id }) => message_id).join('\n'),
};

export function noteCommands(svc: CommandGroup): void {
  const note = svc.group('note', 'sealed notes, for agents that may be offline', [
    'svc note send aid1… aid1… --text "Guten Tag"',
    'svc note poll aid1…',
  ]);
  note.call('send', 'seal a note for an agent and send it', {
    examples: [
      'svc note send aid1… aid1… --text "Guten Tag"',
      'svc note send aid1… aid1… "$(base64 -w0 plan.pdf)" --msg-type 3',
    ],
    takes: {
      '<local>': 'the local agent that sends',
      '<remote>': 'the agent that it is for',
      '[body-base64]': `at most ${sizeText(MAX_NOTE_BODY_BYTES)}`,
      '--text <text>': 'the body as text',
      '--msg-type <number>': integer(`what the body is (default ${DEFAULT_TYPE}; ${NOTE_TYPE.text} with --text)`),
    },
    operation: 'mailboxSend',
    own: true,
    progress: 'sending',
    input: ({ local, remote, body_base64, text, msg_type }) => ({
      aid: local,
      recipient: remote,
      msg_type: msg_type ?? (text === undefined ? DEFAULT_TYPE : NOTE_TYPE.text),
      body_base64: bodyOf(body_base64, text),
    }),
    text: ({ message_id, delivered, replicas, queued }) =>
      formatFields({
        message: message_id,
        delivered: delivered ? 'yes' : 'not yet: the recipient finds it when it is back',
        'kept by': queued
          ? 'this node only: it is queued and sent when another node answers; see "svc note queued"'
          : counted(replicas, 'other node'),
      }),
    quiet: ({ message_id }) => message_id,
  });
  note.call('list', 'show the notes that wait; they stay', {
    examples: ['svc note list aid1…'],
    takes: {
      '<local>': 'the local agent',
      '--limit <count>': integer('at most 500'),
      '--cursor <cursor>': 'next_cursor of the page before',
    },
    operation: 'mailboxList',
    watch: true,

    own: true,
    input: ({ local: aid, ...page }) => ({ aid, ...page }),
    ...NOTES,
    remark: ({ next_cursor }) => next_cursor !== undefined && `More notes follow: --cursor ${next_cursor}`,
  });
  note.call('queued', 'show the notes that no other node has yet', {
    examples: ['svc note queued aid1…'],
    takes: {
      '<local>': 'the local agent that sent them',
      '--limit <count>': integer('at most 500'),
      '--cursor <cursor>': 'next_cursor of the page before',
    },
    operation: 'mailboxQueued',
    watch: true,
    own: true,
    input: ({ local: aid, ...page }) => ({ aid, ...page }),
    text: ({ messages }) => (messages.length === 0 ? 'No queued notes.' : messages.map(queuedText).join('\n')),
    quiet: ({ messages }) => messages.map(({ message_id }) => message_id).join('\n'),
    remark: ({ next_cursor }) => next_cursor !== undefined && `More notes follow: --cursor ${next_cursor}`,
  });
  note.call('unqueue', 'take a queued note back', {
    examples: ['svc note unqueue aid1… 5d41402abc4b2a76b9719d911017c592ae1f1b0c5d41402abc4b2a76b9719d91'],
    takes: { '<local>': 'the local agent', '<message>': 'its message id, as "svc note queued" shows it' },
    loses: ({ message }) => ({
      question: `Take the queued note ${message} back?`,
      back: 'It can only be written again.',
    }),
    operation: 'mailboxQueuedDelete',
    own: true,
    input: ({ local: aid, message: message_id }) => ({ aid, message_id }),
    text: () => 'The note is no longer queued.',
    quiet: (_, { message }) => message,
  });
  note.call('del', 'delete one note that waits', {
    examples: ['svc note del aid1… 5d41402abc4b2a76b9719d911017c592ae1f1b0c5d41402abc4b2a76b9719d91'],
    takes: { '<local>': 'the local agent', '<message>': 'its message id, as "svc note list" shows it' },
    loses: ({ message }) => ({
      question: `Delete the note ${message}?`,
      back: 'Only its sender can send it again.',
    }),
    operation: 'mailboxDelete',
    own: true,
    input: ({ local: aid, message: message_id }) => ({ aid, message_id }),
    text: () => 'The note is deleted.',
    quiet: (_, { message }) => message,
  });
  note.call('poll', 'collect the notes that wait; they are deleted', {
    examples: ['svc note poll aid1…', 'svc note poll aid1… -y --json   # in a script'],
    takes: { '<local>': 'the local agent' },
    loses: ({ local }) => ({
      question: `Collect the notes of ${local}, and delete them here?`,
      back: 'Collected notes are shown this once, and only their senders can send them again; "svc note list" shows them and they stay.',
    }),
    operation: 'mailboxPoll',
    own: true,
    input: ({ local: aid }) => ({ aid }),
    ...NOTES,
    remark: ({ has_more }) => has_more && 'More notes wait: poll again.',
  });
}
