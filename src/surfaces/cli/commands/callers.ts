/** `svc callers`: callers of an agent, and refused callers. `svc access`: callers that ask for access. */
import { callsItself } from '../../../foundation/called-name.ts';
import { relativeTime } from '../../../foundation/display-text.ts';
import type { AnswerOf } from '../client.ts';
import type { CommandGroup } from '../command-group.ts';
import { expiry } from '../options.ts';
import { commandWord, formatTable, type OutputText } from '../text.ts';

// `svc access`: callers that ask for access, and agents that are closed after the database lost changes.

type Request = AnswerOf<'accessRequests'>['requests'][number];

/** The exchange that a caller may begin once. */
const ONCE: Readonly<Record<Request['kind'], string>> = {
  call: 'one call with this method and path',
  tunnel: 'one TCP connection',
  chat: 'one chat',
};

/** What a caller asks for. */
function askedText({ kind, asked, tool, state, tools }: Request): string {
  const what = [kind, asked, tool === null ? '' : `tool ${tool}`].filter((part) => part !== '').join(' ');
  if (state === 'pending') return what;
  const allowed = tools === undefined ? ONCE[kind] : `one call of these tools: ${tools.join(', ')}`;
  return `${what} (allowed, not used: ${allowed})`;
}

function requestsText({ requests }: AnswerOf<'accessRequests'>): OutputText {
  const now = Date.now();
  const rows = requests.map((one) => [
    one.id,
    one.label ?? (one.name === undefined ? one.caller : `${one.caller}, ${callsItself(one.name)}`),
    one.aid,
    askedText(one),
    one.count,
    relativeTime(one.last_at, now),
  ]);
  const unsaved = requests.flatMap(({ name, label, caller }) =>
    name === undefined || label !== null ? [] : [`svc alias add ${commandWord(name)} ${caller}`],
  );
  const notes = requests.filter(({ note }) => note !== '').map(({ id, note }) => `${id}: "${note}"`);
  return [
    formatTable(['ID', 'CALLER', 'AGENT', 'ASKS FOR', 'TIMES', 'LAST'], rows, 'No requests for access.'),
    ...(notes.length === 0 ? [] : ['', 'Notes, written by the callers:', ...notes]),
    ...(unsaved.length === 0 ? [] : ['', 'To save callers under their names:', ...new Set(unsaved)]),
  ];
}

const ALLOWED_ONCE = {
  exchange: 'Allowed once: one call with this method and path, or one TCP connection if the caller asked for a tunnel.',
  tools: 'Allowed once: one call of these tools.',
} as const;

export function accessCommands(svc: CommandGroup): void {
  const access = svc.group('access', 'decide about callers that ask for access', [
    'svc agents acl default home ask   # callers ask you first',
    'svc access requests',
    'svc access allow 5f1c… --once',
    'svc access refuse 5f1c…',
  ]);
  access.call('accessRequests', 'requests', 'list callers that ask for access', {
    watch: true,
    text: requestsText,
    quiet: ({ requests }) => requests.map(({ id }) => id).join('\n'),
  });
  access.run('allow <request>', 'allow what a caller asks for', {
    examples: [
      'svc access allow 5f1c…',
      'svc access allow 5f1c… --once',
      'svc access allow 5f1c… --for 1h --tools search',
    ],
    options: {
      '--once': 'one call with this method and path, or one TCP connection of a tunnel; with --tools one tool call',
      '--for <time>': expiry('until then: 30m, 12h, 7d, or a date'),
      '--tools <names>': 'only these tools of an MCP server, separated by commas',
    },
    run: ({ client }, { request: id, once, for: expires_at, tools: names }) =>
      client.accessRequestAllow({ id, once, expires_at, tools: names?.split(',').map((name) => name.trim()) }),
    text: (_, { once, tools }) =>
      once === true ? ALLOWED_ONCE[tools === undefined ? 'exchange' : 'tools'] : 'Allowed.',
    quiet: (_, { request }) => request,
  });
  const refuse = 'refuse <request=id> --for=expires_at <time>';
  access.call('accessRequestRefuse', refuse, 'refuse a caller and deny it access', {
    examples: ['svc access refuse 5f1c…', 'svc access refuse 5f1c… --for 7d'],
    help: { expires_at: 'until then: 30m, 12h, 7d, or a date' },
    text: 'Refused.',
  });
  const confirm = 'after the database lost changes: confirm the access lists and reopen the agents';
  access.call('accessConfirm', 'confirm', confirm, {
    text: ({ was_closed }) => (was_closed ? 'The agents accept calls again.' : 'The agents were not closed.'),
    quiet: () => 'ok',
  });
}

type Caller = AnswerOf<'agentCallers'>['callers'][number];

const REFUSAL: Readonly<Record<NonNullable<Caller['last_refusal']>['code'], string>> = {
  access_denied: 'access list',
  rate_limited: 'rate limit',
  no_inbound: 'no service bound',
  tunnels_only: 'tunnels only',
};

const NOW: Readonly<Record<Caller['access'], string>> = {
  allow: 'yes',
  deny: 'no',
  secret: 'with a secret',
  ask: 'asks you',
};

function callersText({ callers, public_clients: clients, since }: AnswerOf<'agentCallers'>): OutputText {
  const now = Date.now();
  const rows = callers.map(({ aid, label, calls, tunnels, objects, refused, last_at, last_refusal, access }) => [
    label ?? aid,
    relativeTime(last_at, now),
    calls,
    tunnels,
    objects,
    refused,
    NOW[access],
    last_refusal === null ? '' : `${REFUSAL[last_refusal.code]}, ${relativeTime(last_refusal.at, now)}`,
  ]);
  const head = ['CALLER', 'LAST', 'CALLS', 'TUNNELS', 'FILES', 'REFUSED', 'MAY CALL', 'REASON'];
  const table = formatTable(head, rows, `No calls since the daemon started, ${relativeTime(since, now)}.`);
  if (clients.length === 0) return table;
  const open = clients.map(({ label, address, last_at, requests, refused }) => [
    label === '' ? '(no token)' : label,
    address,
    relativeTime(last_at, now),
    requests,
    refused,
  ]);
  return [table, '', formatTable(['PUBLIC CLIENT', 'ADDRESS', 'LAST', 'REQUESTS', 'REFUSED'], open)];
}

export function callerCommands(svc: CommandGroup): void {
  const about = 'show accepted and refused callers of an agent since the daemon started';
  svc.acting().call('agentCallers', 'callers', about, {
    examples: ['svc callers', "svc callers --json | jq -r '.callers[] | select(.refused > 0) | .aid'"],
    watch: true,
    own: true,
    text: callersText,
    quiet: ({ callers }) => callers.map(({ aid }) => aid).join('\n'),
  });
}
