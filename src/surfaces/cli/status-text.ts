/** The state of the node at a glance: what is wrong first, then what waits, then how it is. */
import { DELEGATION_WARN_MS } from '../../foundation/domain/agents.ts';
import { counted, networkText, relativeTime } from '../../foundation/plain-words.ts';
import type { AnswerOf } from './client.ts';
import type { Laid } from './laid.ts';
import type { Names } from './names.ts';
import { roughSize } from './reach-text.ts';
import { formatFields } from './text.ts';

type Status = AnswerOf<'status'>;
type Agent = AnswerOf<'agentGet'>;

/** Agents whose names are shown; the others are counted. */
const MAX_NAMED = 5;

/** What `svc status` looks at. */
export interface Glance {
  readonly status: Status;
  readonly agents: readonly Agent[];
  /** There are more agents than those. */
  readonly more: boolean;
}

/** In the two largest units: `12 days 3 h`, `2 min 5 s`, `15 s`. */
function uptime(seconds: number): string {
  const [days, hours] = [Math.floor(seconds / 86_400), Math.floor(seconds / 3600) % 24];
  const [minutes, rest] = [Math.floor(seconds / 60) % 60, Math.floor(seconds) % 60];
  if (days > 0) return `${counted(days, 'day')} ${hours} h`;
  if (hours > 0) return `${hours} h ${minutes} min`;
  return minutes > 0 ? `${minutes} min ${rest} s` : `${rest} s`;
}

function mappedText({ port_mapping, mapped_addrs }: Status): string {
  const ports = mapped_addrs.join(', ');
  return port_mapping === 'double_nat' ? `${ports}, behind another router` : ports;
}

/** What keeps an agent from being found or called, or soon will. */
function agentProblems(agent: Agent, { auto_publish }: Status, names: Names, now: number): string[] {
  const { aid, service_tcp, service_tcp_ok, published, delegation } = agent;
  const [who, typed] = [names.shown(aid), names.nameOf(aid) ?? aid];
  const ends = delegation.expires_at;
  return [
    ...(service_tcp !== '' && !service_tcp_ok ? [`${who}: nothing answers at ${service_tcp}, its service`] : []),
    ...(published || (auto_publish && agent.last_publish_at === null)
      ? []
      : [`${who}: nobody finds it, as it is not published (svc agents publish ${typed})`]),
    ...(ends !== null && Date.parse(ends) < now + DELEGATION_WARN_MS
      ? [`${who}: its key ${Date.parse(ends) < now ? 'ran out' : 'runs out'} ${relativeTime(ends, now)}`]
      : []),
  ];
}

function problems({ status, agents }: Glance, names: Names, now: number): string[] {
  const { dht_peers: peers, dht_clients: clients, network_ready: ready, update_state: update } = status;
  return [
    ...(peers + clients === 0 ? ['no other node is known'] : ready ? [] : ['the network is still being joined']),
    ...(status.database_rolled_back === true
      ? [
          'the database lost changes; agents are closed to other nodes: check the access lists, then run "svc access confirm"',
        ]
      : []),
    ...(update === 'failed' || update === 'rolled_back' ? ['the last update did not work (svc update says why)'] : []),
    ...agents.flatMap((agent) => agentProblems(agent, status, names, now)),
  ];
}

/** What waits, a line for each agent. */
function waiting({ pending = {} }: Status, names: Names): string[] {
  return Object.entries(pending).map(([aid, { chat_invites: asks, chat_unread: unread, mailbox: notes }]) => {
    const what = [
      ...(asks > 0 ? [`${counted(asks, 'request')} to chat`] : []),
      ...(unread > 0 ? [counted(unread, 'unread message')] : []),
      ...(notes > 0 ? [counted(notes, 'note')] : []),
    ];
    return `${names.shown(aid)}: ${what.join(', ')}`;
  });
}

function agentsText({ agents, more }: Glance, names: Names): string {
  if (agents.length === 0) return 'none yet; make one with "svc register"';
  const published = agents.filter((agent) => agent.published).length;
  const named = agents.slice(0, MAX_NAMED).map(({ aid }) => names.shown(aid));
  const left = agents.length > MAX_NAMED || more ? ', …' : '';
  return `${agents.length}${more ? ' and more' : ''}, ${published} of them published: ${named.join(', ')}${left}`;
}

export function statusText(glance: Glance, names: Names, now: number): Laid {
  const { status: s } = glance;
  return formatFields({
    problems: problems(glance, names, now),
    'waits for you': waiting(s, names),
    node: s.node_aid,
    version: `${s.version}, up ${uptime(s.uptime_s)}`,
    agents: agentsText(glance, names),
    network: s.network_ready ? `ready, ${networkText(s.dht_peers, s.dht_clients)}` : 'not ready',
    reachability: s.nat_type_label,
    helpers: s.helpers.join(', '),
    'listens on': s.listen_addrs.join(', '),
    'seen as': s.observed_addrs.join(', '),
    ...(s.mapped_addrs.length === 0 ? {} : { 'ports of the router': mappedText(s) }),
    published: s.node_last_publish_at === null ? 'not yet' : relativeTime(s.node_last_publish_at, now),
    tunnels: s.tunnels_active === 0 ? 'none open' : `${s.tunnels_active} open (svc tunnel status)`,
    traffic: `${roughSize(s.bytes_up)} up, ${roughSize(s.bytes_down)} down`,
    'relayed for others': s.relayed.helps
      ? `${counted(s.relayed.sessions, 'session')}, ${roughSize(s.relayed.bytes)}`
      : '',
    data: s.data_dir,
  });
}
