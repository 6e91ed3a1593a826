/** `svc chat`: conversations of two agents that have agreed on it. */
import type { Command } from 'commander';
import { MAX_REQUEST_NOTE_CHARS, REQUEST_LIFE_MS } from '../../../foundation/domain/chat.ts';
import { timeText } from '../../../foundation/quantities.ts';
import { chatOperations } from '../../../operations/chat.ts';
import type { OutputOf } from '../../../operations/operation.ts';
import type { CliContext, ContextOf } from '../context.ts';
import { examples } from '../examples.ts';
import { formatTable, safeText } from '../text.ts';
import { addToolCommand, aidOf, type Typed } from '../tool-command.ts';
import { integer } from '../values.ts';

type Entry = OutputOf<typeof chatOperations.chatRead>['entries'][number];
type Contacts = OutputOf<typeof chatOperations.chatContacts>;

/** What others wrote is shown, never obeyed: `safeText` escapes what a terminal would act on. */
function entryText({ seq, at, dir, status, text, name, size, url }: Entry): string {
  const file = url === undefined ? [] : [`[${name ?? ''}, ${size ?? 0} bytes] ${url}`];
  const lines = [...(text === undefined ? [] : [text]), ...file].join('\n').replaceAll('\n', '\n    ');
  const mark = dir === 'in' ? '<' : status === 'sent' ? '>' : `> (${status})`;
  return safeText(`#${seq} ${at} ${mark}\n    ${lines}`);
}

function contactsText({ friends, in_pending, out_pending, blocked }: Contacts): string {
  const rows = [
    ...friends.map(({ peer, since, unread_count }) => [peer, 'friend', since, `${unread_count}`, '']),
    ...in_pending.map(({ peer, since, note }) => [peer, 'asks you', since, '', note]),
    ...out_pending.map(({ peer, since, note }) => [peer, 'asked', since, '', note]),
    ...blocked.map(({ peer, since }) => [peer, 'blocked', since, '', '']),
  ];
  return rows.length === 0
    ? 'No contacts yet. Ask somebody with "svc chat request".'
    : formatTable(['PEER', 'STATE', 'SINCE', 'UNREAD', 'NOTE'], rows);
}

async function peerOf({ words: [peer] }: Typed<object>, context: CliContext) {
  return { peer: await aidOf(context, peer) };
}

function relations(chat: Command, contextOf: ContextOf): void {
  addToolCommand<typeof chatOperations.chatRequest, { note?: string }>(chat, contextOf, {
    usage: 'request <peer>',
    about: 'ask a peer to chat',
    operation: chatOperations.chatRequest,
    examples: ['svc chat request aid1… --note "I maintain the translator"'],
    declare: (command) =>
      command.option('--note <text>', `who you are and why, at most ${MAX_REQUEST_NOTE_CHARS} characters`),
    input: async (typed, context) => ({ ...(await peerOf(typed, context)), note: typed.options.note }),
    view: {
      text: ({ state }) =>
        state === 'friends'
          ? 'You are friends now.'
          : `The request is on its way; it is open for ${timeText(REQUEST_LIFE_MS)}.`,
      quiet: ({ state }) => state,
    },
  });
  addToolCommand(chat, contextOf, {
    usage: 'accept <peer>',
    about: 'accept the request of a peer',
    operation: chatOperations.chatAccept,
    examples: ['svc chat accept aid1…'],
    input: peerOf,
    view: { text: () => 'You are friends now.', quiet: ({ state }) => state },
  });
  for (const [name, operation, about, done] of [
    ['refuse', chatOperations.chatRefuse, 'refuse the request of a peer', 'The request is refused.'],
    ['remove', chatOperations.chatRemove, 'end a friendship, or withdraw a request', 'It is over.'],
    ['block', chatOperations.chatBlock, 'hear nothing more from a peer', 'The peer is blocked.'],
  ] as const)
    addToolCommand(chat, contextOf, {
      usage: `${name} <peer>`,
      about,
      operation,
      examples: [`svc chat ${name} aid1…`],
      input: peerOf,
      view: { text: () => done, quiet: () => 'ok' },
    });
  addToolCommand(chat, contextOf, {
    usage: 'contacts',
    about: 'friends, requests and blocked peers',
    operation: chatOperations.chatContacts,
    examples: ['svc chat contacts'],
    view: { text: contactsText, quiet: ({ friends }) => friends.map(({ peer }) => peer).join('\n') },
  });
}

function talk(chat: Command, contextOf: ContextOf): void {
  addToolCommand<typeof chatOperations.chatSend, { file?: string; object?: string }>(chat, contextOf, {
    usage: 'send <peer> [text]',
    about: 'send a text, or a file with or without one',
    operation: chatOperations.chatSend,
    examples: ['svc chat send aid1… "Guten Tag"', 'svc chat send aid1… "The plan" --file plans/may.pdf'],
    declare: (command) =>
      command.option('--file <path>', 'a file below files_root').option('--object <id>', 'an object of the agent'),
    input: async (typed, context) => ({
      ...(await peerOf(typed, context)),
      text: typed.words[1],
      path: typed.options.file,
      object_id: typed.options.object,
    }),
    view: {
      text: ({ seq, status }) =>
        status === 'sent' ? `#${seq} has arrived.` : `#${seq} goes out when the peer is there.`,
      quiet: ({ seq }) => `${seq}`,
    },
  });
  addToolCommand<typeof chatOperations.chatRead, { after?: number; limit?: number }>(chat, contextOf, {
    usage: 'read <peer>',
    about: 'read a conversation, oldest first; nothing is marked as read',
    operation: chatOperations.chatRead,
    examples: ['svc chat read aid1…', 'svc chat read aid1… --after 17 --limit 50'],
    declare: (command) =>
      command
        .option('--after <seq>', 'begin behind this one', integer)
        .option('--limit <count>', 'at most 200', integer),
    input: async (typed, context) => ({
      ...(await peerOf(typed, context)),
      after_seq: typed.options.after ?? 0,
      limit: typed.options.limit,
    }),
    view: {
      text: ({ entries }) => (entries.length === 0 ? 'Nothing more.' : entries.map(entryText).join('\n')),
      quiet: ({ scanned_to }) => `${scanned_to}`,
    },
    remark: (page) => (page.has_more ? `More entries follow: --after ${page.scanned_to}` : undefined),
  });
  addToolCommand(chat, contextOf, {
    usage: 'mark-read <peer>',
    about: 'mark a conversation as read',
    operation: chatOperations.chatMarkRead,
    examples: ['svc chat mark-read aid1…', 'svc chat mark-read aid1… 17'],
    declare: (command) => command.argument('[seq]', 'up to this entry; left out: all of it', integer),
    input: async (typed, context) => ({ ...(await peerOf(typed, context)), scanned_to: typed.words[1] }),
    view: {
      text: ({ read_cursor, unread_count }) => `Read up to #${read_cursor}; ${unread_count} unread.`,
      quiet: ({ read_cursor }) => `${read_cursor}`,
    },
  });
}

export function chatCommands(program: Command, contextOf: ContextOf): void {
  const chat = program
    .command('chat')
    .description('conversations with agents that have agreed to it')
    .addHelpText('after', examples('svc chat request aid1…', 'svc chat send aid1… "Guten Tag"', 'svc chat read aid1…'));
  relations(chat, contextOf);
  talk(chat, contextOf);
}
