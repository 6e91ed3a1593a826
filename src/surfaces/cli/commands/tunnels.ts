/** `svc connect`, `svc tunnel`: TCP to remote agents. */
import { CLIENT_WAIT_MS } from '../../../foundation/domain/tunnels.ts';
import { relativeTime } from '../../../foundation/plain-words.ts';
import { timeText } from '../../../foundation/quantities.ts';
import { GONE } from '../access-text.ts';
import type { AnswerOf } from '../client.ts';
import type { CommandGroup } from '../command-group.ts';
import type { Shape } from '../laid.ts';
import { roughSize } from '../reach-text.ts';
import { accessToken, integer, PAGE, pageRemark, type Typed } from '../takes.ts';
import { formatTable } from '../text.ts';

const REACH = {
  '--local-aid <aid>': 'the agent that connects; may be left out where there is only one',
  '--access-token <secret>': accessToken('what the remote agent asks for'),
  '--no-relay': 'fail rather than go through a relay',
} as const;

function reach({ relay, ...typed }: Typed<'<aid>', typeof REACH>) {
  return { ...typed, disable_relay: !relay };
}

type Tunnels = AnswerOf<'tunnelList'>;
type Closed = Tunnels['closed'][number];

/** Why a tunnel closed. */
const REASONS: Readonly<Record<Closed['reason'], string>> = {
  idle: 'nobody connected',
  asked: 'somebody closed it',
  agent_gone: 'its agent left this node',
  port_in_use: 'its port was taken at the start',
};

/** When a tunnel closes that nobody uses. */
function idleText(seconds: number): string {
  return seconds < 0 ? 'never' : `after ${timeText(seconds * 1000)}`;
}

function trouble({ id, last_error: error }: Pick<Closed, 'id' | 'last_error'>): string[] {
  return error === undefined ? [] : [`${id}, ${relativeTime(error.at, Date.now())}: ${error.message}`];
}

/** What became of the path of a tunnel's connections. */
function pathTrouble({ id, no_path: lost }: Tunnels['tunnels'][number], now: number): string[] {
  if (lost === undefined) return [];
  const since = timeText(1000 * Math.max(0, Math.round((now - Date.parse(lost.since)) / 1000)));
  const left = timeText(1000 * Math.max(0, Math.round((Date.parse(lost.held_until) - now) / 1000)));
  const held = lost.connections === 1 ? '1 connection is' : `${lost.connections} connections are`;
  return [`${id}: no path since ${since}, ${held} held for ${left} more`];
}

function statusText({ tunnels, closed }: Tunnels): Shape {
  const now = Date.now();
  const rows = tunnels.map((t) => {
    const bytes = `${roughSize(t.bytes_up)}/${roughSize(t.bytes_down)}`;
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
    formatTable(head, rows, 'No tunnel is open. Open one with "svc tunnel open <aid>".'),
    ...(lost.length === 0 ? [] : ['', ...lost]),
    ...(past.length === 0 ? [] : ['', formatTable(['CLOSED', 'LISTENED', 'REMOTE', 'WHEN', 'WHY'], past)]),
    ...(errors.length === 0 ? [] : ['', 'Connections that were not served:', ...errors]),
  ];
}

export function tunnelCommands(svc: CommandGroup): void {
  svc.call('connect <aid>', 'open a local address for one TCP connection', {
    examples: ['nc $(svc connect aid1… --quiet | tr : " ")'],
    takes: REACH,
    operation: 'connect',
    progress: 'Connecting',
    input: reach,
    text: ({ tunnel }) => `Connect to ${tunnel} within ${timeText(CLIENT_WAIT_MS)}.`,
    quiet: ({ tunnel }) => tunnel,
  });
  const tunnel = svc.group('tunnel', 'TCP tunnels to remote agents', [
    'svc tunnel open aid1… --local-port 2222',
    'svc tunnel status',
  ]);
  tunnel.call('open <aid>', 'open a tunnel', {
    examples: [
      'svc tunnel open aid1… --local-port 2222 && ssh -p 2222 localhost',
      'svc tunnel open aid1… --idle-timeout -1 --no-relay',
    ],
    takes: {
      ...REACH,
      '--local-port <port>': integer('the local port; the system chooses one where it is left out'),
      '--idle-timeout <seconds>': integer('close after so long without a connection; -1 never'),
    },
    operation: 'tunnelOpen',
    progress: 'Connecting',
    input: ({ local_port, idle_timeout: idle_timeout_sec, ...typed }) => ({
      ...reach(typed),
      local_port,
      idle_timeout_sec,
    }),
    text: ({ id, listen }) => `Tunnel ${id} listens on ${listen}.`,
    remark: ({ idle_timeout_sec: limit }) =>
      limit >= 0 && `It closes ${idleText(limit)} without a connection; --idle-timeout -1 keeps it.`,
    quiet: ({ listen }) => listen,
  });
  for (const [name, about, operation] of [
    ['close', 'close a tunnel', 'tunnelClose'],
    ['reset', 'drop the connections of a tunnel and dial anew', 'tunnelReset'],
  ] as const)
    tunnel.call(`${name} <id>`, about, { operation, ...GONE });
  tunnel.run('status', 'show tunnels', {
    takes: { '[id]': 'one tunnel; all where it is left out', ...PAGE },
    remark: (page) => pageRemark(page),
    run: async ({ client }, { id, ...page }): Promise<AnswerOf<'tunnelList'>> =>
      id === undefined ? client.tunnelList(page) : { tunnels: [await client.tunnelGet({ id })], closed: [] },
    watch: true,
    text: statusText,
    quiet: ({ tunnels }) => tunnels.map(({ listen }) => listen).join('\n'),
  });
}
