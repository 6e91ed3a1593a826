/** `svc note`: sealed messages that wait for their recipient. */
import { type Command, Option } from 'commander';
import { MAX_NOTE_BODY_BYTES, NOTE_TYPE } from '../../../foundation/domain/notes.ts';
import { SvcError } from '../../../foundation/errors.ts';
import { sizeText } from '../../../foundation/quantities.ts';
import type { ContextOf, SvcClient } from '../context.ts';
import { examples } from '../examples.ts';
import { counted, formatFields, safeText } from '../text.ts';
import { integer } from '../values.ts';

interface SendOptions {
  readonly msgType?: number;
  readonly text?: string;
}

interface ListOptions {
  readonly limit?: number;
  readonly cursor?: string;
}

type Message = Awaited<ReturnType<SvcClient['mailboxList']>>['messages'][number];

/** `msg_type` of a note that is not given as text, unless the command says otherwise. */
const DEFAULT_TYPE = 1;

function bodyOf(base64: string | undefined, text: string | undefined): string {
  if ((base64 === undefined) === (text === undefined))
    throw new SvcError('invalid_request', { message: 'Give the body in base64, or --text: one of the two.' });
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

/** What others wrote is shown, never obeyed: `safeText` escapes what a terminal would act on. */
function messageText(message: Message): string {
  const { sender, msg_type, sent_at, message_id, body_base64 } = message;
  const body = shownBody(body_base64).replaceAll('\n', '\n    ');
  return safeText(`${sent_at} ${sender} type ${msg_type} ${message_id}\n    ${body}`);
}

function listText(messages: readonly Message[]): string {
  return messages.length === 0 ? 'No notes.' : messages.map(messageText).join('\n');
}

export function noteCommands(program: Command, contextOf: ContextOf): void {
  const note = program
    .command('note')
    .description('sealed notes, for agents that may be offline')
    .addHelpText('after', examples('svc note send aid1… aid1… --text "Guten Tag"', 'svc note poll aid1…'));
  note
    .command('send')
    .description('seal a note for an agent and send it')
    .addHelpText(
      'after',
      examples(
        'svc note send aid1… aid1… --text "Guten Tag"',
        'svc note send aid1… aid1… "$(base64 -w0 plan.pdf)" --msg-type 3',
      ),
    )
    .argument('<local>', 'the local agent that sends')
    .argument('<remote>', 'the agent that it is for')
    .argument('[body-base64]', `at most ${sizeText(MAX_NOTE_BODY_BYTES)}`)
    .option('--text <text>', 'the body as text')
    .option('--msg-type <number>', `what the body is (default ${DEFAULT_TYPE}; ${NOTE_TYPE.text} with --text)`, integer)
    .action(
      async (aid: string, recipient: string, base64: string | undefined, options: SendOptions, command: Command) => {
        const context = contextOf(command);
        const msg_type = options.msgType ?? (options.text === undefined ? DEFAULT_TYPE : NOTE_TYPE.text);
        const body_base64 = bodyOf(base64, options.text);
        const sending = context.withOwn(context.client.mailboxSend({ aid, recipient, msg_type, body_base64 }));
        context.show(await context.progress('sending', sending), {
          text: ({ message_id, delivered, replicas }) =>
            formatFields([
              ['message', message_id],
              ['delivered', delivered ? 'yes' : 'not yet: the recipient finds it when it is back'],
              ['kept by', counted(replicas, 'node')],
            ]),
          quiet: ({ message_id }) => message_id,
        });
      },
    );
  note
    .command('list')
    .description('show the notes that wait; they stay')
    .addHelpText('after', examples('svc note list aid1…'))
    .argument('<local>', 'the local agent')
    .option('--limit <count>', 'at most 500', integer)
    .addOption(new Option('--cursor <cursor>', 'next_cursor of the page before'))
    .action(async (aid: string, options: ListOptions, command: Command) => {
      const context = contextOf(command);
      const page = await context.withOwn(context.client.mailboxList({ aid, ...options }));
      context.show(page, {
        text: ({ messages }) => listText(messages),
        quiet: ({ messages }) => messages.map(({ message_id }) => message_id).join('\n'),
      });
      if (page.next_cursor !== undefined) context.note(`More notes follow: --cursor ${page.next_cursor}`);
    });
  note
    .command('poll')
    .description('collect the notes that wait; they are deleted')
    .addHelpText('after', examples('svc note poll aid1… --json'))
    .argument('<local>', 'the local agent')
    .action(async (aid: string, _options: object, command: Command) => {
      const context = contextOf(command);
      const taken = await context.withOwn(context.client.mailboxPoll({ aid }));
      context.show(taken, {
        text: ({ messages }) => listText(messages),
        quiet: ({ messages }) => messages.map(({ message_id }) => message_id).join('\n'),
      });
      if (taken.has_more) context.note('More notes wait: poll again.');
    });
}
