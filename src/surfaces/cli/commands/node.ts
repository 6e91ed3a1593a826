/** `svc status`, `svc version`: the daemon itself. */

import { setTimeout as pause } from 'node:timers/promises';
import { networkText, pluralize, relativeTime } from '../../../foundation/display-text.ts';
import { DELEGATION_WARN_MS } from '../../../foundation/domain/agents.ts';
import { DISK_FAIL_BYTES, DISK_WARN_BYTES } from '../../../foundation/domain/disk.ts';
import { cutOffText, exitText, LISTEN_ADDRESS_REMEDY } from '../../../foundation/domain/exit.ts';
import { NO_NODE_KNOWN } from '../../../foundation/domain/joining.ts';
import { SvcError } from '../../../foundation/errors.ts';
import type { AnswerOf } from '../client.ts';
import type { CommandGroup } from '../command-group.ts';
import type { CliContext } from '../context.ts';
import type { Names } from '../names.ts';
import { shortSize } from '../reach-text.ts';
import { commandWord, formatFields, type WrappedText } from '../text.ts';

// The state of the node at a glance: problems first, then pending items, then details.

type Status = AnswerOf<'status'>;
type Agent = AnswerOf<'agentGet'>;

/** Number of agents that are named. The rest is counted. */
const MAX_NAMED = 5;

/** The data of `svc status`. */
interface StatusData {
  readonly status: Status;
  readonly agents: readonly Agent[];
  /** There are more agents. */
  readonly more: boolean;
}

/** In the two largest units: `12 days 3 h`, `2 min 5 s`, `15 s`. */
function uptime(seconds: number): string {
  const [days, hours] = [Math.floor(seconds / 86_400), Math.floor(seconds / 3600) % 24];
  const [minutes, rest] = [Math.floor(seconds / 60) % 60, Math.floor(seconds) % 60];
  if (days > 0) return `${pluralize(days, 'day')} ${hours} h`;
  if (hours > 0) return `${hours} h ${minutes} min`;
  return minutes > 0 ? `${minutes} min ${rest} s` : `${rest} s`;
}

function mappedText({ port_mapping, mapped_addrs }: Status): string {
  const ports = mapped_addrs.join(', ');
  return port_mapping === 'double_nat' ? `${ports}, behind another router` : ports;
}

/** Why an agent cannot be found or called, now or soon. */
function agentProblems(agent: Agent, { auto_publish }: Status, names: Names, now: number): string[] {
  const { aid, service_tcp, service_tcp_ok, service_error, published, delegation } = agent;
  const why = service_error === undefined ? '' : ` (${service_error.replace(/\.$/, '')})`;
  const [who, typed] = [names.shown(aid), names.nameOf(aid) ?? aid];
  const ends = delegation.expires_at;
  return [
    ...(service_tcp !== '' && !service_tcp_ok ? [`${who}: its service at ${service_tcp} does not respond${why}`] : []),
    ...(published || (auto_publish && agent.last_publish_at === null)
      ? []
      : [`${who}: not published, so others cannot find it (svc agents publish ${commandWord(typed)})`]),
    ...(ends !== null && Date.parse(ends) < now + DELEGATION_WARN_MS
      ? [`${who}: its key ${Date.parse(ends) < now ? 'expired' : 'expires'} ${relativeTime(ends, now)}`]
      : []),
  ];
}

/** Why this node does not reach others. */
function networkProblems({
  dht_peers,
  dht_clients,
  network_ready,
  exit,
  lost_listen_hosts: lost = [],
  missing_packages: missing = [],
}: Status): string[] {
  if (missing.length > 0) return missing;
  if (lost.length > 0) return [`this machine has lost its listen address ${lost.join(', ')}. ${LISTEN_ADDRESS_REMEDY}`];
  const cutOff = cutOffText(exit);
  if (cutOff !== null) return [cutOff];
  if (dht_peers + dht_clients === 0) return ['no other node is known'];
  return network_ready ? [] : ['still joining the network'];
}

