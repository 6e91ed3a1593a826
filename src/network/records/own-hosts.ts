/** This machine's own IPv4 addresses: they change, and reading them takes a moment, so they are read now and then. */
import { networkInterfaces } from 'node:os';
import { type Address, formatAddress } from '../../foundation/address.ts';
import type { Clock } from '../../foundation/clock.ts';
import { IP_SCOPE, inIpv4Network } from '../../foundation/ip.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import { hostKeyOf, nodeScope } from './node-address.ts';

const READ_AGAIN_MS = 5000;
const LOOPBACK = '127.0.0.1';
/** Hosts of which it is known from where we write to them. */
const MAX_SOURCES = 1024;

export interface OwnHosts {
  /** Whether a host is an address of this machine. */
  has(host: string): boolean;
  /**
   * The address from which a socket on every interface writes to a host, where that is known: the same one to an own
   * address, that of the interface to its network. Null where the routes decide.
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
  /** With the network of its interface, by address. */
  let networks: ReadonlyMap<string, string | null> = new Map();
  let readAt = Number.NEGATIVE_INFINITY;
  /** What was found out since: it is asked of every datagram. */
  const sources = new LruCache<string, string | null>({ maxEntries: MAX_SOURCES });
  const current = (): typeof networks => {
    const now = clock.now();
    if (Math.abs(now - readAt) > READ_AGAIN_MS) {
      readAt = now;
      const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
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

/** Our address as others see it. One reporter could lie: an address counts when enough different ones report it. */

/** Reporters whose last word is remembered. */
const MAX_REPORTERS = 32;
/** For how long a report counts. */
const REPORT_TTL_MS = 20 * 60_000;

export class ObservedAddresses {
  /** What we are seen as, by reporter. */
  readonly #reports: LruCache<string, Address>;

  constructor(dependencies: { readonly clock: Clock }) {
    this.#reports = new LruCache({ maxEntries: MAX_REPORTERS, ttlMs: REPORT_TTL_MS }, dependencies);
  }

  /** Notes what a peer says our address is; true where it said something else, or nothing lately, before. */
  add(reporter: Address, seen: Address): boolean {
    const key = hostKeyOf(reporter);
    const before = this.#reports.peek(key);
    this.#reports.set(key, seen);
    return before === undefined || formatAddress(before) !== formatAddress(seen);
  }

  /** Forgets every report: the network has changed. */
  clear(): void {
    this.#reports.clear();
  }

  get reporters(): number {
    return this.#reports.values().length;
  }

  /** The host that most reporters name, where at least `needed` do. */
  host(needed: number): string | null {
    return this.#mostNamed(({ host }) => host, needed)?.host ?? null;
  }

  /** The address that most reporters name, port included, where at least `needed` do. */
  address(needed: number): Address | null {
    return this.#mostNamed(formatAddress, needed);
  }

  #mostNamed(name: (seen: Address) => string, needed: number): Address | null {
    const groups = [...Map.groupBy(this.#reports.values(), name).values()];
    const [most = []] = groups.sort((a, b) => b.length - a.length);
    return most.length >= needed ? (most[0] ?? null) : null;
  }
}
