/** Connectivity beyond direct dialing: how this node reaches other nodes, is reached, and helps others. */

import { type Address, formatAddress } from '../foundation/address.ts';
import { detach } from '../foundation/detached.ts';
import type { NatMapping } from '../foundation/domain/directory.ts';
import { SvcError } from '../foundation/errors.ts';
import type { Component } from '../foundation/lifecycle.ts';
import type { NodeRequests } from '../network/node-requests.ts';
import type { PeerTable } from '../network/peers/peer-table.ts';
import { AddressVerification } from '../network/reachability/address-verification.ts';
import { ChosenHelpers } from '../network/reachability/chosen-helpers.ts';
import type { DialGuard, InterfaceAddress } from '../network/reachability/dial-guard.ts';
import { Helper } from '../network/reachability/helper.ts';
import { HelperClient, retryIfDead } from '../network/reachability/helper-client.ts';
import { HelperStore } from '../network/reachability/helper-store.ts';
import { isPublicIpv6, publicIpv6SourceFor } from '../network/reachability/interface-addresses.ts';
import type { ListenHosts } from '../network/reachability/listen-hosts.ts';
import { NatDetector, selectObservers } from '../network/reachability/nat.ts';
import type { NetworkMonitor } from '../network/reachability/network-monitor.ts';
import {
  addressesToVerify,
  isPublished,
  type OwnAddress,
  type OwnAddresses,
} from '../network/reachability/own-addresses.ts';
import { MAX_OBSERVERS, PortLender } from '../network/reachability/port-lender.ts';
import { punchDialer } from '../network/reachability/punch-dialer.ts';
import { PunchGuard } from '../network/reachability/punch-guard.ts';
import { PUNCH_DIAL_MS, PunchInitiator, RELAY_DIAL_MS } from '../network/reachability/punch-initiator.ts';
import { type Introduced, introducedWay, PunchResponder } from '../network/reachability/punch-responder.ts';
import { Relay, type RelayUsage, relayLimits } from '../network/reachability/relay.ts';
import { RelayBudgets } from '../network/reachability/relay-budgets.ts';
import { relayDialer, turnDialer } from '../network/reachability/relay-dialers.ts';
import { signalHandler } from '../network/reachability/signal-handler.ts';
import { TurnServers } from '../network/reachability/turn/turn-servers.ts';
import { TurnRendezvousClient, TurnRendezvousServer } from '../network/reachability/turn-rendezvous.ts';
import { UdpFallback } from '../network/reachability/udp-fallback.ts';
import { ownHosts } from '../network/records/own-hosts.ts';
import type { RecordDht } from '../network/records/record-dht.ts';
import { isIpv6Only } from '../network/transport/nat64.ts';
import { isStraight } from '../network/transport/path.ts';
import { EngineClientPool } from '../network/transport/quic/client-pool.ts';
import { EngineLentPort } from '../network/transport/quic/lent-port.ts';
import type { NativeQuicEndpoint } from '../network/transport/quic/native-endpoint.ts';
import type { UdpOverTls } from '../network/transport/tls/client.ts';
import type { Connection } from '../network/transport/types.ts';
import type { Foundation } from './foundation.ts';
import { buildLending, isFirstNode } from './lending.ts';

/** Timeout for dialing a node that asks whether it is reachable, in milliseconds. The first packet is sent twice. */
const DIAL_BACK_MS = 2_500;
/** Relay statistics of a node that does not relay. */
const NO_RELAY_USE: RelayUsage = { sessions: 0, datagrams: 0, bytes: 0, dropped: 0 };

function isPublishedIpv6(own: OwnAddress): boolean {
  return isPublished(own) && isPublicIpv6(own.address);
}

