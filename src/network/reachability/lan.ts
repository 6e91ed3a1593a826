/** Finds the nodes of the same network on this LAN by multicast DNS (RFC 6762), and lets them find us. */
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { networkInterfaces } from 'node:os';
import { type Address, formatAddress } from '../../foundation/address.ts';
import { backoff } from '../../foundation/backoff.ts';
import { equalBytes, toHex } from '../../foundation/bytes.ts';
import type { Clock } from '../../foundation/clock.ts';
import type { Component } from '../../foundation/lifecycle.ts';
import type { Log } from '../../foundation/log.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import { RateLimiter, RateQuota } from '../../foundation/rate-limit.ts';
import { every, type RepeatingTask, UNTIL_REQUESTED } from '../../foundation/repeat.ts';
import { listening } from '../../foundation/stream-listeners.ts';
import { type InterfaceAddress, isOnNetworkOf } from './dial-guard.ts';
import {
  type Announcement,
  asksForService,
  decodeAnnouncement,
  decodePacket,
  encodeAnnouncement,
  encodeQuestion,
  mentionsService,
} from './mdns-messages.ts';

/* The UDP socket of multicast DNS. It shares its port with the other responders of this machine. */

const GROUP = '224.0.0.251';
const PORT = 5353;
/** Hop limit of what we send (RFC 6762, section 11). */
const TTL = 255;

export interface MdnsSocketOptions {
  /** The IPv4 address of the one interface to use; every interface if left out. */
  readonly interface?: string | undefined;
  /** 5353 if left out. */
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
  /** Addresses of the interfaces on which the group was joined. */
  readonly #joined = new Set<string>();
  #isOpen = false;

  constructor(options: MdnsSocketOptions, handlers: MdnsSocketHandlers) {
    this.#options = options;
    this.#handlers = handlers;
    this.#socket = createSocket({ type: 'udp4', reuseAddr: true });
  }

