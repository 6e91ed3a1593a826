/** State of the daemon for `/status`, `/debug/*` and `/metrics`. */
import { statfsSync } from 'node:fs';
import type { AgentRegistry } from '../capabilities/agents/registry.ts';
import type { Directory } from '../capabilities/directory/directory.ts';
import { REPUBLISH_INTERVAL_S } from '../capabilities/directory/publishing.ts';
import type { Entry, EntryUsage } from '../capabilities/entry/entry.ts';
import type { PendingCounters } from '../capabilities/events/pending-counters.ts';
import type { TunnelService } from '../capabilities/tunnels/tunnel-service.ts';
import type { Updater } from '../capabilities/update/updater.ts';
import { formatAddress } from '../foundation/address.ts';
import { type Clock, isoTime } from '../foundation/clock.ts';
import type { ConfigService } from '../foundation/config/config-service.ts';
import { natLabel, RECORD_TTL_S } from '../foundation/domain/directory.ts';
import type { Exit } from '../foundation/domain/exit.ts';
import { isRelayed, PATH_KINDS } from '../foundation/domain/tunnels.ts';
import { type Metric, type MetricSource, single } from '../foundation/metrics.ts';
import type { RollbackGuard } from '../foundation/store/rollback-guard.ts';
import { VERSION } from '../foundation/version.ts';
import type { ConnectionView, PeerTable } from '../network/peers/peer-table.ts';
import type { ListenHosts } from '../network/reachability/listen-hosts.ts';
import type { OwnAddresses } from '../network/reachability/own-addresses.ts';
import type { PortMapper } from '../network/reachability/port-mapping/port-mapper.ts';
import type { RecordDht } from '../network/records/record-dht.ts';
import type { TlsServer } from '../network/transport/tls/server.ts';
import type { TlsLanes } from '../network/transport/tls/tls-lanes.ts';
import { hostReport } from '../operations/handlers/host-report.ts';
import type { NodeHandlerDependencies } from '../operations/handlers/node.ts';
import type { nodeOperations } from '../operations/node.ts';
import type { OutputOf } from '../operations/operation.ts';
import { resolveFilesRoot } from './files-root.ts';
import type { NodeIdentity } from './foundation.ts';
import type { Network } from './network.ts';
import { nodeName } from './node-name.ts';
import { supervisorOf } from './service/managed.ts';

/** Listen addresses by purpose, as `host:port`. */
export interface Bound {
  readonly api_addr: string;
  readonly dht_addr: string;
  readonly quic_addr: string;
}

/** An address to which a program on this machine can connect. */
export function connectable(address: string): string {
  return address.replace(/^0\.0\.0\.0:/, '127.0.0.1:').replace(/^\[::\]:/, '[::1]:');
}

export interface StatusDependencies {
  readonly clock: Clock;
  readonly node: NodeIdentity;
  readonly dataDir: string;
  readonly configuration: ConfigService;
  readonly registry: Pick<AgentRegistry, 'count'>;
  readonly directory: Pick<Directory, 'summary'>;
  readonly records: Pick<RecordDht, 'reachability' | 'peers' | 'clocks' | 'usage'>;
  readonly pool: Pick<PeerTable, 'stats' | 'connections'>;
  readonly lanes: Pick<TlsLanes, 'stats'>;
  readonly tunnels: Pick<TunnelService, 'active'>;
  readonly entry: Pick<Entry, 'usage'>;
  readonly ownAddresses: Pick<OwnAddresses, 'current' | 'known'>;
  readonly reach: Pick<Network['reach'], 'relay'> & {
    readonly lending: Pick<TlsServer, 'addresses' | 'failed' | 'maxClients' | 'usage'>;
  };
  /** How datagrams leave this network. */
  readonly exit: () => Exit;
  /** Missing packages of the network, with their remedies. */
  readonly missing: readonly string[];
  readonly listenHosts: Pick<ListenHosts, 'missing'>;
  readonly portMapper: Pick<PortMapper, 'view'>;
  readonly bound: () => Bound;
  readonly pending: Pick<PendingCounters, 'view'>;
  readonly updater: Pick<Updater, 'updateState'>;
  readonly rollback: Pick<RollbackGuard, 'isRolledBack'>;
}

function timeOrNull(ms: number | null): string | null {
  return ms === null ? null : isoTime(ms);
}

/** Free space on the disk of a directory. Nothing if it cannot be read. */
function freeSpace(directory: string): { readonly disk_free_bytes?: number } {
  try {
    const { bavail, bsize } = statfsSync(directory);
    return { disk_free_bytes: bavail * bsize };
  } catch {
    return {};
  }
}

