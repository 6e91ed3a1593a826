/** Finds the nodes of the same network on this LAN by multicast DNS (RFC 6762), and lets them find us. */
import { networkInterfaces } from 'node:os';
import multicastDns from 'multicast-dns';
import { type Address, formatAddress } from '../../foundation/address.ts';
import { backoff } from '../../foundation/backoff.ts';
import { equalBytes, toHex } from '../../foundation/bytes.ts';
import type { Clock } from '../../foundation/clock.ts';
import { inIpv4Network } from '../../foundation/ip.ts';
import type { Component } from '../../foundation/lifecycle.ts';
import type { Log } from '../../foundation/log.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import { RateLimiter } from '../../foundation/rate-limit.ts';
import { every, type Repeating, UNTIL_HURRIED } from '../../foundation/repeat.ts';
import { type Announcement, decodeAnnouncement, encodeAnnouncement, SERVICE } from './lan-announcement.ts';

/** From the first to the longest pause between two questions, and how much it grows each time. */
const MIN_QUERY_PAUSE_MS = 1000;
const MAX_QUERY_PAUSE_MS = 60_000;
const QUERY_PAUSE_FACTOR = 3;
/** The least time between two answers of ours, milliseconds (RFC 6762, section 6). */
const MIN_ANSWER_PAUSE_MS = 1000;
/** For how long a node that was found is not reported again, milliseconds, and how many are remembered. */
const REPORT_AGAIN_MS = 60_000;
const MAX_KNOWN = 256;
/** Packets of one sender that are read per second, and at once. */
const PACKETS_PER_SECOND = 5;
const PACKET_BURST = 20;
const MAX_SENDERS = 256;
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
  /** Told of each node of our network that was found. */
  readonly onFound: (address: Address) => void;
}

export class LanDiscovery implements Component {
  readonly #options: LanDiscoveryOptions;
  readonly #deps: LanDiscoveryDependencies;
  readonly #known: LruCache<string, true>;
  readonly #packets: RateLimiter;
  readonly #reports: RateLimiter;
  #mdns: multicastDns.MulticastDns | null = null;
  #queries: Repeating | null = null;
  #answers: Repeating | null = null;
  #asked = 0;
  #lastAnswer = Number.NEGATIVE_INFINITY;

  constructor(options: LanDiscoveryOptions, dependencies: LanDiscoveryDependencies) {
    this.#options = options;
    this.#deps = dependencies;
    this.#known = new LruCache({ maxEntries: MAX_KNOWN, ttlMs: REPORT_AGAIN_MS }, dependencies);
    const perSender = { perSecond: PACKETS_PER_SECOND, burst: PACKET_BURST, maxKeys: MAX_SENDERS };
    this.#packets = new RateLimiter(perSender, dependencies);
    this.#reports = new RateLimiter({ perSecond: REPORTS_PER_SECOND, burst: REPORT_BURST, maxKeys: 1 }, dependencies);
  }

  /** Begins to ask and to answer. A LAN without multicast is no error: then nobody is found. */
  async start(): Promise<void> {
    const { clock, log } = this.#deps;
    const { interface: address, mdnsPort } = this.#options;
    const mdns = multicastDns({ bind: '0.0.0.0', interface: address, port: mdnsPort });
    this.#mdns = mdns;
    const onError = (error: unknown): void => log.debug({ error }, 'multicast DNS');
    mdns.on('warning', onError);
    mdns.on('query', (packet, from) => this.#onQuery(packet, from));
    mdns.on('response', (packet, from) => this.#onResponse(packet, from));
    const started = await new Promise<boolean>((resolve) => {
      mdns.on('ready', () => resolve(true));
      mdns.on('error', (error) => {
        log.warn({ error }, 'multicast DNS does not work here: other nodes of this LAN are not found by themselves');
        resolve(false);
      });
    });
    if (!started) return;
    this.#queries = every(clock, { firstMs: 0, periodMs: MAX_QUERY_PAUSE_MS, onError }, () => this.#query());
    this.#answers = every(clock, { firstMs: 0, periodMs: UNTIL_HURRIED, onError }, () => this.#answer());
  }

  async stop(): Promise<void> {
    this.#queries?.stop();
    this.#answers?.stop();
    const mdns = this.#mdns;
    this.#mdns = null;
    await new Promise<void>((resolve) => (mdns === null ? resolve() : mdns.destroy(resolve)));
  }

  #query(): number {
    this.#mdns?.query([{ name: SERVICE, type: 'PTR' }]);
    const pauses = { firstMs: MIN_QUERY_PAUSE_MS, maxMs: MAX_QUERY_PAUSE_MS, factor: QUERY_PAUSE_FACTOR };
    return backoff(pauses, ++this.#asked);
  }

  #answer(): void {
    this.#lastAnswer = this.#deps.clock.now();
    const { network, nodeKey } = this.#options;
    this.#mdns?.respond(encodeAnnouncement({ network, nodeKey, port: this.#deps.dhtPort() }));
  }

  #onQuery(packet: multicastDns.Packet, from: { readonly address: string }): void {
    const asksForUs = packet.questions.some(({ name, type }) => name === SERVICE && (type === 'PTR' || type === 'ANY'));
    if (!asksForUs || !this.#admits(from.address)) return;
    // Now, or where that was done a moment ago, once a little later.
    this.#answers?.soon(Math.max(0, this.#lastAnswer + MIN_ANSWER_PAUSE_MS - this.#deps.clock.now()));
  }

  #onResponse(packet: multicastDns.Packet, from: { readonly address: string }): void {
    const announcement = decodeAnnouncement(packet);
    if (announcement !== null && this.#isOther(announcement) && this.#admits(from.address))
      this.#report({ host: from.address, port: announcement.port });
  }

  #isOther({ network, nodeKey }: Announcement): boolean {
    return equalBytes(network, this.#options.network) && !equalBytes(nodeKey, this.#options.nodeKey);
  }

  /** Whether a packet comes from this LAN, and not too many from there. */
  #admits(address: string): boolean {
    return this.#packets.take(address) && isOnLink(address);
  }

  #report(address: Address): void {
    const name = formatAddress(address);
    if (this.#known.has(name) || !this.#reports.take('')) return;
    this.#known.set(name, true);
    this.#deps.log.debug({ address: name, network: toHex(this.#options.network) }, 'found a node on this LAN');
    this.#deps.onFound(address);
  }
}

/** True for an address in a network that this machine is part of: others may write to our port, but not from there. */
function isOnLink(address: string): boolean {
  return Object.values(networkInterfaces()).some((interfaces) =>
    interfaces?.some(({ cidr }) => cidr !== null && inIpv4Network(address, cidr)),
  );
}
