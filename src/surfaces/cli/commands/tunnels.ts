/** `svc connect`, `svc tunnel`: TCP to remote agents. */
import { relativeTime, timeText } from '../../../foundation/display-text.ts';
import { CLIENT_WAIT_MS } from '../../../foundation/domain/tunnels.ts';
import type { AnswerOf } from '../client.ts';
import type { CommandGroup } from '../command-group.ts';
import { nextPageHint, PAGE_OPTIONS } from '../options.ts';
import { shortSize } from '../reach-text.ts';
import { formatTable, type OutputText } from '../text.ts';

/** The options of commands that reach a remote agent. */
const REACH = '--access-token <secret> --no-relay=disable_relay --note <text> --wait <seconds>';
const REACH_HELP = { disable_relay: 'fail instead of using a relay' };

type Tunnels = AnswerOf<'tunnelList'>;
type Closed = Tunnels['closed'][number];

/** Why a tunnel was closed. */
const REASONS: Readonly<Record<Closed['reason'], string>> = {
  idle: 'no connections',
  asked: 'closed by a user',
  agent_gone: 'its agent was removed',
  port_in_use: 'its port was in use at startup',
};

/** When an idle tunnel closes. */
function idleText(seconds: number): string {
  return seconds < 0 ? 'never' : `after ${timeText(seconds * 1000)}`;
}

function trouble({ id, last_error: error }: Pick<Closed, 'id' | 'last_error'>): string[] {
  return error === undefined ? [] : [`${id}, ${relativeTime(error.at, Date.now())}: ${error.message}`];
}

/** Tunnel connections without a path. */
function pathTrouble({ id, no_path: lost }: Tunnels['tunnels'][number], now: number): string[] {
  if (lost === undefined) return [];
  const since = timeText(1000 * Math.max(0, Math.round((now - Date.parse(lost.since)) / 1000)));
  const left = timeText(1000 * Math.max(0, Math.round((Date.parse(lost.held_until) - now) / 1000)));
  const held = lost.connections === 1 ? '1 connection is' : `${lost.connections} connections are`;
  return [`${id}: no path since ${since}, ${held} held for ${left} more`];
}

function statusText({ tunnels, closed }: Tunnels): OutputText {
  const now = Date.now();
  const rows = tunnels.map((t) => {
    const bytes = `${shortSize(t.bytes_up)}/${shortSize(t.bytes_down)}`;
    const used = relativeTime(t.last_activity_at, now);
    const idle = idleText(t.idle_timeout_sec);
    const path = t.no_path === undefined ? t.path : 'none';
    return [t.id, t.listen, t.remote_aid, path, `${t.rtt_ms.toFixed(1)} ms`, t.active_conns, bytes, used, idle];
  });
  const head = ['ID', 'LISTEN', 'REMOTE', 'PATH', 'RTT', 'CONNS', 'UP/DOWN', 'LAST USED', 'CLOSES IDLE'];
  const past = closed.map((t) => [t.id, t.listen, t.remote_aid, relativeTime(t.closed_at, now), REASONS[t.reason]]);
  const errors = [...tunnels, ...closed].flatMap(trouble);
  const lost = tunnels.flatMap((t) => pathTrouble(t, now));
  return [
    formatTable(head, rows, 'No open tunnels. Open one with "svc tunnel open <aid>".'),
    ...(lost.length === 0 ? [] : ['', ...lost]),
    ...(past.length === 0 ? [] : ['', formatTable(['CLOSED', 'LISTENED', 'REMOTE', 'WHEN', 'WHY'], past)]),
    ...(errors.length === 0 ? [] : ['', 'Failed connections:', ...errors]),
  ];
}

export function tunnelCommands(svc: CommandGroup): void {
  svc.call('connect', `connect <aid> ${REACH}`, 'open a local address for a single TCP connection', {
    examples: ['nc $(svc connect aid1… --quiet | tr : " ")'],
    help: REACH_HELP,
    progress: 'Connecting',
    text: ({ tunnel }) => `Connect to ${tunnel} within ${timeText(CLIENT_WAIT_MS)}.`,
    quiet: 'tunnel',
  });
  const tunnel = svc.group('tunnel', 'TCP tunnels to remote agents', [
    'svc tunnel open aid1… --local-port 2222',
    'svc tunnel status',
  ]);
  tunnel.call('tunnelOpen', `open <aid> ${REACH} --local-port <port> --idle-timeout <seconds>`, 'open a tunnel', {
    examples: [
      'svc tunnel open aid1… --local-port 2222 && ssh -p 2222 localhost',
      'svc tunnel open aid1… --idle-timeout -1 --no-relay',
    ],
    help: {
      ...REACH_HELP,
      local_port: 'the local port; default: chosen by the system',
      idle_timeout_sec: 'close after this time without a connection; -1 for never',
    },
    progress: 'Connecting',
    text: ({ id, listen }) => `Tunnel ${id} listens on ${listen}.`,
    remark: ({ idle_timeout_sec: limit }) =>
      limit >= 0 && `It closes ${idleText(limit)} without a connection. Use --idle-timeout -1 to keep it open.`,
    quiet: 'listen',
  });
  for (const [name, about, operation] of [
    ['rm', 'close a tunnel', 'tunnelClose'],
    ['reset', 'reset the connections of a tunnel and dial again', 'tunnelReset'],
  ] as const)
    tunnel.call(operation, `${name} <id>`, about, { text: 'ok' });
  tunnel.run('status', 'show tunnels', {
    options: { '[id]': 'one tunnel; default: all', ...PAGE_OPTIONS },
    remark: (page) => nextPageHint(page),
    run: async ({ client }, { id, ...page }): Promise<AnswerOf<'tunnelList'>> =>
      id === undefined ? client.tunnelList(page) : { tunnels: [await client.tunnelGet({ id })], closed: [] },
    watch: true,
    text: statusText,
    quiet: ({ tunnels }) => tunnels.map(({ listen }) => listen).join('\n'),
  });
}
