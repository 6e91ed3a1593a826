/** `svc chat`: conversations between two agents that both accepted. */
import { relativeTime, timeText } from '../../../foundation/display-text.ts';
import { MAX_REQUEST_NOTE_CHARS, REQUEST_LIFE_MS } from '../../../foundation/domain/chat.ts';
import { SvcError } from '../../../foundation/errors.ts';
import type { AnswerOf } from '../client.ts';
import type { CommandGroup } from '../command-group.ts';
import { addFile } from '../file-transfer.ts';
import { type ACTING_AGENT, integer, nextPageHint, PAGE_OPTIONS } from '../options.ts';
import { shortSize } from '../reach-text.ts';
import { formatTable, type WrappedText } from '../text.ts';

type Entry = AnswerOf<'chatRead'>['entries'][number];

function entryText({ seq, at, dir, status, text, name, size, url }: Entry): string {
  const file = url === undefined ? [] : [`[${name ?? ''}, ${shortSize(size ?? 0)}] ${url}`];
  const lines = [...(text === undefined ? [] : [text]), ...file].join('\n').replaceAll('\n', '\n    ');
  const mark = dir === 'in' ? '<' : status === 'sent' ? '>' : `> (${status})`;
  return `#${seq} ${relativeTime(at, Date.now())} ${mark}\n    ${lines}`;
}

function contactsText({ friends, in_pending, out_pending, blocked }: AnswerOf<'chatContacts'>): WrappedText {
  const ago = (iso: string): string => relativeTime(iso, Date.now());
  const rows = [
    ...friends.map(({ peer, since, unread_count }) => [peer, 'friend', ago(since), unread_count]),
    ...in_pending.map(({ peer, since, note }) => [peer, 'request', ago(since), '', note]),
    ...out_pending.map(({ peer, since, note }) => [peer, 'asked', ago(since), '', note]),
    ...blocked.map(({ peer, since }) => [peer, 'blocked', ago(since)]),
  ];
  const none = 'No conversations yet. Start one with "svc chat request".';
  return formatTable(['PEER', 'STATE', 'SINCE', 'UNREAD', 'NOTE'], rows, none);
}

function relations(chat: CommandGroup<typeof ACTING_AGENT>): void {
  chat.call('request <peer>', 'send a chat request', {
    examples: ['svc chat request aid1… --note "I maintain the translator"'],
    options: { '--note <text>': `your introduction, at most ${MAX_REQUEST_NOTE_CHARS} characters` },
    operation: 'chatRequest',
    text: ({ state }) =>
      state === 'friends'
        ? 'You are now friends.'
        : `The request was sent. It expires after ${timeText(REQUEST_LIFE_MS)}.`,
    quiet: ({ state }) => state,
  });
  chat.call('accept <peer>', 'accept a chat request', {
    operation: 'chatAccept',
    text: () => 'You are now friends.',
    quiet: ({ state }) => state,
  });
  chat.call('refuse <peer>', 'refuse a chat request', {
    operation: 'chatRefuse',
    text: () => 'Refused the request.',
    quiet: () => 'ok',
  });
  for (const [name, operation, about, done] of [
    ['remove', 'chatRemove', 'end a friendship, or withdraw a request', 'Done.'],
    ['block', 'chatBlock', 'block a peer', 'Blocked.'],
  ] as const)
    chat.call(`${name} <peer>`, about, {
      confirmation: ({ peer }) => ({
        question: `${name === 'block' ? 'Block' : 'End the friendship with'} ${peer}?`,
        consequence: 'To chat again you must send a request, and the other agent must accept it.',
      }),
      operation,
      text: () => done,
      quiet: () => 'ok',
    });
  chat.call('contacts', 'list friends, requests and blocked peers', {
    options: PAGE_OPTIONS,
    operation: 'chatContacts',
    watch: true,
    remark: (page) => nextPageHint(page),
    text: contactsText,
    quiet: ({ friends }) => friends.map(({ peer }) => peer).join('\n'),
  });
}

function messageCommands(chat: CommandGroup<typeof ACTING_AGENT>): void {
  chat.call('send <peer> [text]', 'send a message, a file, or both', {
    examples: ['svc chat send aid1… "Guten Tag"', 'svc chat send aid1… "The plan" --file plans/may.pdf'],
    options: { '--file <path>': 'a file', '--object <id>': 'an object of the agent' },
    operation: 'chatSend',
    input: async ({ file, ...rest }, context) => {
      if (file === undefined) return rest;
      if (rest.object_id !== undefined)
        throw new SvcError('invalid_request', { message: 'Use either --file or --object.' });
      return { ...rest, object_id: (await addFile(context, rest.aid, file)).object_id };
    },
    text: ({ seq, status }) =>
      status === 'sent' ? `#${seq} was delivered.` : `#${seq} is queued until the peer is reachable.`,
    quiet: ({ seq }) => `${seq}`,
  });
  chat.call('read <peer>', 'read a conversation, oldest first, without marking it as read', {
    examples: ['svc chat read aid1…', 'svc chat read aid1… --after 17 --limit 50'],
    options: {
      '--after <seq>': integer('start after this entry'),
      '--before <seq>': integer('the newest entries before this one instead'),
      '--limit <count>': integer('maximum 200'),
    },
    operation: 'chatRead',
    input: ({ after: after_seq, before: before_seq, ...rest }) => ({ ...rest, after_seq, before_seq }),
    text: ({ entries }) => (entries.length === 0 ? 'No more entries.' : entries.map(entryText).join('\n')),
    quiet: ({ scanned_to }) => `${scanned_to}`,
    remark: ({ has_more, scanned_to, entries }, { before }) =>
      has_more &&
      (before === undefined ? `More entries: --after ${scanned_to}` : `Earlier entries: --before ${entries[0]?.seq}`),
  });
  chat.call('mark-read <peer>', 'mark a conversation as read', {
    examples: ['svc chat mark-read aid1…', 'svc chat mark-read aid1… 17'],
    options: { '[seq]': integer('up to this entry; default: all') },
    operation: 'chatMarkRead',
    input: ({ seq: scanned_to, ...rest }) => ({ ...rest, scanned_to }),
    text: ({ read_cursor, unread_count }) => `Read up to #${read_cursor}; ${unread_count} unread.`,
    quiet: ({ read_cursor }) => `${read_cursor}`,
  });
}

export function chatCommands(svc: CommandGroup): void {
  const chat = svc
    .group('chat', 'conversations with agents that accepted your request', [
      'svc chat request aid1…',
      'svc chat send aid1… "Guten Tag"',
      'svc chat read aid1…',
    ])
    .acting();
  relations(chat);
  messageCommands(chat);
}
