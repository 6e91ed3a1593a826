import type { Clock } from './clock.ts';
import { LruCache } from './lru-cache.ts';

interface RateLimiterOptions {
  /** Tokens that flow back into a bucket per second; above 0, fractions allowed. */
  readonly perSecond: number;
  /** Tokens that a full bucket holds: what a key may spend at once; at least 1. */
  readonly burst: number;
  /** Buckets kept; the least recently used one is forgotten, and is full again should its key come back. */
  readonly maxKeys: number;
}

/** Milliseconds by which a bucket may be early, so that rounding never refuses who waited as told. */
const ROUNDING_MS = 0.01;

/**
 * A token bucket per key, in bounded memory. A bucket is one number: the instant at which it will
 * be full again (the "generic cell rate algorithm"), so an untouched bucket costs no work.
 *
 * Choose keys that a stranger cannot make for free: an address that is proven, a /64 of IPv6, a
 * node key. Otherwise he evicts whom he likes by inventing `maxKeys` others.
 */
export class RateLimiter {
  readonly #clock: Clock;
  /** Milliseconds from an empty bucket to a full one. */
  readonly #capacityMs: number;
  readonly #msPerToken: number;
  readonly #fullAt: LruCache<string, number>;
  #lastMs: number;
  #elapsedMs = 0;

  /** @throws RangeError where an option is out of its range */
  constructor({ perSecond, burst, maxKeys }: RateLimiterOptions, { clock }: { readonly clock: Clock }) {
    if (!(perSecond > 0 && Number.isFinite(perSecond))) throw new RangeError(`perSecond is ${perSecond}`);
    if (!(burst >= 1 && Number.isFinite(burst))) throw new RangeError(`burst is ${burst}`);
    this.#clock = clock;
    this.#lastMs = clock.now();
    this.#msPerToken = 1000 / perSecond;
    this.#capacityMs = burst * this.#msPerToken;
    this.#fullAt = new LruCache({ maxEntries: maxKeys });
  }

  /**
   * Spends `cost` tokens of the key's bucket. False, and nothing spent, where it holds fewer; so
   * always false where `cost` is above `burst`.
   */
  take(key: string, cost = 1): boolean {
    const now = this.#now();
    const fullAt = Math.max(this.#fullAt.get(key) ?? 0, now) + cost * this.#msPerToken;
    if (!(fullAt - now <= this.#capacityMs + ROUNDING_MS)) return false;
    this.#fullAt.set(key, fullAt);
    return true;
  }

  /**
   * Spends `cost` tokens of the key's bucket though it may hold fewer, for what is known only when it is done: who
   * owes has to wait until that much has flowed back.
   */
  spend(key: string, cost: number): void {
    this.#fullAt.set(key, Math.max(this.#fullAt.get(key) ?? 0, this.#now()) + cost * this.#msPerToken);
  }

  /** Whole milliseconds until `take(key, cost)` succeeds if nobody else spends; 0 now, Infinity never. */
  retryAfterMs(key: string, cost = 1): number {
    const needMs = cost * this.#msPerToken;
    if (needMs > this.#capacityMs + ROUNDING_MS) return Number.POSITIVE_INFINITY;
    const now = this.#now();
    const wait = Math.max(this.#fullAt.peek(key) ?? 0, now) + needMs - this.#capacityMs - now;
    return wait <= ROUNDING_MS ? 0 : Math.ceil(wait);
  }

  /** Milliseconds since the limiter was made, which never go back: a corrected clock must not lock a key out. */
  #now(): number {
    const now = this.#clock.now();
    if (now > this.#lastMs) this.#elapsedMs += now - this.#lastMs;
    this.#lastMs = now;
    return this.#elapsedMs;
  }
}
