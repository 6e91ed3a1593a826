/** How links, peers and paths are shown to people. */
import { networkText, pluralize, relativeTime } from '../../foundation/display-text.ts';
import type { PortMappingState } from '../../foundation/domain/directory.ts';
import { cutOffText, exitText } from '../../foundation/domain/exit.ts';
import type { AnswerOf } from './client.ts';
import { formatFields, formatTable, type OutputText, safeLine, type WrappedText } from './text.ts';

type Links = AnswerOf<'nodeLinks'>['links'];
type Checked = AnswerOf<'netcheck'>;
type CheckedAgent = AnswerOf<'netcheckAgent'>;

const KIB = 1024;
const UNITS = ['KiB', 'MiB', 'GiB', 'TiB'];

/** A size in few characters: `1 byte`, `3.4 MiB`. */
export function shortSize(bytes: number): string {
  if (bytes < KIB) return pluralize(Math.round(bytes), 'byte');
  const power = Math.min(UNITS.length, Math.floor(Math.log(bytes) / Math.log(KIB)));
  const value = bytes / KIB ** power;
  return `${value >= 100 ? Math.round(value) : value.toFixed(1)} ${UNITS[power - 1] ?? ''}`;
}

/** A round trip: `23.4 ms`. Empty if unknown. */
export function rttText(ms: number | null): string {
  if (ms === null) return '';
  return ms === 0 ? '<1 ms' : `${ms.toFixed(1)} ms`;
}

function together(...words: readonly (string | false)[]): string {
  return words.filter((word) => word !== false && word !== '').join(', ');
}

function linkRow(link: Links[number]) {
  const { packets_sent: sent, packets_lost: lost, outbound, use, current } = link;
  return [
    link.path,
    link.remote_addr,
    rttText(link.rtt_ms),
    sent === 0 ? '' : `${((100 * lost) / sent).toFixed(1)}%`,
    `${shortSize(link.bytes_up)}/${shortSize(link.bytes_down)}`,
    link.streams,
    relativeTime(link.since, Date.now()).replace(/ ago$/, ''),
    together(outbound ? 'out' : 'in', use !== 'all' && use, use === 'all' && !current && 'old'),
  ];
}

/** One line per connection, grouped by node. */
export function linksText(links: Links): WrappedText {
  const head = ['PATH', 'ADDRESS', 'RTT', 'LOSS', 'UP/DOWN', 'STREAMS', 'FOR', 'USE'];
  const above = (i: number): string | undefined => {
    const { node, agents } = links[i] ?? { node: '', agents: [] };
    // Connections to the same node follow each other.
    if (links[i - 1]?.node === node) return undefined;
    const names = agents.map(({ aid, label }) => label ?? aid);
    return safeLine(`node ${node}${names.length === 0 ? '' : `: ${names.join(', ')}`}`);
  };
  return formatTable(head, links.map(linkRow), 'No connections to other nodes.', above);
}

export function trafficText({ samples }: AnswerOf<'nodeTraffic'>): WrappedText {
  const rows = samples.map(({ at, bytes_up, bytes_down, links, peers, tunnels, ready }) => [
    at.slice(0, 16).replace('T', ' '),
    shortSize(bytes_up),
    shortSize(bytes_down),
    links,
    peers,
    tunnels,
    ready ? '' : 'not joined',
  ]);
  return formatTable(
    ['MINUTE', 'UP', 'DOWN', 'LINKS', 'PEERS', 'TUNNELS', ''],
    rows,
    'The first minute is not over yet.',
  );
}

export function peersText({ peers }: AnswerOf<'nodePeers'>): WrappedText {
  const now = Date.now();
  const rows = peers.map(({ address, node, rtt_ms, last_seen, since, is_bootstrap, is_helper }) => [
    address,
    node,
    rttText(rtt_ms),
    relativeTime(last_seen, now),
    relativeTime(since, now).replace(/ ago$/, ''),
    together(is_bootstrap && 'bootstrap', is_helper && 'helper'),
  ]);
  return formatTable(['ADDRESS', 'NODE', 'RTT', 'LAST HEARD', 'KNOWN FOR', 'WHAT'], rows, 'No other node is known.');
}

const PORT_MAPPING: Readonly<Record<PortMappingState, string>> = {
  off: 'disabled',
  searching: 'searching for a router',
  none: 'the router grants none',
  mapped: '',
  double_nat: ', behind another router',
};

const MAPPING: Readonly<Record<Checked['nat_mapping'], string>> = {
  unknown: 'too few nodes have reported how they see it',
  open: 'no port translation',
  cone: 'the same external port for all',
  symmetric: 'another external port for each node',
};

