/** Handlers of the reachability operations. */

import { NOT_DIRECT_TEXT } from '../../capabilities/reach/not-direct.ts';
import type { LinkSummary, ProbeResult, ReachReport } from '../../capabilities/reach/reach-report.ts';
import type { TrafficHistory } from '../../capabilities/reach/traffic.ts';
import { type Address, formatAddress } from '../../foundation/address.ts';
import { isoTime } from '../../foundation/clock.ts';
import { natLabel } from '../../foundation/domain/directory.ts';
import type { Exit } from '../../foundation/domain/exit.ts';
import {
  type NotDirectReason,
  PING_COUNT,
  PING_INTERVAL_MS,
  PING_TIMEOUT_MS,
  TRAFFIC_HOURS,
} from '../../foundation/domain/reach.ts';
import { isRelayed } from '../../foundation/domain/tunnels.ts';
import type { Handlers } from '../operation.ts';
import type { reachOperations } from '../reach.ts';

export interface ReachHandlerDependencies {
  readonly reachReport: ReachReport;
  readonly traffic: Pick<TrafficHistory, 'samples'>;
  /** How datagrams leave this network. */
  readonly exit: () => Exit;
}

/** Microseconds have no meaning here, and clocks may go back. */
function ms(value: number): number {
  return Math.max(0, Math.round(value * 1000) / 1000);
}

function msOrNull(value: number | null): number | null {
  return value === null ? null : ms(value);
}

function addressOrNull(address: Address | null): string | null {
  return address === null ? null : formatAddress(address);
}

function nat(natType: number) {
  return { nat_type: natType, nat_type_label: natLabel(natType) };
}

function pathView({ path, rttMs }: Pick<LinkSummary, 'path' | 'rttMs'>) {
  const { kind, remote } = path;
  return { path: kind, is_relayed: isRelayed(kind), remote_addr: formatAddress(remote), rtt_ms: ms(rttMs) };
}

function linkView(link: LinkSummary) {
  const { node, agents, openedAt, streams, outbound, current, use } = link;
  return {
    node,
    agents: agents.map(({ aid, label, localAids }) => ({ aid, label, local_aids: localAids })),
    ...pathView(link),
    since: isoTime(openedAt),
    streams,
    bytes_up: link.bytesSent,
    bytes_down: link.bytesReceived,
    packets_sent: link.packetsSent,
    packets_lost: link.packetsLost,
    outbound,
    current,
    use,
  };
}

function reasonView(code: NotDirectReason | null) {
  return code === null ? null : { code, text: NOT_DIRECT_TEXT[code] };
}

function summary(probes: readonly ProbeResult[]) {
  const times = probes.flatMap(({ rttMs }) => rttMs ?? []);
  const sum = times.reduce((total, one) => total + one, 0);
  const avg = sum / times.length;
  return {
    sent: probes.length,
    received: times.length,
    rtt_ms: times.length === 0 ? null : { min: ms(Math.min(...times)), avg: ms(avg), max: ms(Math.max(...times)) },
  };
}

export function reachHandlers({
  reachReport,
  traffic,
  exit,
}: ReachHandlerDependencies): Handlers<typeof reachOperations> {
  return {
    nodeLinks: () => ({ links: reachReport.links().map(linkView) }),

    nodePeers: () => ({
      peers: reachReport.peers().map((peer) => ({
        address: formatAddress(peer),
        node: peer.node,
        last_seen: isoTime(peer.lastSeen),
        since: isoTime(peer.firstSeen),
        rtt_ms: msOrNull(peer.rttMs),
        is_bootstrap: peer.isBootstrap,
        is_helper: peer.isHelper,
      })),
    }),

    nodeTraffic: ({ hours = TRAFFIC_HOURS }) => ({
      samples: traffic.samples(hours).map(({ at, bytesUp, bytesDown, ...rest }) => ({
        at: isoTime(at),
        bytes_up: bytesUp,
        bytes_down: bytesDown,
        ...rest,
      })),
    }),

    netcheck: () => {
      const checked = reachReport.check();
      const family = ({ addresses, isPublic, seenAs }: typeof checked.ipv4) => ({
        addresses,
        is_public: isPublic,
        seen_as: addressOrNull(seenAs),
      });
      return {
        network_ready: checked.ready,
        dht_peers: checked.peers,
        dht_clients: checked.clients,
        exit: exit(),
        is_reached: checked.isReached,
        ...nat(checked.natType),
        nat_mapping: checked.mapping,
        addresses: checked.addresses.map(({ address, source, verifiedBy, verifiedAt, isTold }) => ({
          address: formatAddress(address),
          source,
          verified_by: verifiedBy,
          verified_at: verifiedAt === null ? null : isoTime(verifiedAt),
          published: isTold,
        })),
        ipv4: family(checked.ipv4),
        ipv6: family(checked.ipv6),
        port_mapping: checked.portMapping.state,
        mapped_ports: checked.portMapping.ports.map(({ protocol, internalPort, external, expiresAt }) => ({
          protocol,
          internal_port: internalPort,
          external: formatAddress(external),
          expires_at: isoTime(expiresAt),
        })),
        helpers: checked.helpers.map(({ node, address, rttMs }) => ({
          node,
          address: formatAddress(address),
          rtt_ms: msOrNull(rttMs),
        })),
        helps_others: checked.helpsOthers,
        relays_allowed: checked.relaysAllowed,
        clock: {
          offset_s: checked.clock.offsetMs === null ? null : checked.clock.offsetMs / 1000,
          peers: checked.clock.peers,
        },
      };
    },

    netcheckAgent: async ({ aid }, { signal }) => {
      const { node, isHere, natType, link, ways, notDirect } = await reachReport.pathsTo(aid, signal);
      return {
        aid,
        node,
        is_here: isHere,
        ...nat(natType),
        connection: link === null ? null : pathView(link),
        ways: ways.map(({ path, afterMs, to, mayLead, note }) => ({
          path,
          after_ms: afterMs,
          to: to.map(formatAddress),
          may_lead: mayLead,
          note,
        })),
        not_direct: reasonView(notDirect),
      };
    },

    pingAgent: async (input, { signal }) => {
      const { aid, count = PING_COUNT, interval_ms: intervalMs = PING_INTERVAL_MS } = input;
      const { timeout_ms: timeoutMs = PING_TIMEOUT_MS, disable_relay: disableRelay = false } = input;
      const result = await reachReport.ping({ aid, count, intervalMs, timeoutMs, disableRelay }, signal);
      const { node, probes, remote, notDirect } = result;
      const path = probes.findLast((probe) => probe.path !== null)?.path ?? null;
      return {
        aid,
        node,
        probes: probes.map((probe) => ({
          rtt_ms: msOrNull(probe.rttMs),
          path: probe.path,
          is_relayed: probe.path !== null && isRelayed(probe.path),
        })),
        ...summary(probes),
        path,
        is_relayed: path !== null && isRelayed(path),
        remote_addr: remote === null ? '' : formatAddress(remote),
        not_direct: reasonView(notDirect),
      };
    },
  };
}
