/** Discovers nodes of the same network on this LAN by multicast DNS (RFC 6762), and announces this node. */
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import type { networkInterfaces } from 'node:os';
import { type Address, formatAddress } from '../../foundation/address.ts';
import { backoff } from '../../foundation/backoff.ts';
import { equalBytes, toHex } from '../../foundation/bytes.ts';
import { readInterfaces } from '../../foundation/interfaces.ts';
import type { Component } from '../../foundation/lifecycle.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import type { NodeParts } from '../../foundation/node-parts.ts';
import { RateLimiter, RateQuota } from '../../foundation/rate-limit.ts';
import { every, type RepeatingTask, UNTIL_REQUESTED } from '../../foundation/repeat.ts';
import { listening } from '../../foundation/stream-listeners.ts';
import { type InterfaceAddress, isOnNetworkOf } from './dial-guard.ts';
import {
  type Announcement,
  decodeAnnouncement,
  decodePacket,
  encodeAnnouncement,
  encodeQuestion,
  isServiceQuery,
  mentionsService,
} from './mdns-messages.ts';

/* The multicast DNS socket. It shares its port with other responders on this machine. */

const GROUP = '224.0.0.251';
const PORT = 5353;
/** Hop limit of sent packets (RFC 6762, section 11). */
const TTL = 255;

export interface MdnsSocketOptions {
  /** IPv4 address of the interface to use; all interfaces by default. */
  readonly interface?: string | undefined;
  /** 5353 by default. */
  readonly port?: number | undefined;
}

export interface MdnsSocketHandlers {
  readonly onMessage: (packet: Buffer, from: string) => void;
  readonly onError: (error: unknown) => void;
}

export class MdnsSocket {
  readonly #options: MdnsSocketOptions;
  readonly #handlers: MdnsSocketHandlers;
  readonly #socket: Socket;
  /** Addresses of the interfaces that joined the multicast group. */
  readonly #joined = new Set<string>();
  #isOpen = false;

  constructor(options: MdnsSocketOptions, handlers: MdnsSocketHandlers) {
    this.#options = options;
    this.#handlers = handlers;
    this.#socket = createSocket({ type: 'udp4', reuseAddr: true });
  }