interface ReachParts {
  readonly endpoint: NativeQuicEndpoint;
  readonly pool: PeerTable;
  readonly nodeRequests: NodeRequests;
  readonly records: RecordDht;
  readonly ownAddresses: OwnAddresses;
  readonly interfaceAddresses: () => readonly InterfaceAddress[];
  readonly listenHosts: ListenHosts;
  readonly networkMonitor: NetworkMonitor;
  readonly tls: UdpOverTls;
  readonly dhtListen: Address;
  readonly dialGuard: DialGuard;
  /** Number of contacts through which this node joins. */
  readonly contacts: () => number;
  /** False if UDP over TLS is never used. */
  readonly hasTls: boolean;
  /** Called if this machine may be on another network. */
  readonly onNetwork: () => void;
}

/** A component that only releases something. */
function onlyStops(ends: readonly (() => unknown)[]): Component {
  return {
    start: async () => {},
    stop: async () => {
      await Promise.all(ends.map((end) => end()));
    },
  };
}

export type Reach = ReturnType<typeof buildReach>;

/** Created after the components that it depends on, so that it stops before them. */
export function buildReach(foundation: Foundation, parts: ReachParts) {
  const { life, clock, log: rootLog, config, configuration, node, meta } = foundation;
  const { endpoint, pool, nodeRequests, records, ownAddresses, networkMonitor, tls } = parts;
  const log = rootLog.child('reach');
  const random = Math.random;
  const own = ownHosts({ clock });
  const isOwnHost = (host: string): boolean => own.has(host);
  const isUnreached = (): boolean => {
    const { ready, inRoutingTables } = records.reachability();
    return ready && (!inRoutingTables || ownAddresses.isRefuted);
  };

  const helperStore = new HelperStore(config.network, meta);
  const helperClient = new HelperClient({ clock, endpoint, pool, nodeRequests });
  const helpers = new ChosenHelpers({
    clock,
    log,
    random,
    nodeKey: node.key.publicKey,
    isNeeded: isUnreached,
    nodes: () => records.peers(),
    isOwnHost,
    findNodes: () => records.findNodes(),
    identify: (peer) => records.identify(peer),
    hello: async (helper, signal) => {
      const { tlsPorts } = await helperClient.hello(helper, signal);
      helperStore.noteTlsPorts(helper.nodeKey, tlsPorts);
    },
    keep: (nodeKey) => pool.keep(nodeKey),
    store: helperStore,
    onHelpers: (chosen) => {
      ownAddresses.setHelpers(chosen.map(({ nodeKey, address }) => ({ nodeKey, address: formatAddress(address) })));
      natDetector.onReachability();
    },
  });
  const lender = new PortLender({
    clock,
    listen: (options) => new EngineLentPort(options, endpoint.parts, clock),
    openPort: (family) => records.openPort(family),
    observers: () => {
      // Our own helpers are harder to impersonate, so they come first. Each host gets one query.
      const chosen = helpers.addresses.map((address) => ({ ...address, lastSeen: Number.MAX_SAFE_INTEGER }));
      return selectObservers([...chosen, ...records.peers()], MAX_OBSERVERS);
    },
    isOwnHost,
    natUnchangedSince: () => {
      const opened = helpers.current.map(({ nodeKey }) => pool.current(nodeKey)?.openedAt ?? Number.POSITIVE_INFINITY);
      return opened.length === 0 ? Number.POSITIVE_INFINITY : Math.max(...opened);
    },
  });
  const natDetector = new NatDetector({
    clock,
    log,
    isNeeded: () => records.reachability().ready,
    detect: () => lender.detectMapping(),
    onMapping: (mapping) => (isUnreached() ? ownAddresses.setMapping(mapping) : undefined),
  });
  /** Open means that strangers can reach the node. A host with a public address may be behind a firewall. */
  const mapping = (): NatMapping => (lender.mapping === 'open' && isUnreached() ? 'cone' : lender.mapping);

  const adopt = (introduced: Introduced, isAsked = false): Connection => {
    const { native, outbound } = introduced;
    return endpoint.adopt(native, { outbound, way: introducedWay(introduced), isAsked });
  };
  const greet = async (connection: Connection): Promise<void> => {
    await pool.upgrade(connection);
  };
  const clients = new EngineClientPool(() => endpoint.parts, { clock });
  const lenderWithMapping = {
    get mapping() {
      return mapping();
    },
    lend: (...options: Parameters<PortLender['lend']>) => lender.lend(...options),
    lendAtRelay: (...options: Parameters<PortLender['lendAtRelay']>) => lender.lendAtRelay(...options),
    lendToHelperRelay: (...options: Parameters<PortLender['lendToHelperRelay']>) =>
      lender.lendToHelperRelay(...options),
    lendLocally: (...options: Parameters<PortLender['lendLocally']>) => lender.lendLocally(...options),
  };
  const turn = new TurnServers(config.turn_servers, clock, log);
  const common = { turn, lender: lenderWithMapping, pool: clients, guard: new PunchGuard(clock, pool.known), random };
  const responder = new PunchResponder({
    ...common,
    log,
    // Addresses that are not published are not revealed here either.
    ownIpv6: async (to) =>
      !tls.carries(to.host) && ownAddresses.known().some(isPublishedIpv6) ? await publicIpv6SourceFor(to) : null,
    isHelper: (nodeKey) => helpers.has(nodeKey),
    mayCall: () => true,
    mayRelay: () => !configuration.current.disable_relay,
    accept: (introduced) => {
      const connection = adopt(introduced, true);
      if (!introduced.outbound) return;
      detach(
        greet(connection).catch((error: unknown) => log.debug({ error }, 'an introduced node did not send a greeting')),
      );
    },
    dial: async (address, nodeKey, source) => {
      const way = { kind: 'punched', source } as const;
      await greet(await endpoint.dial(address, nodeKey, { timeoutMs: PUNCH_DIAL_MS, way, isAsked: true }));
    },
  });
  const localNetwork = { interfaces: parts.interfaceAddresses, mapping };
  const initiator = new PunchInitiator({
    ...common,
    clock,
    request: (helper, body, signal) => helperClient.request(helper, body, signal),
    dial: (address, nodeKey, { kind, source, remote, ...options }) =>
      endpoint.dial(address, nodeKey, { ...options, way: { kind, source, remote } }),
    ownIpv6: async (to) => {
      const host = tls.carries(to.host) ? null : await publicIpv6SourceFor(to);
      return host === null ? null : { host, port: await endpoint.ipv6DialPort() };
    },
    adopt: (introduced) => adopt(introduced),
    isBorrowed: (host) => tls.carries(host),
  });
  pool.addDialer(punchDialer({ clock, pool, own: localNetwork, initiator }));
  pool.addDialer(relayDialer(clock, pool, localNetwork, initiator));
  const nodeKey = node.key.publicKey;
  const seenHost = (): string | null => records.seenHost;
  const turnRendezvous = new TurnRendezvousClient({
    clock,
    nodeKey,
    records,
    seenHost,
    turn,
    dial: (address, key, remote, signal) =>
      endpoint.dial(address, key, { timeoutMs: RELAY_DIAL_MS, signal, way: { kind: 'turn', remote } }),
  });
  pool.addDialer(turnDialer(nodeKey, initiator, turnRendezvous, () => turn.isAvailable));
  const turnRendezvousServer = new TurnRendezvousServer({
    clock,
    log,
    nodeKey,
    records,
    seenHost,
    isNeeded: () => isUnreached() && helpers.current.length === 0,
    onRendezvous: (place) => ownAddresses.setMeeting(place),
    meet: (request, ownHost) => responder.meet(request, ownHost),
  });

  const limits = relayLimits(config);
  const budgets = new RelayBudgets(limits, { clock });
  const relay =
    limits.sessions === 0
      ? null
      : new Relay(limits, { clock, log, createSocket: () => records.plainSocket(), budgets });
  const observedAddress = (nodeKey: Uint8Array) => {
    const path = pool.current(nodeKey)?.connection.path;
    return path !== undefined && isStraight(path) ? lending.server.outer(path.remote) : null;
  };
  const isReached = (): boolean =>
    records.reachability().inRoutingTables || isFirstNode(parts.contacts(), ownAddresses);
  const helps = (): boolean => config.help_others && isReached();
  const lending = buildLending(foundation, {
    dhtListen: parts.dhtListen,
    endpoint,
    records,
    ownAddresses,
    interfaces: parts.interfaceAddresses,
    dialGuard: parts.dialGuard,
    known: pool.known,
    budgets,
    helps,
  });
  const helper = new Helper({
    clock,
    known: pool.known,
    relay,
    isReached,
    tlsPorts: lending.tlsPorts,
    observedAddress,
    canReach: async ({ nodeKey, address }) => {
      try {
        (await endpoint.dial(address, nodeKey, { timeoutMs: DIAL_BACK_MS })).close();
        return true;
      } catch {
        return false;
      }
    },
    request: async (nodeKey, body) => {
      const address = observedAddress(nodeKey);
      if (address === null) throw new SvcError('connect_failed');
      const ask = () => nodeRequests.request('signal', { nodeKey, address }, body);
      return await retryIfDead(pool, nodeKey, ask);
    },
  });
  const addressVerification = new AddressVerification({
    clock,
    log,
    candidates: () => (records.reachability().ready ? addressesToVerify(ownAddresses.known()) : []),
    nodes: () => helpers.nodesToAsk(),
    requestDialBack: (node, port) => helperClient.requestDialBack(node, port),
    onResults: (verdicts) => {
      ownAddresses.setDialBackResults(verdicts);
      onNetwork();
    },
  });
  nodeRequests.onRequest(
    'signal',
    signalHandler(config.help_others ? helper : null, responder, (source) => lending.server.outer(source)),
  );

  const onNetwork = (): void => {
    helpers.onReachability();
    natDetector.onReachability();
    pool.improveRelayed();
  };
  let endpoints = '';
  const onAddresses = (): void => {
    const now = ownAddresses.current().endpoints.join();
    if (now !== endpoints) onNetwork();
    endpoints = now;
  };
  const onOtherNetwork = (): void => {
    helpers.onNetworkChange();
    onNetwork();
  };
  const fallback = new UdpFallback({
    clock,
    log,
    borrowing: tls,
    records,
    endpoint,
    pool,
    storedHelpers: () => helperStore.all,
    isOwnHost,
    isAllowed: () => parts.hasTls && !configuration.current.disable_relay,
    isIpv6Only: () => isIpv6Only(parts.interfaceAddresses()),
    lacksListenAddress: () => parts.listenHosts.missing().length > 0,
    onSwitch: () => {
      parts.onNetwork();
      onOtherNetwork();
    },
  });
  configuration.onChange((changed) => (changed.has('disable_relay') ? fallback.check() : undefined));
  life.defer(networkMonitor.onChange(() => fallback.onNetwork()));
  life.defer(records.onPortChange(() => fallback.onSilence()));
  life.defer(networkMonitor.onChange(onOtherNetwork));
  life.defer(records.onReachability(onNetwork));
  const onNode = (node: Address): void => {
    helpers.onNode(node);
    natDetector.onNode();
  };
  life.defer(records.onNode(onNode));
  life.defer(ownAddresses.onChange(onAddresses));
  life.defer(pool.onPathChange(({ nodeKey, path }) => (path === null ? helpers.onLost(nodeKey) : undefined)));
  const ends = [() => lender.stop(), () => clients.stop(), () => relay?.stop(), () => turn.stop()];
  const lenders = parts.hasTls ? [lending.server] : [];
  const active = [natDetector, addressVerification, helpers, turnRendezvousServer, fallback, ...lenders];
  for (const part of [onlyStops(ends), ...active]) life.add('network', part);
  return {
    fallback,
    helpers,
    mapping,
    seenMapping: () => lender.mapping,
    reachedAt: (address: Address) => addressVerification.reachedAt(address),
    relay: { limits, use: () => relay?.usage ?? NO_RELAY_USE, helps },
    lending: lending.server,
    tlsPorts: lending.tlsPorts,
  };
}