const PORT_TROUBLE: Readonly<Record<Status['lent_ports']['failed_addrs'][number]['trouble'], string>> = {
  in_use: 'another program uses it',
  not_permitted: 'the system does not permit it',
  unusable: 'it cannot be opened',
};

/** TCP ports that are closed to nodes without UDP, if no other one is open. */
function lendingProblems({ lent_ports }: Status): string[] {
  if (lent_ports.listen_addrs.length > 0) return [];
  return lent_ports.failed_addrs.map(
    ({ address, trouble }) =>
      `nodes without UDP cannot connect at ${address}/tcp: ${PORT_TROUBLE[trouble]} (see svc doctor)`,
  );
}

/** Too little free space, the first problem: without it nothing else works. */
function diskProblems({ disk_free_bytes: free, data_dir }: Status): string[] {
  if (free === undefined || free >= DISK_WARN_BYTES) return [];
  const what = `only ${shortSize(free)} are free for ${data_dir}`;
  return [
    free < DISK_FAIL_BYTES
      ? `the disk is full: ${what}. svcd cannot store anything`
      : `the disk is almost full: ${what}`,
  ];
}

function problems({ status, agents }: StatusData, names: Names, now: number): string[] {
  const { update_state: update } = status;
  return [
    ...diskProblems(status),
    ...networkProblems(status),
    ...(status.database_rolled_back === true
      ? [
          'the database lost changes, so agents are closed to other nodes: check the access lists, then run "svc access confirm"',
        ]
      : []),
    ...lendingProblems(status),
    ...(update === 'failed' || update === 'rolled_back' ? ['the last update failed (see svc update)'] : []),
    ...agents.flatMap((agent) => agentProblems(agent, status, names, now)),
  ];
}

/** Pending items, one line per agent. */
function waiting({ pending = {} }: Status, names: Names): string[] {
  return Object.entries(pending).map(
    ([aid, { chat_invites: requests, chat_unread: unread, mailbox: notes, access_requests = 0 }]) => {
      const what = [
        ...(access_requests > 0 ? [`${pluralize(access_requests, 'access request')} (svc access requests)`] : []),
        ...(requests > 0 ? [pluralize(requests, 'chat request')] : []),
        ...(unread > 0 ? [pluralize(unread, 'unread message')] : []),
        ...(notes > 0 ? [pluralize(notes, 'note')] : []),
      ];
      return `${names.shown(aid)}: ${what.join(', ')}`;
    },
  );
}

function agentsText({ agents, more }: StatusData, names: Names): string {
  if (agents.length === 0) return 'none yet; create one with "svc register"';
  const published = agents.filter((agent) => agent.published).length;
  const named = agents.slice(0, MAX_NAMED).map(({ aid }) => names.shown(aid));
  const left = agents.length > MAX_NAMED || more ? ', …' : '';
  return `${agents.length}${more ? ' or more' : ''}, ${published} published: ${named.join(', ')}${left}`;
}