  /** Binds the port. Fails if another program uses it exclusively. */
  async open(): Promise<void> {
    const socket = this.#socket;
    const { onMessage, onError } = this.#handlers;
    socket.on('message', (packet, { address }) => onMessage(packet, address));
    const bound = listening(socket);
    socket.bind(this.#options.port ?? PORT, '0.0.0.0');
    try {
      await bound;
      socket.setMulticastTTL(TTL);
      socket.setMulticastLoopback(true);
    } catch (error) {
      socket.close();
      throw error;
    }
    this.#isOpen = true;
    socket.on('error', onError);
    this.join();
  }

  /** Joins the multicast group on all new interfaces. */
  join(): void {
    if (!this.#isOpen) return;
    const { interface: only } = this.#options;
    const interfaces = readInterfaces();
    if (interfaces === null) return;
    const addresses = only === undefined ? firstAddresses(interfaces) : [only];
    // Removing an interface also removes its membership.
    for (const address of this.#joined) if (!addresses.includes(address)) this.#joined.delete(address);
    for (const address of addresses.filter((address) => !this.#joined.has(address))) {
      this.#joined.add(address);
      try {
        this.#socket.addMembership(GROUP, address);
        this.#socket.setMulticastInterface(only ?? outgoingAddress(interfaces));
      } catch (error) {
        this.#handlers.onError(error);
      }
    }
  }

  send(packet: Uint8Array): void {
    if (!this.#isOpen) return;
    this.#socket.send(packet, this.#options.port ?? PORT, GROUP, (error) => {
      if (error !== null) this.#handlers.onError(error);
    });
  }

  async close(): Promise<void> {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    // Closing the socket leaves the group.
    const closed = once(this.#socket, 'close');
    this.#socket.close();
    await closed;
  }
}

type Interfaces = ReturnType<typeof networkInterfaces>;

/** The first IPv4 address of each interface. */
function firstAddresses(interfaces: Interfaces): string[] {
  return Object.values(interfaces)
    .map((addresses) => addresses?.find(({ family }) => family === 'IPv4')?.address)
    .filter((address) => address !== undefined);
}

/** The interface to send from: en0 on macOS, the system's choice elsewhere; loopback if there is no other. */
function outgoingAddress(interfaces: Interfaces): string {
  const outward = (addresses: Interfaces[string]): string | undefined =>
    addresses?.find(({ family, internal }) => family === 'IPv4' && !internal)?.address;
  if (!Object.values(interfaces).some((addresses) => outward(addresses) !== undefined)) return '127.0.0.1';
  return (process.platform === 'darwin' ? outward(interfaces['en0']) : undefined) ?? '0.0.0.0';
}

/** Minimum and maximum interval between queries, and its growth factor. */
const MIN_QUERY_INTERVAL_MS = 1000;
const MAX_QUERY_INTERVAL_MS = 60_000;
const QUERY_INTERVAL_FACTOR = 3;
/** Minimum interval between responses, milliseconds (RFC 6762, section 6). */
const MIN_RESPONSE_INTERVAL_MS = 1000;
/** Interval between checks for new interfaces, milliseconds. */
export const INTERFACES_PERIOD_MS = 5000;
/** How long a node is not reported again (milliseconds), and for how many nodes this is remembered. */
const REPORT_TTL_MS = 60_000;
const MAX_REPORTED = 256;
/** Packets about svcd to decode from one sender: rate and burst. */
const PACKETS_PER_SECOND = 5;
const PACKET_BURST = 20;
/** Packets about svcd to decode from all senders: rate and burst. */
const TOTAL_PACKETS_PER_SECOND = 100;
const TOTAL_PACKET_BURST = 400;
/** Nodes to report: rate and burst. */
const REPORTS_PER_SECOND = 5;
const REPORT_BURST = 50;

interface LanDiscoveryOptions {
  /** The tag of this node's network. */
  readonly network: Uint8Array;
  readonly nodeKey: Uint8Array;
  /** IPv4 address of the interface to use; all interfaces by default. */
  readonly interface?: string;
  /** The UDP port of multicast DNS; only tests change it. */
  readonly mdnsPort?: number;
}

interface LanDiscoveryDependencies extends NodeParts {
  /** The port of the DHT. */
  readonly dhtPort: () => number;
  readonly interfaces: () => readonly InterfaceAddress[];
  /** Called for each discovered node of this network. */
  readonly onFound: (address: Address) => void;
}

export class LanDiscovery implements Component {
  readonly #options: LanDiscoveryOptions;
  readonly #deps: LanDiscoveryDependencies;
  readonly #reported: LruCache<string, true>;
  readonly #packets: RateQuota;
  readonly #reports: RateLimiter;
  #socket: MdnsSocket | null = null;
  #checks: RepeatingTask | null = null;
  #queries: RepeatingTask | null = null;
  #responses: RepeatingTask | null = null;
  #queryCount = 0;
  #hasWarned = false;
  #isStopped = false;
  #lastResponseAt = Number.NEGATIVE_INFINITY;

  constructor(options: LanDiscoveryOptions, dependencies: LanDiscoveryDependencies) {
    this.#options = options;
    this.#deps = dependencies;
    this.#reported = new LruCache({ maxEntries: MAX_REPORTED, ttlMs: REPORT_TTL_MS }, dependencies);
    const perSender = { perSecond: PACKETS_PER_SECOND, burst: PACKET_BURST };
    const strangers = { perSecond: TOTAL_PACKETS_PER_SECOND, burst: TOTAL_PACKET_BURST };
    this.#packets = new RateQuota({ perKey: perSender, perSource: perSender, strangers }, dependencies);
    this.#reports = new RateLimiter({ perSecond: REPORTS_PER_SECOND, burst: REPORT_BURST, maxKeys: 1 }, dependencies);
  }

  /** Starts discovery. While multicast is not available, no nodes are discovered, but the start succeeds. */
  async start(): Promise<void> {
    const { clock, log } = this.#deps;
    const onError = (error: unknown): void => log.debug({ error }, 'multicast DNS failed');
    await this.#open(onError);
    this.#checks = every(clock, { periodMs: INTERFACES_PERIOD_MS, onError }, () =>
      this.#socket === null ? this.#open(onError) : this.#socket.join(),
    );
  }

  /** Opens the socket. If another program has the port, or no descriptor is free, the next check tries again. */
  async #open(onError: (error: unknown) => void): Promise<void> {
    const { clock, log } = this.#deps;
    const { interface: address, mdnsPort } = this.#options;
    const onMessage = (packet: Buffer, from: string): void => this.#onMessage(packet, from);
    const socket = new MdnsSocket({ interface: address, port: mdnsPort }, { onMessage, onError });
    try {
      await socket.open();
    } catch (error) {
      if (!this.#hasWarned)
        log.warn({ error }, 'multicast DNS is not available: svcd cannot discover other nodes on this LAN');
      this.#hasWarned = true;
      return;
    }
    if (this.#isStopped) return await socket.close();
    this.#socket = socket;
    this.#queries = every(clock, { firstMs: 0, periodMs: MAX_QUERY_INTERVAL_MS, onError }, () => this.#query());
    this.#responses = every(clock, { firstMs: 0, periodMs: UNTIL_REQUESTED, onError }, () => this.#respond());
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#checks?.stop();
    await this.#checks?.idle();
    this.#queries?.stop();
    this.#responses?.stop();
    await this.#socket?.close();
    this.#socket = null;
  }

  #query(): number {
    this.#socket?.send(encodeQuestion());
    const pauses = { firstMs: MIN_QUERY_INTERVAL_MS, maxMs: MAX_QUERY_INTERVAL_MS, factor: QUERY_INTERVAL_FACTOR };
    return backoff(pauses, ++this.#queryCount);
  }

  #respond(): void {
    // protocol-dht.md, step 20
    this.#lastResponseAt = this.#deps.clock.monotonic();
    const { network, nodeKey } = this.#options;
    this.#socket?.send(encodeAnnouncement({ network, nodeKey, port: this.#deps.dhtPort() }));
  }

  /** The cheapest checks run first, because most packets on a LAN are about other services. */
  #onMessage(bytes: Buffer, from: string): void {
    // protocol-dht.md, step 21
    if (!mentionsService(bytes) || !this.#shouldDecode(from)) return;
    const packet = decodePacket(bytes);
    if (packet === null) return;
    // Immediately, or later if the last response was less than a second ago.
    if (isServiceQuery(packet))
      this.#responses?.soon(
        Math.max(0, this.#lastResponseAt + MIN_RESPONSE_INTERVAL_MS - this.#deps.clock.monotonic()),
      );
    const announcement = decodeAnnouncement(packet);
    if (announcement !== null && this.#isOther(announcement)) this.#report({ host: from, port: announcement.port });
  }

  #isOther({ network, nodeKey }: Announcement): boolean {
    return equalBytes(network, this.#options.network) && !equalBytes(nodeKey, this.#options.nodeKey);
  }

  /** Whether to decode a packet: its sender is on this LAN and within its rate. */
  #shouldDecode(address: string): boolean {
    return (
      isOnNetworkOf(address, this.#deps.interfaces()) &&
      this.#packets.take({ node: address, source: address, named: false })
    );
  }

  #report(address: Address): void {
    const name = formatAddress(address);
    if (this.#reported.has(name) || !this.#reports.take('')) return;
    this.#reported.set(name, true);
    this.#deps.log.debug({ address: name, network: toHex(this.#options.network) }, 'found a node on this LAN');
    this.#deps.onFound(address);
  }
}
