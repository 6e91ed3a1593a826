/**
 * This machine's IPv4 addresses, and our address as other nodes see it. The former change and are slow to read, so they
 * are read periodically.
 */
import { type Address, formatAddress } from '../../foundation/address.ts';
import type { Clock } from '../../foundation/clock.ts';
import { readInterfaces } from '../../foundation/interfaces.ts';
import { IP_SCOPE, inIpv4Network } from '../../foundation/ip.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import { hostKeyOf, nodeScope } from './node-address.ts';

const READ_AGAIN_MS = 5000;
const LOOPBACK = '127.0.0.1';
/** Hosts with a cached source address. */
const MAX_SOURCES = 1024;

export interface HostCheck {
  /** True for an IP address of this machine. */
  readonly isOwnHost: (host: string) => boolean;
}

export interface OwnHosts {
  /** Whether a host is an address of this machine. */
  has(host: string): boolean;
  /**
   * The source address of a socket on every interface for a host: the host itself if it is our own, or the address of
   * the interface to its network. Null if routes decide.
   */
  sourceTo(host: string): string | null;
}

function sourceAmong(networks: ReadonlyMap<string, string | null>, host: string): string | null {
  if (nodeScope(host) === IP_SCOPE.loopback) return LOOPBACK;
  if (networks.has(host)) return host;
  for (const [address, network] of networks)
    if (network !== null && nodeScope(address) !== IP_SCOPE.none && inIpv4Network(host, network)) return address;
  return null;
}

export function ownHosts({ clock }: { readonly clock: Clock }): OwnHosts {
  /** The network of its interface, by address. */
  let networks: ReadonlyMap<string, string | null> = new Map();
  let readAt = Number.NEGATIVE_INFINITY;
  /** Cached results, because every datagram needs one. */
  const sources = new LruCache<string, string | null>({ maxEntries: MAX_SOURCES });
  const current = (): typeof networks => {
    const now = clock.monotonic();
    if (now - readAt > READ_AGAIN_MS) {
      readAt = now;
      const read = readInterfaces();
      if (read === null) return networks;
      const all = Object.values(read).flatMap((addresses) => addresses ?? []);
      networks = new Map(all.map(({ address, cidr }) => [address, cidr]));
      sources.clear();
    }
    return networks;
  };
  return {
    has: (host) => current().has(host),
    sourceTo: (host) => {
      const own = current();
      const known = sources.get(host);
      if (known !== undefined) return known;
      const source = sourceAmong(own, host);
      sources.set(host, source);
      return source;
    },
  };
}

/** Reporters whose last report is remembered. */
const MAX_REPORTERS = 32;
/** How long a report counts. */
const REPORT_TTL_MS = 20 * 60_000;

/**
 * Our address as other nodes see it. A single report may be false, so an address counts once enough distinct reporters
 * state it.
 */
export class ObservedAddresses {
  /** Our address by reporter. */
  readonly #reports: LruCache<string, Address>;

  constructor(dependencies: { readonly clock: Clock }) {
    this.#reports = new LruCache({ maxEntries: MAX_REPORTERS, ttlMs: REPORT_TTL_MS }, dependencies);
  }

  /** Notes our address as a peer reports it. True if the peer reported something else before, or nothing. */
  add(reporter: Address, seen: Address): boolean {
    const key = hostKeyOf(reporter);
    const before = this.#reports.peek(key);
    this.#reports.set(key, seen);
    return before === undefined || formatAddress(before) !== formatAddress(seen);
  }

  /** Forgets every report, because the network has changed. */
  clear(): void {
    this.#reports.clear();
  }

  get reporters(): number {
    return this.#reports.values().length;
  }

  /** The host in most reports, if at least `needed` agree. */
  host(needed: number): string | null {
    return this.#mostNamed(({ host }) => host, needed)?.host ?? null;
  }

  /** The address and port in most reports, if at least `needed` agree. */
  address(needed: number): Address | null {
    return this.#mostNamed(formatAddress, needed);
  }

  #mostNamed(name: (seen: Address) => string, needed: number): Address | null {
    const groups = [...Map.groupBy(this.#reports.values(), name).values()];
    const [most = []] = groups.sort((a, b) => b.length - a.length);
    return most.length >= needed ? (most[0] ?? null) : null;
  }
}
