import type { Clock } from './clock.ts';
import { LruCache } from './lru-cache.ts';

interface RateLimiterOptions {
  /** Tokens that refill a bucket per second; above 0, fractions allowed. */
  readonly perSecond: number;
  /** Tokens in a full bucket, the most that a key can spend in a burst; at least 1. */
  readonly burst: number;
  /**
   * Maximum number of buckets. The least recently used one is evicted; if its key returns, its bucket is full again.
   */
  readonly maxKeys: number;
}

/** Tolerance in milliseconds, so that rounding never rejects a caller that waited for `retryAfterMs`. */
const ROUNDING_MS = 0.01;

/**
 * A token bucket per key, in bounded memory. A bucket is one number, the time at which it will be full again (the
 * "generic cell rate algorithm"), so an untouched bucket needs no work.
 *
 * Use keys that a stranger cannot create for free: a verified address, an IPv6 /64, a node key. Otherwise a stranger
 * could evict any key by inventing `maxKeys` others.
 */
export class RateLimiter {
  readonly #clock: Clock;
  /** Milliseconds to refill an empty bucket. */
  readonly #capacityMs: number;
  readonly #msPerToken: number;
  readonly #fullAt: LruCache<string, number>;
  #lastMs: number;
  #elapsedMs = 0;

  /** @throws RangeError if an option is out of range */
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
   * Spends `cost` tokens of the key's bucket. Returns false, and spends none, if it has fewer; so always false if
   * `cost` exceeds `burst`.
   */
  take(key: string, cost = 1): boolean {
    const now = this.#now();
    const fullAt = Math.max(this.#fullAt.get(key) ?? 0, now) + cost * this.#msPerToken;
    if (!(fullAt - now <= this.#capacityMs + ROUNDING_MS)) return false;
    this.#fullAt.set(key, fullAt);
    return true;
  }

  /**
   * Spends `cost` tokens even if the bucket has fewer, for a cost that is known only afterwards. The key must wait
   * until the deficit is refilled.
   */
  spend(key: string, cost: number): void {
    this.#fullAt.set(key, Math.max(this.#fullAt.get(key) ?? 0, this.#now()) + cost * this.#msPerToken);
  }

  /**
   * Whole milliseconds until `take(key, cost)` succeeds if nothing else is spent; 0 if it succeeds now, Infinity if
   * never.
   */
  retryAfterMs(key: string, cost = 1): number {
    const needMs = cost * this.#msPerToken;
    if (needMs > this.#capacityMs + ROUNDING_MS) return Number.POSITIVE_INFINITY;
    const now = this.#now();
    const wait = Math.max(this.#fullAt.peek(key) ?? 0, now) + needMs - this.#capacityMs - now;
    return wait <= ROUNDING_MS ? 0 : Math.ceil(wait);
  }

  /** Milliseconds since the limiter was created. Never goes back, so that a corrected clock cannot lock a key out. */
  #now(): number {
    const now = this.#clock.now();
    if (now > this.#lastMs) this.#elapsedMs += now - this.#lastMs;
    this.#lastMs = now;
    return this.#elapsedMs;
  }
}
