/** `svc chat`: conversations between two agents that both accepted. */
import { relativeTime, timeText } from '../../../foundation/display-text.ts';
import { MAX_REQUEST_NOTE_CHARS, REQUEST_LIFE_MS } from '../../../foundation/domain/chat.ts';
import { SvcError } from '../../../foundation/errors.ts';
import type { AnswerOf } from '../client.ts';
import type { CommandGroup } from '../command-group.ts';
import { addFile } from '../file-transfer.ts';
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

export function chatCommands(svc: CommandGroup): void {
  const chat = svc
    .group('chat', 'conversations with agents that accepted your request', [
      'svc chat request aid1…',
      'svc chat send aid1… "Guten Tag"',
      'svc chat read aid1…',
    ])
    .acting();
  chat.call('chatRequest', 'request <peer> --note <text>', 'send a chat request', {
    examples: ['svc chat request aid1… --note "I maintain the translator"'],
    help: { note: `your introduction, at most ${MAX_REQUEST_NOTE_CHARS} characters` },
    text: ({ state }) =>
      state === 'friends'
        ? 'You are now friends.'
        : `The request was sent. It expires after ${timeText(REQUEST_LIFE_MS)}.`,
    quiet: 'state',
  });
  chat.call('chatAccept', 'accept <peer>', 'accept a chat request', { text: 'You are now friends.', quiet: 'state' });
  chat.call('chatRefuse', 'refuse <peer>', 'refuse a chat request', {
    text: 'Refused the request.',
    quiet: () => 'ok',
  });
  for (const [name, operation, about, done] of [
    ['rm', 'chatRemove', 'end a friendship, or withdraw a request', 'Done.'],
    ['block', 'chatBlock', 'block a peer', 'Blocked.'],
  ] as const)
    chat.call(operation, `${name} <peer>`, about, {
      confirmation: ({ peer }) => ({
        question: `${name === 'block' ? 'Block' : 'End the friendship with'} ${peer}?`,
        consequence: 'To chat again you must send a request, and the other agent must accept it.',
      }),
      text: done,
      quiet: () => 'ok',
    });
  chat.call('chatContacts', 'contacts', 'list friends, requests and blocked peers', {
    watch: true,
    text: contactsText,
    quiet: ({ friends }) => friends.map(({ peer }) => peer).join('\n'),
  });
  chat.run('send <peer> [text]', 'send a message, a file, or both', {
    examples: ['svc chat send aid1… "Guten Tag"', 'svc chat send aid1… "The plan" --file plans/may.pdf'],
    options: { '--file <path>': 'a file', '--object <id>': 'an object of the agent' },
    run: async (context, { file, object, ...rest }) => {
      if (file === undefined) return context.client.chatSend({ ...rest, object_id: object });
      if (object !== undefined) throw new SvcError('invalid_request', { message: 'Use either --file or --object.' });
      const { object_id } = await addFile(context, rest.aid, file);
      return context.client.chatSend({ ...rest, object_id });
    },
    text: ({ seq, status }) =>
      status === 'sent' ? `#${seq} was delivered.` : `#${seq} is queued until the peer is reachable.`,
    quiet: ({ seq }) => `${seq}`,
  });
  const read = 'read a conversation, oldest first, without marking it as read';
  chat.call('chatRead', 'read <peer> --after <seq> --before <seq> --limit <count>', read, {
    examples: ['svc chat read aid1…', 'svc chat read aid1… --after 17 --limit 50'],
    help: { after_seq: 'start after this entry', before_seq: 'the newest entries before this one instead' },
    text: ({ entries }) => (entries.length === 0 ? 'No more entries.' : entries.map(entryText).join('\n')),
    quiet: 'scanned_to',
    remark: ({ has_more, scanned_to, entries }, { before_seq }) =>
      has_more &&
      (before_seq === undefined
        ? `More entries: --after ${scanned_to}`
        : `Earlier entries: --before ${entries[0]?.seq}`),
  });
  chat.call('chatMarkRead', 'mark-read <peer> [seq=scanned_to]', 'mark a conversation as read', {
    examples: ['svc chat mark-read aid1…', 'svc chat mark-read aid1… 17'],
    help: { scanned_to: 'up to this entry; default: all' },
    text: ({ read_cursor, unread_count }) => `Read up to #${read_cursor}; ${unread_count} unread.`,
    quiet: 'read_cursor',
  });
}
