/** Our address as others see it. One reporter could lie: an address counts when enough different ones report it. */
import { type Address, formatAddress } from '../../foundation/address.ts';
import type { Clock } from '../../foundation/clock.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import { hostKeyOf } from './node-address.ts';

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
