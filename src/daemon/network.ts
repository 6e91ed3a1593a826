/** Connections between nodes, requests on them, records, and the addresses of this node. */
import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import {
  type Address,
  formatAddress,
  isLoopbackHost,
  type NodeContact,
  parseAddress,
  parseContact,
} from '../foundation/address.ts';
import { descriptorLimit } from '../foundation/descriptors.ts';
import type { Exit } from '../foundation/domain/exit.ts';
import type { PathKind } from '../foundation/domain/tunnels.ts';
import { SvcError } from '../foundation/errors.ts';
import { otherContacts } from '../foundation/invitation.ts';
import { JoinedContacts } from '../network/joined-contacts.ts';
import { KnownNodes } from '../network/known-nodes.ts';
import { PooledNodeRequests } from '../network/links/node-requests.ts';
import type { NodeAt } from '../network/node-requests.ts';
import { NODE_DIAL_TIMEOUT_MS } from '../network/peers/dial.ts';
import { PeerTable } from '../network/peers/peer-table.ts';
import { DialGuard, kindOfPath } from '../network/reachability/dial-guard.ts';
import { InterfaceAddresses } from '../network/reachability/interface-addresses.ts';
import { LanDiscovery } from '../network/reachability/lan-discovery.ts';
import { ListenHosts } from '../network/reachability/listen-hosts.ts';
import { NAT_TYPE } from '../network/reachability/nat.ts';
import { NetworkMonitor } from '../network/reachability/network-monitor.ts';
import { OutageDiagnosis } from '../network/reachability/outage-diagnosis.ts';
import { OwnAddresses } from '../network/reachability/own-addresses.ts';
import { findGateway } from '../network/reachability/port-mapping/gateway.ts';
import { grantorFinders, PortMapper } from '../network/reachability/port-mapping/port-mapper.ts';
import { hasUsableTurnServer } from '../network/reachability/turn/turn-servers.ts';
import type { UdpFallbackStatus } from '../network/reachability/udp-fallback.ts';
import { networkTag } from '../network/records/node-address.ts';
import { RecordDht } from '../network/records/record-dht.ts';
import { Resolver } from '../network/resolver.ts';
import { LanTcp } from '../network/transport/lan-tcp/lan-tcp.ts';
import { Nat64 } from '../network/transport/nat64.ts';
import { NativeQuicEndpoint } from '../network/transport/quic/native-endpoint.ts';
import { UdpOverTls } from '../network/transport/tls/client.ts';
import { Proxies, readTlsCa } from '../network/transport/tls/proxy.ts';
import { switchingSockets } from '../network/transport/tls/socket.ts';
import { TlsLanes } from '../network/transport/tls/tls-lanes.ts';
import { UdpLanes } from '../network/transport/udp-lane/udp-lanes.ts';
import { missingUdx } from '../network/transport/udx.ts';
import type { Foundation } from './foundation.ts';
import { JoinReport } from './join-report.ts';
import { type Machine, thisMachine } from './machine.ts';
import { buildReach, type Reach } from './reach.ts';

// The addresses on which the daemon listens, according to the configuration.

function parsed(key: string, text: string): Address {
  const address = parseAddress(text);
  if (address === null) throw new SvcError('config_invalid', { details: { key } });
  return address;
}

/** An IPv4 address to bind: all interfaces for an empty host, the first address of a name. */
async function ipv4(key: string, host: string): Promise<string> {
  if (host === '') return '0.0.0.0';
  if (isIP(host) === 4) return host;
  try {
    const { address, family } = await lookup(host, { family: 4 });
    // An IPv6 address is returned unchanged, regardless of the requested family.
    if (family === 4) return address;
    throw new RangeError('an IPv6 address');
  } catch (error) {
    throw new SvcError('config_invalid', {
      message: `The host of ${key} has no IPv4 address, which the record network requires.`,
      details: { key },
      cause: error,
    });
  }
}

/** Listen address of the record network (UDP, IPv4). */
export async function dhtAddress(listenAddr: string): Promise<Address> {
  const { host, port } = parsed('listen_addr', listenAddr);
  return { host: await ipv4('listen_addr', host), port };
}

/** Listen address of QUIC: as configured, or on the port after the record network's port. */
export async function quicAddress(quicListenAddr: string, dht: Address): Promise<Address> {
  if (quicListenAddr !== '') return parsed('quic_listen_addr', quicListenAddr);
  return { host: dht.host === '0.0.0.0' ? '' : dht.host, port: dht.port === 0 ? 0 : dht.port + 1 };
}

/**
 * Whether to request port mappings from the router. Not if the owner disabled it, or if the daemon only listens on
 * loopback.
 */
export function needsPortMapping(config: { readonly disable_upnp: boolean }, listens: readonly Address[]): boolean {
  return !config.disable_upnp && !listens.some(({ host }) => isLoopbackHost(host));
}

/**
 * The bootstrap nodes.
 * @throws SvcError `config_invalid`
 */