function statusText(glance: StatusData, names: Names, now: number): WrappedText {
  const { status: s } = glance;
  return formatFields({
    problems: problems(glance, names, now),
    pending: waiting(s, names),
    node: s.node_aid,
    name: s.name,
    version: `${s.version}, up ${uptime(s.uptime_s)}`,
    agents: agentsText(glance, names),
    network: s.network_ready ? `ready, ${networkText(s.dht_peers, s.dht_clients)}` : 'not ready',
    'way out': s.network_ready || s.exit.state !== 'udp' ? exitText(s.exit) : '',
    reachability: s.nat_type_label,
    helpers: s.helpers.join(', '),
    'listens on': [...s.listen_addrs, ...s.lent_ports.listen_addrs.map((address) => `${address}/tcp`)].join(', '),
    'external address': s.observed_addrs.join(', '),
    ...(s.mapped_addrs.length === 0 ? {} : { 'port mapping': mappedText(s) }),
    published: s.node_last_publish_at === null ? 'not yet' : relativeTime(s.node_last_publish_at, now),
    tunnels: s.tunnels_active === 0 ? 'none open' : `${s.tunnels_active} open (svc tunnel status)`,
    traffic: `${shortSize(s.bytes_up)} up, ${shortSize(s.bytes_down)} down`,
    'relayed for others': s.relayed.helps
      ? `${pluralize(s.relayed.sessions, 'session')}, ${shortSize(s.relayed.bytes)}`
      : '',
    'ports lent over TLS':
      s.lent_ports.listen_addrs.length === 0
        ? ''
        : `to ${pluralize(s.lent_ports.clients, 'node')}, ${shortSize(s.lent_ports.bytes)}`,
    data: s.data_dir,
  });
}

/** Null if the daemon does not answer. */
async function daemonVersion(context: CliContext): Promise<string | null> {
  if (context.addressError !== null) return null;
  const status = await context.client.status().catch(() => null);
  return status?.version ?? null;
}

/** How long `--wait` waits, and how often it looks, milliseconds. */
const WAIT_MS = 60_000;
const LOOK_MS = 200;

/**
 * Waits until the daemon has started and joined its network.
 * @throws SvcError `network_unavailable` after the time limit
 */
async function untilReady(context: CliContext): Promise<void> {
  const end = performance.now() + WAIT_MS;
  let cause = 'Run "svc doctor" for the cause.';
  for (;;) {
    try {
      const { network_ready: isReady, exit } = await context.client.status();
      if (isReady) return;
      cause = cutOffText(exit) ?? cause;
    } catch (error) {
      const isStarting = error instanceof SvcError && error.code === 'daemon_unreachable';
      if (!isStarting || performance.now() >= end) throw error;
    }
    if (performance.now() >= end)
      throw new SvcError('network_unavailable', {
        message: `This node has not joined its network within ${WAIT_MS / 1000} s. ${cause}`,
      });
    await pause(LOOK_MS);
  }
}

/** Number of agents whose problems are shown. */
const MAX_AGENTS = 50;

/** The state of the node, and of its agents if a person reads it. */
async function glance({ client, options }: CliContext): Promise<StatusData> {
  const nobody = { agents: [], next_cursor: undefined };
  const people = options.json !== true && options.quiet !== true;
  const [status, { agents, next_cursor }] = await Promise.all([
    client.status(),
    people ? client.agentsList({ limit: MAX_AGENTS }).catch(() => nobody) : nobody,
  ]);
  return { status, agents, more: next_cursor !== undefined };
}

export function nodeCommands(svc: CommandGroup, version: string): void {
  svc.run('status', 'show the state of the node: problems, pending items, agents, network, traffic', {
    examples: ['svc status', 'svc status --watch', 'svc status --wait --quiet', 'svc status --json | jq .dht_peers'],
    options: { '--wait': `wait until the node has started and joined its network, at most ${WAIT_MS / 1000} s` },
    progress: 'Waiting for the network',
    run: async (context, { wait }) => {
      if (wait === true) await untilReady(context);
      return await glance(context);
    },
    json: ({ status }) => status,
    aids: 'labeled',
    watch: true,
    text: (seen, _, names) => statusText(seen, names, Date.now()),
    quiet: ({ status }) => status.node_aid,
    remark: ({ status }) =>
      status.dht_peers + status.dht_clients === 0 && cutOffText(status.exit) === null ? NO_NODE_KNOWN : undefined,
  });
  svc.run('version', 'show the versions of this command and of the daemon', {
    run: async (context) => ({ svc: version, svcd: await daemonVersion(context) }),
    text: (v) => `svc ${v.svc}, svcd ${v.svcd ?? 'not reachable'}`,
    quiet: (v) => v.svc,
  });
}