  /** Binds the port; fails if another program holds it alone. */
  async open(): Promise<void> {
    const socket = this.#socket;
    const { onMessage, onError } = this.#handlers;
    socket.on('message', (packet, { address }) => onMessage(packet, address));
    const bound = listening(socket);
    socket.bind(this.#options.port ?? PORT, '0.0.0.0');
    try {
      await bound;
    } catch (error) {
      socket.close();
      throw error;
    }
    this.#isOpen = true;
    socket.on('error', onError);
    socket.setMulticastTTL(TTL);
    socket.setMulticastLoopback(true);
    this.join();
  }

  /** Joins the group on every interface that has come up since. */
  join(): void {
    if (!this.#isOpen) return;
    const { interface: only } = this.#options;
    const addresses = only === undefined ? interfaceAddresses() : [only];
    // An interface that has gone took its membership with it.
    for (const address of this.#joined) if (!addresses.includes(address)) this.#joined.delete(address);
    for (const address of addresses.filter((address) => !this.#joined.has(address))) {
      this.#joined.add(address);
      try {
        this.#socket.addMembership(GROUP, address);
        this.#socket.setMulticastInterface(only ?? outgoingAddress());
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
    // The system leaves the group with the socket.
    const closed = once(this.#socket, 'close');
    this.#socket.close();
    await closed;
  }
}

/** One IPv4 address of each interface. */
function interfaceAddresses(): string[] {
  return Object.values(networkInterfaces())
    .map((addresses) => addresses?.find(({ family }) => family === 'IPv4')?.address)
    .filter((address) => address !== undefined);
}

/** The interface that packets leave by: the system's choice, and en0 on macOS; loopback if there is no other. */
function outgoingAddress(): string {
  const outward = (addresses: ReturnType<typeof networkInterfaces>[string]): string | undefined =>
    addresses?.find(({ family, internal }) => family === 'IPv4' && !internal)?.address;
  const interfaces = networkInterfaces();
  if (!Object.values(interfaces).some((addresses) => outward(addresses) !== undefined)) return '127.0.0.1';
  return (process.platform === 'darwin' ? outward(interfaces['en0']) : undefined) ?? '0.0.0.0';
}

/** From the first to the longest pause between two questions, and how much it grows each time. */
const MIN_QUERY_PAUSE_MS = 1000;
const MAX_QUERY_PAUSE_MS = 60_000;
const QUERY_PAUSE_FACTOR = 3;
/** The least time between two answers of ours, milliseconds (RFC 6762, section 6). */
const MIN_ANSWER_PAUSE_MS = 1000;
/** Milliseconds between two looks for interfaces that have come up. */
const INTERFACES_PERIOD_MS = 5000;
/** For how long a node that was found is not reported again, milliseconds, and how many are remembered. */
const REPORT_AGAIN_MS = 60_000;
const MAX_KNOWN = 256;
/** Packets about our service that are decoded, of one sender: per second, and at once. */
const PACKETS_PER_SECOND = 5;
const PACKET_BURST = 20;
/** Packets about our service that are decoded, of all senders: per second, and at once. */
const PACKETS_IN_ALL_PER_SECOND = 100;
const PACKETS_IN_ALL_BURST = 400;
/** Reports per second, and at once, whoever causes them. */
const REPORTS_PER_SECOND = 5;
const REPORT_BURST = 50;

interface LanDiscoveryOptions {
  /** The tag of our network. */
  readonly network: Uint8Array;
  readonly nodeKey: Uint8Array;
  /** The IPv4 address of the one interface to use; every interface where left out. */
  readonly interface?: string;
  /** The UDP port of multicast DNS; only tests choose another than 5353. */
  readonly mdnsPort?: number;
}

interface LanDiscoveryDependencies {
  readonly clock: Clock;
  readonly log: Log;
  /** The port at which our DHT listens. */
  readonly dhtPort: () => number;
  readonly interfaces: () => readonly InterfaceAddress[];
  /** Told of each node of our network that was found. */
  readonly onFound: (address: Address) => void;
}

export class LanDiscovery implements Component {
  readonly #options: LanDiscoveryOptions;
  readonly #deps: LanDiscoveryDependencies;
  readonly #known: LruCache<string, true>;
  readonly #packets: RateQuota;
  readonly #reports: RateLimiter;
  #socket: MdnsSocket | null = null;
  #interfaces: RepeatingTask | null = null;
  #queries: RepeatingTask | null = null;
  #answers: RepeatingTask | null = null;
  #asked = 0;
  #lastAnswer = Number.NEGATIVE_INFINITY;

  constructor(options: LanDiscoveryOptions, dependencies: LanDiscoveryDependencies) {
    this.#options = options;
    this.#deps = dependencies;
    this.#known = new LruCache({ maxEntries: MAX_KNOWN, ttlMs: REPORT_AGAIN_MS }, dependencies);
    const perSender = { perSecond: PACKETS_PER_SECOND, burst: PACKET_BURST };
    const strangers = { perSecond: PACKETS_IN_ALL_PER_SECOND, burst: PACKETS_IN_ALL_BURST };
    this.#packets = new RateQuota({ perKey: perSender, perSource: perSender, strangers }, dependencies);
    this.#reports = new RateLimiter({ perSecond: REPORTS_PER_SECOND, burst: REPORT_BURST, maxKeys: 1 }, dependencies);
  }

  /** Begins to ask and to answer. A LAN without multicast is no error: then nobody is found. */
  async start(): Promise<void> {
    const { clock, log } = this.#deps;
    const { interface: address, mdnsPort } = this.#options;
    const onError = (error: unknown): void => log.debug({ error }, 'multicast DNS');
    const onMessage = (packet: Buffer, from: string): void => this.#onMessage(packet, from);
    const socket = new MdnsSocket({ interface: address, port: mdnsPort }, { onMessage, onError });
    this.#socket = socket;
    try {
      await socket.open();
    } catch (error) {
      log.warn({ error }, 'multicast DNS does not work here: other nodes of this LAN are not found by themselves');
      return;
    }
    this.#interfaces = every(clock, { periodMs: INTERFACES_PERIOD_MS, onError }, () => this.#socket?.join());
    this.#queries = every(clock, { firstMs: 0, periodMs: MAX_QUERY_PAUSE_MS, onError }, () => this.#query());
    this.#answers = every(clock, { firstMs: 0, periodMs: UNTIL_REQUESTED, onError }, () => this.#answer());
  }

  async stop(): Promise<void> {
    this.#interfaces?.stop();
    this.#queries?.stop();
    this.#answers?.stop();
    await this.#socket?.close();
    this.#socket = null;
  }

  #query(): number {
    this.#socket?.send(encodeQuestion());
    const pauses = { firstMs: MIN_QUERY_PAUSE_MS, maxMs: MAX_QUERY_PAUSE_MS, factor: QUERY_PAUSE_FACTOR };
    return backoff(pauses, ++this.#asked);
  }

  #answer(): void {
    // protocol-dht.md, step 20
    this.#lastAnswer = this.#deps.clock.now();
    const { network, nodeKey } = this.#options;
    this.#socket?.send(encodeAnnouncement({ network, nodeKey, port: this.#deps.dhtPort() }));
  }

  /** The cheapest checks come first: a LAN is full of packets about other services. */
  #onMessage(bytes: Buffer, from: string): void {
    // protocol-dht.md, step 21
    if (!mentionsService(bytes) || !this.#admits(from)) return;
    const packet = decodePacket(bytes);
    if (packet === null) return;
    // Now, or a little later if we answered a moment ago.
    if (asksForService(packet))
      this.#answers?.soon(Math.max(0, this.#lastAnswer + MIN_ANSWER_PAUSE_MS - this.#deps.clock.now()));
    const announcement = decodeAnnouncement(packet);
    if (announcement !== null && this.#isOther(announcement)) this.#report({ host: from, port: announcement.port });
  }

  #isOther({ network, nodeKey }: Announcement): boolean {
    return equalBytes(network, this.#options.network) && !equalBytes(nodeKey, this.#options.nodeKey);
  }

  /** Whether a packet comes from this LAN, and from a sender that has not sent too many. */
  #admits(address: string): boolean {
    return (
      isOnNetworkOf(address, this.#deps.interfaces()) &&
      this.#packets.take({ node: address, source: address, named: false })
    );
  }

  #report(address: Address): void {
    const name = formatAddress(address);
    if (this.#known.has(name) || !this.#reports.take('')) return;
    this.#known.set(name, true);
    this.#deps.log.debug({ address: name, network: toHex(this.#options.network) }, 'found a node on this LAN');
    this.#deps.onFound(address);
  }
}
