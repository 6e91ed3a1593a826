/** Lends UDP ports over TLS to nodes whose networks block UDP. */
import { isIP, isIPv4 } from 'node:net';
import { type Address, formatAddress, HTTPS_PORT, isLoopbackHost } from '../foundation/address.ts';
import { AUTO_TLS_LISTEN, parseTlsListen } from '../foundation/config/tls-listen.ts';
import { descriptorLimit } from '../foundation/descriptors.ts';
import { IP_SCOPE, ipScope } from '../foundation/ip.ts';
import type { KnownNodes } from '../network/known-nodes.ts';
import type { DialGuard, InterfaceAddress } from '../network/reachability/dial-guard.ts';
import { isPublished, type OwnAddresses } from '../network/reachability/own-addresses.ts';
import type { RelayBudgets } from '../network/reachability/relay-budgets.ts';
import { networkTag } from '../network/records/node-address.ts';
import type { RecordDht } from '../network/records/record-dht.ts';
import type { NativeQuicEndpoint } from '../network/transport/quic/native-endpoint.ts';
import { type OwnPlaces, type TlsListener, TlsServer } from '../network/transport/tls/server.ts';
import type { Foundation } from './foundation.ts';

interface LendingParts {
  readonly dhtListen: Address;
  readonly endpoint: NativeQuicEndpoint;
  readonly records: RecordDht;
  readonly ownAddresses: OwnAddresses;
  readonly interfaces: () => readonly InterfaceAddress[];
  readonly dialGuard: DialGuard;
  readonly known: KnownNodes;
  readonly budgets: RelayBudgets;
  readonly helps: () => boolean;
}

class NodePlaces implements OwnPlaces {
  readonly #parts: LendingParts;
  readonly #fallbackHost: string;

  constructor(parts: LendingParts, fallbackHost: string) {
    this.#parts = parts;
    this.#fallbackHost = fallbackHost;
  }

  /** The IPv4 address of this node as others see it, or the best guess; null if it is unknown. */
  get seenHost(): string | null {
    const { dhtListen, records } = this.#parts;
    const candidates = [records.seenHost, this.#fallbackHost, dhtListen.host, this.#interfaceHost];
    return candidates.find((host) => host !== null && isIPv4(host) && ipScope(host) !== IP_SCOPE.none) ?? null;
  }

  localHost(host: string): string | null {
    const { dhtListen, interfaces, ownAddresses, records } = this.#parts;
    if (interfaces().some(({ address }) => address === host)) return host;
    const isOuter =
      host === records.seenHost ||
      host === this.#fallbackHost ||
      ownAddresses.known().some(({ address }) => address.host === host);
    if (!isOuter || !isIPv4(host)) return null;
    return dhtListen.host === '0.0.0.0' ? this.#interfaceHost : dhtListen.host;
  }

  /** Mapped ports of a router may have other numbers. */
  localPort(address: Address): number | null {
    const { endpoint, ownAddresses, records } = this.#parts;
    const isHere = (one: Address): boolean => formatAddress(one) === formatAddress(address);
    if (address.port === records.address.port || records.reachability().observed.some(isHere))
      return records.address.port;
    const isQuic = address.port === endpoint.address.port || ownAddresses.known().some((one) => isHere(one.address));
    return isQuic ? endpoint.address.port : null;
  }

  /** The IPv4 address of an interface, public if there is one; null without any but loopback. */
  get #interfaceHost(): string | null {
    const hosts = this.#parts.interfaces().map(({ address }) => address);
    const usable = hosts.filter((host) => isIP(host) === 4 && ipScope(host) > IP_SCOPE.link);
    return usable.find((host) => ipScope(host) === IP_SCOPE.public) ?? usable[0] ?? null;
  }
}

/**
 * True if this node is the first of a network: it knows no other node, and has an address that others can use. Nodes
 * without UDP can only join through it.
 */
export function isFirstNode(contacts: number, ownAddresses: Pick<OwnAddresses, 'known'>): boolean {
  const isUsable = ({ address, source }: ReturnType<OwnAddresses['known']>[number]): boolean =>
    source === 'configured' || ipScope(address.host) === IP_SCOPE.public;
  return contacts === 0 && ownAddresses.known().some((own) => isPublished(own) && isUsable(own));
}

/** The listeners: as configured, or on the port of the record network and on 443. */
function listenersOf(setting: string, record: Address): readonly TlsListener[] {
  const named = parseTlsListen(setting) ?? [];
  if (named !== AUTO_TLS_LISTEN) return named.map((one) => ({ ...one, isNamed: true }));
  const host = record.host === '0.0.0.0' ? '' : record.host;
  const ports = isLoopbackHost(host) ? [record.port] : [...new Set([record.port, HTTPS_PORT])];
  return ports.map((port) => ({ host, port, isTls: true, isNamed: false }));
}

/** Creates the server. Add it to the components of the daemon. */
export function buildLending(foundation: Foundation, parts: LendingParts) {
  const { clock, log, config, node, life } = foundation;
  const { dhtListen, records, dialGuard, known, budgets } = parts;
  const places = new NodePlaces(parts, config.fallback_host);
  const isNamed = config.tls_listen !== AUTO_TLS_LISTEN;
  const server = new TlsServer(
    {
      key: node.key,
      tag: networkTag(config.network),
      sessions: config.tls_sessions,
      certificate: { cert: config.tls_cert, key: config.tls_key },
      hosts: {
        ipv4: dhtListen.host,
        ipv6: isLoopbackHost(dhtListen.host) ? '::1' : '::',
      },
    },
    {
      clock,
      log: log.child('tls'),
      listeners: () => listenersOf(config.tls_listen, { host: dhtListen.host, port: records.address.port }),
      helps: () => config.help_others && (isNamed || parts.helps()),
      isKnown: (nodeKey) => known.has(nodeKey),
      openAccount: (client) => budgets.open(client),
      mayDial: (address) => dialGuard.mayDial(address),
      places,
      usesLoopback: () =>
        isLoopbackHost(dhtListen.host) || parts.interfaces().every(({ address }) => isLoopbackHost(address)),
      descriptors: descriptorLimit,
    },
  );
  life.defer(records.onReachability(() => server.update()));
  life.defer(parts.ownAddresses.onChange(() => server.update()));
  return {
    server,
    /** TCP ports at which nodes find it. A web server in front of it has the port of HTTPS. */
    tlsPorts: (): readonly number[] => [
      ...new Set(server.addresses.map(({ port, isTls }) => (isTls ? port : HTTPS_PORT))),
    ],
  };
}