export function bootstrapNodes(texts: readonly string[]): NodeContact[] {
  return texts.map((text) => {
    const contact = parseContact(text);
    if (contact === null) throw new SvcError('config_invalid', { details: { key: 'bootstrap' } });
    return contact;
  });
}

/** The way out of this network, as the API shows it. */
function exitOf({ state, trouble, helper, proxy, hasSpare, isInspected, error }: UdpFallbackStatus): Exit {
  return {
    state,
    trouble,
    helper: helper === null ? null : formatAddress(helper.address),
    proxy,
    has_spare: hasSpare,
    is_inspected: isInspected,
    error,
  };
}

/** Disk limit for records of other nodes, in bytes. */
const MAX_RECORD_STORE_BYTES = 256 * 1024 * 1024;

/** Nodes to dial for a diagnosis. */
const MAX_DIALED = 3;

export type Network = Awaited<ReturnType<typeof buildNetwork>>;

/** @throws SvcError `config_invalid`, `store_corrupt` */
export async function buildNetwork(foundation: Foundation, machine: Machine = thisMachine()) {
  const { life, clock, log, config, configuration, node, dataDir, verifier, meta } = foundation;
  const dhtListen = await dhtAddress(config.listen_addr);
  const quicListen = await quicAddress(config.quic_listen_addr, dhtListen);
  const ownInterfaces = new InterfaceAddresses({ clock });
  const interfaceAddresses = () => ownInterfaces.recent();
  const kindOf = (remote: Address, outbound: boolean): PathKind =>
    kindOfPath(remote, outbound, interfaceAddresses(), ownAddresses.known());
  const known = new KnownNodes();
  const lookupHost = async (host: string): Promise<string[]> =>
    (await lookup(host, { all: true })).map((one) => one.address);
  const nat64 = new Nat64({ clock, interfaces: interfaceAddresses, lookupHost });
  const tls = new UdpOverTls({
    clock,
    log: log.child('tls'),
    identity: { key: node.key, tag: networkTag(config.network) },
    proxies: new Proxies(() => configuration.current, process.env),
    ca: () => readTlsCa(config.tls_ca),
    reachableForms: (target) => nat64.reachableForms(target),
  });
  const endpoint = new NativeQuicEndpoint(
    { key: node.key, ...quicListen },
    {
      log: log.child('quic'),
      clock,
      kindOf,
      isKnown: (nodeKey) => known.has(nodeKey),
      sourceAt: (host, remote, nodeKey) => lentPorts.borrowerAt(remote) ?? records.sourceAt(host, nodeKey),
      borrowed: tls,
      engine: machine.engine,
      adaptHandshakesMs: machine.adaptHandshakesMs,
    },
  );
  const relayDisabled = (): boolean => configuration.current.disable_relay;
  const lanTcp = config.lan_tcp ? new LanTcp({ clock, descriptors: descriptorLimit }) : null;
  const pool = new PeerTable(
    { nodeKey: node.key.publicKey, network: config.network },
    { endpoint, clock, log, relayDisabled, known, ...(lanTcp === null ? {} : { upgrade: lanTcp }) },
  );
  configuration.onChange((changed) => {
    if (changed.has('disable_relay') && relayDisabled()) pool.closeRelayed();
  });
  const nodeRequests = new PooledNodeRequests({ pool, clock });
  const joined = new JoinedContacts(config.network, meta);
  const invited = foundation.join === null ? null : otherContacts(foundation.join.contacts, node.key.publicKey);
  if (invited !== null) joined.add(invited, foundation.join?.invitation);
  const proveKey = async ({ address, nodeKey }: NodeAt): Promise<boolean> => {
    try {
      (await endpoint.dial(address, nodeKey, { timeoutMs: NODE_DIAL_TIMEOUT_MS })).close();
      return true;
    } catch (error) {
      log.debug({ error, address: formatAddress(address) }, 'a node did not prove its key');
      return false;
    }
  };
  const lentPorts = {
    outer: (address: Address): Address => reach.lending.outer(address),
    local: (address: Address): Address => reach.lending.local(address),
    borrowerAt: (address: Address): string | null => reach.lending.borrowerAt(address),
  };
  const world = { ...machine.rpc, createSocket: switchingSockets(machine.rpc.createSocket, tls), lentPorts };
  const records = new RecordDht(
    {
      listen: dhtListen,
      bootstrap: [...bootstrapNodes(config.bootstrap), ...joined.current],
      network: config.network,
      nodeKey: node.key.publicKey,
      maxStoreBytes: MAX_RECORD_STORE_BYTES,
      storeFile: dataDir.file('records.db'),
      minObservedPeers: config.min_observed_peers,
      statedHost: config.fallback_host,
    },
    {
      clock,
      log,
      verifier,
      nodeRequests,
      quicPort: () => endpoint.address.port,
      proveKey,
      random: Math.random,
      world,
      resolveName: async (name) => {
        const ipv4 = tls.ipv4Of(name);
        return ipv4 === null ? await lookupHost(name) : [ipv4];
      },
    },
  );
  const interfaces = (): string[] => interfaceAddresses().map((one) => one.address);
  const ownAddresses: OwnAddresses = new OwnAddresses(
    { fallbackHost: config.fallback_host, hasTurn: hasUsableTurnServer(config.turn_servers) },
    { records, quic: () => endpoint.address, interfaces },
  );
  const networkMonitor = new NetworkMonitor(clock, log, () => ownInterfaces.read().map((one) => one.address));
  const onNetwork = (): void => {
    pool.onNetwork();
    records.onNetwork();
    ownAddresses.refresh();
  };
  networkMonitor.onChange(onNetwork);
  // All flows went silent. Connections are dialed again from new ports, so other nodes see this node at other ports.
  records.onPortChange(() => {
    endpoint.renewPorts();
    onNetwork();
  });
  const dialSome = async () => {
    const asked = records.peers().slice(0, MAX_DIALED);
    const known = await Promise.all(asked.map((peer) => records.identify(peer)));
    const dialled = known.filter((node) => node !== null);
    const reached = await Promise.all(dialled.map(proveKey));
    const isNarrow = dialled.length > 0 && !reached.includes(true) && !(await records.carriesQuic(asked));
    return { dialled: dialled.length, reached: reached.filter((isReached) => isReached).length, isNarrow };
  };
  const exit = (): Exit => exitOf(reach.fallback.status());
  const listenHosts = new ListenHosts([dhtListen, quicListen], interfaces);
  const outages = new OutageDiagnosis({
    clock,
    records,
    listenHosts,
    interfaces,
    exit,
    hasProxy: () => tls.hasProxy,
    hasPlainProxyOnly: () => tls.hasPlainProxyOnly,
  });
  const dialGuard = new DialGuard({
    interfaces: interfaceAddresses,
    usesLoopback: () =>
      isLoopbackHost(quicListen.host) ||
      interfaces().every(isLoopbackHost) ||
      records.peers().some(({ host }) => isLoopbackHost(host)),
  });
  const resolver = new Resolver({
    network: records,
    clock,
    log,
    lookupHost,
    explainFailure: (since) => outages.explainFailure(since),
    mayDial: (address) => dialGuard.mayDial(address),
    becomesReady: () => reach.fallback.becomesReady(),
  });
  const lan = new LanDiscovery(
    {
      network: networkTag(config.network),
      nodeKey: node.key.publicKey,
      ...(isLoopbackHost(dhtListen.host) ? { interface: dhtListen.host } : {}),
    },
    {
      clock,
      log,
      dhtPort: () => records.address.port,
      interfaces: interfaceAddresses,
      onFound: (found) => records.addNode(found),
    },
  );
  const portMapper = new PortMapper({
    clock,
    log: log.child('mapping'),
    ports: () => [endpoint.address.port, records.address.port],
    findGateway,
    grantors: (gateway) => grantorFinders(gateway, clock, Math.random, interfaceAddresses),
    onMapped: (ports) => {
      const ofQuic = ports.filter(({ internalPort }) => internalPort === endpoint.address.port);
      const found = ofQuic.map(({ external }) => ({ address: external, source: 'mapped', verifiedBy: null }) as const);
      ownAddresses.found('router', found);
      if (ports.some(({ internalPort }) => internalPort === records.address.port)) records.onMapped();
    },
  });
  const mapping = needsPortMapping(config, [dhtListen, quicListen]) ? [portMapper] : [];
  const optional = [...mapping, ...(config.mdns ? [lan] : []), ...(lanTcp === null ? [] : [lanTcp])];
  const udpLanes = new UdpLanes({
    clock,
    records,
    isAvailable: machine.hasBulkLanes,
    outerPort: () => {
      const { natType } = ownAddresses.current();
      return natType === NAT_TYPE.symmetric ? 0 : (records.reachability().observed[0]?.port ?? records.address.port);
    },
  });
  const lanes = new TlsLanes({
    clock,
    udp: udpLanes,
    tls,
    isAllowed: () => machine.hasTls && !relayDisabled(),
    localLent: lentPorts.local,
  });
  const joinReport =
    invited === null
      ? []
      : [new JoinReport(invited, { clock, log, records, explainFailure: (since) => outages.explainFailure(since) })];
  for (const part of [endpoint, pool, records, udpLanes, ownAddresses, networkMonitor, ...optional, ...joinReport])
    life.add('network', part);
  const reach: Reach = buildReach(foundation, {
    endpoint,
    pool,
    nodeRequests,
    records,
    ownAddresses,
    interfaceAddresses,
    listenHosts,
    networkMonitor,
    tls,
    hasTls: machine.hasTls,
    onNetwork,
    dhtListen,
    dialGuard,
    contacts: () => config.bootstrap.length + joined.current.length,
  });
  return {
    endpoint,
    pool,
    records,
    lanes,
    joined,
    ownAddresses,
    portMapper,
    resolver,
    outages,
    listenHosts,
    dialSome,
    interfaces,
    lookupHost,
    kindOf,
    missing: [endpoint.missing, missingUdx].filter((one) => one !== null),
    reach,
    exit,
  };
}