function portsText({ port_mapping, mapped_ports }: Checked): string {
  const ports = mapped_ports.map(
    ({ protocol, external, internal_port }) => `${external} to ${internal_port} (${protocol})`,
  );
  return `${ports.join(', ')}${PORT_MAPPING[port_mapping]}`;
}

function familyText({ addresses, is_public, seen_as }: Checked['ipv4']): string {
  if (addresses === 0 && seen_as === null) return 'no address beyond this machine';
  const own = is_public ? 'public address' : addresses === 0 ? 'loopback only' : 'private address';
  return seen_as === null ? `${own}, and no consistent external address` : `${own}, external address ${seen_as}`;
}

function reachedText({ is_reached, helpers }: Checked): string {
  if (is_reached === null) return 'not known yet';
  if (is_reached) return 'yes';
  return helpers.length > 0 ? 'no, but helpers introduce it' : 'no, and it has no helper';
}

function clockText({ offset_s, peers }: Checked['clock']): string {
  if (offset_s === null) return 'no other node has reported its time';
  return `${Math.abs(offset_s).toFixed(1)} s ${offset_s > 0 ? 'behind' : 'ahead of'} ${pluralize(peers, 'other node')}`;
}

/** Which node reached this node at an address, and when. */
function verifiedText({ verified_by, verified_at }: Checked['addresses'][number], now: number): string {
  if (verified_at !== null) return `a helper, ${relativeTime(verified_at, now)}`;
  return verified_by === 'peers' ? 'record network only' : 'not verified';
}

export function netcheckText(c: Checked): OutputText {
  const now = Date.now();
  const fields = formatFields({
    network: c.network_ready
      ? `ready, ${networkText(c.dht_peers, c.dht_clients)}`
      : `not ready: ${cutOffText(c.exit) === null ? 'no other node is known yet' : 'no other node can be reached'}`,
    'way out': exitText(c.exit),
    reachable: reachedText(c),
    NAT: `${c.nat_type_label}: ${MAPPING[c.nat_mapping]}`,
    IPv4: familyText(c.ipv4),
    IPv6: familyText(c.ipv6),
    'port mapping': portsText(c),
    'helps others': c.helps_others ? 'yes' : 'no',
    relays: c.relays_allowed ? 'allowed' : 'disabled by disable_relay',
    clock: clockText(c.clock),
  });
  const own = c.addresses.map((one) => [one.address, one.source, one.published ? 'yes' : 'no', verifiedText(one, now)]);
  const helpers = c.helpers.map(({ address, node, rtt_ms }) => [
    address,
    node,
    rtt_ms === null ? 'not connected' : rttText(rtt_ms),
  ]);
  return [
    fields,
    '',
    formatTable(['OWN ADDRESS', 'FROM', 'PUBLISHED', 'REACHED BY'], own, 'No own address is known.'),
    ...(helpers.length === 0 ? [] : ['', formatTable(['HELPER', 'NODE', 'RTT'], helpers)]),
  ];
}

export function agentNetcheckText(c: CheckedAgent): OutputText {
  if (c.is_here) return `${c.aid} is a local agent, so no network is involved.`;
  const now = c.connection;
  const fields = formatFields({
    agent: c.aid,
    node: c.node,
    NAT: c.nat_type_label,
    'connected by': now === null ? 'not connected' : `${now.path}, ${now.remote_addr}, ${rttText(now.rtt_ms)}`,
    'not direct': c.not_direct?.text,
  });
  const rows = c.ways.flatMap(({ path, after_ms, to, may_lead }) => {
    const may = may_lead === null ? 'unknown' : may_lead ? 'yes' : 'no';
    const [first = '', ...others] = to;
    return [[path, `${after_ms} ms`, may, first], ...others.map((address) => ['', '', '', address])];
  });
  const notes = new Set(c.ways.map(({ path, note }) => `${path}: ${note}`));
  if (c.ways.some(({ may_lead }) => may_lead === null)) notes.add('unknown: only an attempt shows whether it works.');
  const table = formatTable(['PATH', 'AFTER', 'WORKS', 'TO'], rows, 'No path leads to it.');
  return [fields, '', table, ...(notes.size === 0 ? [] : ['', ...notes])];
}

/** The summary of a ping. */
export function pingSummary({ sent, received, rtt_ms, path, not_direct }: AnswerOf<'pingAgent'>): string {
  const lost = Math.round((100 * (sent - received)) / sent);
  const counts = `${pluralize(sent, 'probe')}, ${pluralize(received, 'answer')}, ${lost} % lost`;
  const times =
    rtt_ms === null
      ? ''
      : `, min/avg/max ${[rtt_ms.min, rtt_ms.avg, rtt_ms.max].map((one) => one.toFixed(1)).join('/')} ms`;
  const way = path === null ? '' : `, ${path}`;
  return `${counts}${times}${way}${not_direct === null ? '' : `\nNot direct: ${not_direct.text}`}`;
}