function entryMetrics({ connections, accepted, refused, failed, bytes }: EntryUsage): Metric[] {
  const count = (name: string, help: string, value: number): Metric => single(name, 'counter', help, value);
  return [
    single('svcd_public_connections', 'gauge', 'Public connections that this entry passes on.', connections),
    count('svcd_public_accepted_total', 'Public connections that reached an agent.', accepted),
    count('svcd_public_refused_total', 'Public connections without a name, a place or a valid hello.', refused),
    count('svcd_public_failed_total', 'Public connections whose agent was not reached.', failed),
    count('svcd_public_bytes_total', 'Bytes passed on for public names.', bytes),
  ];
}

/** The relays that currently carry connections, without duplicates, as `host:port`. */
function relaysInUse(connections: readonly ConnectionView[]): string[] {
  const relayed = connections.filter(({ path }) => isRelayed(path.kind));
  return [...new Set(relayed.map(({ path }) => formatAddress(path.remote)))];
}

export class StatusReports {
  readonly #deps: StatusDependencies;
  readonly #startedAt: number;

  constructor(dependencies: StatusDependencies) {
    this.#deps = dependencies;
    this.#startedAt = dependencies.clock.now();
  }

  status(): OutputOf<typeof nodeOperations.status> {
    const { node, configuration, directory, records, pool, tunnels, clock, bound, dataDir, updater, missing } =
      this.#deps;
    const { auto_publish, files_root, name } = configuration.current;
    const published = directory.summary(node.aid);
    const reach = records.reachability();
    const own = this.#deps.ownAddresses.current();
    const { limits, use, helps } = this.#deps.reach.relay;
    const { sessions, bytes, dropped } = use();
    const mapping = this.#deps.portMapper.view();
    const traffic = pool.stats();
    const bulk = this.#deps.lanes.stats();
    const pending = this.#deps.pending.view();
    const lost = this.#deps.listenHosts.missing();
    return {
      node_aid: node.aid,
      name: nodeName(name),
      version: VERSION,
      uptime_s: Math.floor((clock.now() - this.#startedAt) / 1000),
      ...freeSpace(dataDir),
      auto_publish,
      node_seq: published.seq,
      node_published: published.published,
      node_last_publish_at: timeOrNull(published.lastPublishAt),
      node_next_republish_estimate: timeOrNull(published.nextRepublishAt),
      republish_interval_s: REPUBLISH_INTERVAL_S,
      endpoint_ttl_s: RECORD_TTL_S,
      dht_peers: reach.peers,
      dht_clients: reach.clients,
      network_ready: reach.ready,
      nat_type: own.natType,
      nat_type_label: natLabel(own.natType),
      observed_addrs: reach.observed.map(formatAddress),
      listen_addrs: Object.values(bound()),
      ...(missing.length === 0 ? {} : { missing_packages: [...missing] }),
      ...(lost.length === 0 ? {} : { lost_listen_hosts: [...lost] }),
      port_mapping: mapping.state,
      mapped_addrs: mapping.ports.map(({ external }) => formatAddress(external)),
      relays: relaysInUse(pool.connections()),
      helpers: own.helpers.map(({ address }) => address),
      exit: this.#deps.exit(),
      relayed: { helps: helps(), sessions, max_sessions: limits.sessions, bytes, dropped },
      lent_ports: this.#lentPorts(),
      tunnels_active: tunnels.active,
      bytes_up: traffic.bytesSent + bulk.sent,
      bytes_down: traffic.bytesReceived + bulk.received,
      data_dir: dataDir,
      files_root: resolveFilesRoot(files_root, dataDir),
      update_state: updater.updateState,
      ...(this.#deps.rollback.isRolledBack ? { database_rolled_back: true } : {}),
      ...(Object.keys(pending).length === 0 ? {} : { pending }),
    };
  }

  #lentPorts(): OutputOf<typeof nodeOperations.status>['lent_ports'] {
    const { addresses, failed, maxClients, usage } = this.#deps.reach.lending;
    const { clients, ports, bytes, dropped } = usage;
    return {
      listen_addrs: addresses.map(formatAddress),
      failed_addrs: failed.map((address) => ({ address: formatAddress(address), trouble: address.trouble })),
      ...{ clients, max_clients: maxClients, ports, bytes, dropped },
    };
  }

  debug(): NodeHandlerDependencies['debug'] {
    const { node, registry, records, pool, tunnels, ownAddresses, bound } = this.#deps;
    return {
      identity: () => ({
        node_aid: node.aid,
        node_key: Buffer.from(node.key.publicKey).toString('hex'),
        agents: registry.count(),
        endpoints: ownAddresses.current().endpoints,
        addresses: ownAddresses.known().map(({ address, source, verifiedBy }) => ({
          address: formatAddress(address),
          source,
          verified_by: verifiedBy,
        })),
      }),
      routing: () => {
        const { observed, ...reach } = records.reachability();
        const { offsetMs, peers } = records.clocks();
        return {
          ...reach,
          observed: observed.map(formatAddress),
          nodes: records.peers().map(({ host, port, lastSeen }) => ({
            address: formatAddress({ host, port }),
            last_seen: isoTime(lastSeen),
          })),
          // Offset of the clocks of other nodes from this node's clock, in seconds.
          clock: { offset_s: offsetMs === null ? null : offsetMs / 1000, peers },
        };
      },
      store: () => ({ ...records.usage() }),
      stats: () => ({
        links: { ...pool.stats() },
        connections: pool.connections().map(({ path: { kind, remote, source }, openedAt, ...rest }) => ({
          ...rest,
          path: kind,
          address: formatAddress(remote),
          source,
          openedAt: isoTime(openedAt),
        })),
        tunnels: tunnels.active,
      }),
      host: () => ({ ...hostReport({ ...bound() }), service: supervisorOf(process) !== null }),
    };
  }

  metrics(): readonly MetricSource[] {
    const { registry, records, pool, lanes, tunnels, ownAddresses } = this.#deps;
    const { relay, lending } = this.#deps.reach;
    return [
      () => {
        const relayed = relay.use();
        const lent = lending.usage;
        const links = pool.stats();
        const bulk = lanes.stats();
        const connections = pool.connections();
        const reach = records.reachability();
        const usage = records.usage();
        return [
          single('svcd_agents', 'gauge', 'Agents registered here.', registry.count()),
          single('svcd_dht_peers', 'gauge', 'Nodes in the routing table.', reach.peers),
          single('svcd_dht_ready', 'gauge', '1 after the network is joined.', reach.ready ? 1 : 0),
          single('svcd_store_records', 'gauge', 'Records stored for the network.', usage.records),
          single('svcd_store_bytes', 'gauge', 'Bytes of records stored for the network.', usage.bytes),
          single('svcd_quic_connections', 'gauge', 'Connections to other nodes.', links.connections),
          {
            name: 'svcd_quic_paths',
            type: 'gauge',
            help: 'Connections to other nodes, by kind of path.',
            samples: PATH_KINDS.map((kind) => ({
              value: connections.filter(({ path }) => path.kind === kind).length,
              labels: { path: kind },
            })),
          },
          single(
            'svcd_helpers',
            'gauge',
            'Nodes that help others to reach this one.',
            ownAddresses.current().helpers.length,
          ),
          single('svcd_relayed_sessions', 'gauge', 'Pairs of other nodes that this node relays for.', relayed.sessions),
          single('svcd_relayed_bytes_total', 'counter', 'Bytes relayed for others.', relayed.bytes),
          single(
            'svcd_relay_dropped_total',
            'counter',
            'Relayed datagrams that were dropped because of limits.',
            relayed.dropped,
          ),
          single('svcd_lent_clients', 'gauge', 'Nodes that use UDP ports of this one over TLS.', lent.clients),
          single('svcd_lent_ports', 'gauge', 'UDP ports that are lent over TLS.', lent.ports),
          single('svcd_lent_bytes_total', 'counter', 'Bytes forwarded through lent ports.', lent.bytes),
          single('svcd_lent_dropped_total', 'counter', 'Datagrams that lent ports dropped.', lent.dropped),
          ...entryMetrics(this.#deps.entry.usage),
          single('svcd_link_streams', 'gauge', 'Link streams on these connections.', links.streams),
          single('svcd_quic_sent_bytes_total', 'counter', 'Bytes sent to other nodes.', links.bytesSent),
          single('svcd_bulk_lanes', 'gauge', 'Lanes for bulk data.', bulk.lanes),
          single('svcd_bulk_sent_bytes_total', 'counter', 'Bytes sent over lanes.', bulk.sent),
          single('svcd_bulk_received_bytes_total', 'counter', 'Bytes received over lanes.', bulk.received),
          single('svcd_quic_received_bytes_total', 'counter', 'Bytes received from other nodes.', links.bytesReceived),
          single('svcd_tunnels', 'gauge', 'Open tunnels.', tunnels.active),
        ];
      },
    ];
  }
}
