/** `svc note`: sealed messages that are stored until their recipient reads them. */
import { pluralize, relativeTime, sizeText } from '../../../foundation/display-text.ts';
import { MAX_NOTE_BODY_BYTES, NOTE_TYPE } from '../../../foundation/domain/notes.ts';
import { SvcError } from '../../../foundation/errors.ts';
import type { AnswerOf } from '../client.ts';
import type { CommandGroup } from '../command-group.ts';
import { integer } from '../options.ts';
import { formatFields } from '../text.ts';

type Messages = AnswerOf<'mailboxList'>['messages'];
type Queued = AnswerOf<'mailboxQueued'>['messages'];

/** Default `msg_type` of a note that is not text. */
const DEFAULT_TYPE = 1;

function bodyOf(base64: string | undefined, text: string | undefined): string {
  if ((base64 === undefined) === (text === undefined))
    throw new SvcError('invalid_request', {
      message:
        'Give the recipient and the body: svc note send <agent> --text "Guten Tag", or the body in base64 instead of --text.',
    });
  return base64 ?? Buffer.from(text ?? '').toString('base64');
}

/** The body as text if it is UTF-8, otherwise in base64. */
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
  return `${sent} to ${recipient} type ${msg_type} ${message_id}\n    ${pluralize(attempts, 'attempt')}, expires ${expires}`;
}

const NOTES = {
  text: ({ messages }: { readonly messages: Messages }) =>
    messages.length === 0 ? 'No notes.' : messages.map(messageText).join('\n'),
  quiet: ({ messages }: { readonly messages: Messages }) => messages.map(({ message_id }) => message_id).join('\n'),
};

function moreNotes({ next_cursor }: { readonly next_cursor?: string }): string | false {
  return next_cursor !== undefined && `More notes: --cursor ${next_cursor}`;
}

export function noteCommands(svc: CommandGroup): void {
  const note = svc.group('note', 'sealed notes for agents that may be offline', [
    'svc note send bob --text "Guten Tag"',
    'svc note poll --as home',
  ]);
  const local = note.acting('<local>');
  const sender = note.acting('<local>', 'the local sender');
  sender.run('send', 'send a sealed note to an agent', {
    examples: [
      'svc note send bob --text "Guten Tag"',
      'svc note send bob "$(base64 -w0 plan.pdf)" --as home --msg-type 3',
    ],
    options: {
      '<remote>': 'the recipient',
      '[body-base64]': `at most ${sizeText(MAX_NOTE_BODY_BYTES)}`,
      '--text <text>': 'the body as text',
      '--msg-type <number>': integer(`type of the body (default ${DEFAULT_TYPE}; ${NOTE_TYPE.text} with --text)`),
    },
    progress: 'sending',
    run: async (context, { aid, remote: recipient, body_base64: bytes, text, msg_type: type }) => {
      const msg_type = type ?? (text === undefined ? DEFAULT_TYPE : NOTE_TYPE.text);
      const note = { aid, recipient, msg_type, body_base64: bodyOf(bytes, text) };
      return context.withLocalAgentHint(context.client.mailboxSend(note));
    },
    text: ({ message_id, delivered, replicas, queued }) =>
      formatFields({
        message: message_id,
        delivered: delivered ? 'yes' : 'not yet: the recipient receives it when it is back',
        'stored at': queued
          ? 'this node only: it is queued and sent when another node responds; see "svc note queued"'
          : pluralize(replicas, 'other node'),
      }),
    quiet: ({ message_id }) => message_id,
  });
  local.call('mailboxList', 'list --read', 'list the received notes without deleting them', {
    examples: ['svc note list'],
    watch: true,
    own: true,
    ...NOTES,
    remark: moreNotes,
  });
  sender.call('mailboxQueued', 'queued', 'list the notes that are still queued on this node', {
    examples: ['svc note queued'],
    watch: true,
    own: true,
    text: ({ messages }) => (messages.length === 0 ? 'No queued notes.' : messages.map(queuedText).join('\n')),
    quiet: ({ messages }) => messages.map(({ message_id }) => message_id).join('\n'),
    remark: moreNotes,
  });
  local.call('mailboxQueuedDelete', 'unqueue <message>', 'remove a note from the queue', {
    examples: ['svc note unqueue 5d41402abc4b2a76b9719d911017c592ae1f1b0c5d41402abc4b2a76b9719d91'],
    help: { message_id: 'its message ID, as shown by "svc note queued"' },
    confirmation: ({ message_id }) => ({
      question: `Remove the note ${message_id} from the queue?`,
      consequence: 'To send it you would have to write it again.',
    }),
    own: true,
    text: 'Removed the note from the queue.',
  });
  local.call('mailboxDelete', 'rm <message>', 'delete one received note', {
    examples: ['svc note rm 5d41402abc4b2a76b9719d911017c592ae1f1b0c5d41402abc4b2a76b9719d91'],
    help: { message_id: 'its message ID, as shown by "svc note list"' },
    confirmation: ({ message_id }) => ({
      question: `Delete the note ${message_id}?`,
      consequence: 'Only its sender can send it again.',
    }),
    own: true,
    text: 'Deleted the note.',
  });
  local.call('mailboxPoll', 'poll', 'fetch the received notes and delete them here', {
    examples: ['svc note poll', 'svc note poll --as home --json   # in a script'],
    confirmation: ({ aid }) => ({
      question: `Fetch the notes of ${aid} and delete them here?`,
      consequence:
        'Fetched notes are shown once, and only their senders can send them again. "svc note list" shows notes without deleting them.',
      onlyAtTerminal: true,
    }),
    own: true,
    ...NOTES,
    remark: ({ has_more }) => has_more && 'More notes are pending: poll again.',
  });
}
