import type { Clock } from './clock.ts';
import { LruCache } from './lru-cache.ts';
import { type QuotaHolder, sourceGroupOf, THIS_MACHINE } from './quota.ts';

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
  readonly #startedAt: number;
  /** Milliseconds to refill an empty bucket. */
  readonly #capacityMs: number;
  readonly #msPerToken: number;
  readonly #fullAt: LruCache<string, number>;

  /** @throws RangeError if an option is out of range */
  constructor({ perSecond, burst, maxKeys }: RateLimiterOptions, { clock }: { readonly clock: Clock }) {
    if (!(perSecond > 0 && Number.isFinite(perSecond))) throw new RangeError(`perSecond is ${perSecond}`);
    if (!(burst >= 1 && Number.isFinite(burst))) throw new RangeError(`burst is ${burst}`);
    this.#clock = clock;
    this.#startedAt = clock.monotonic();
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

  /** Milliseconds since the limiter was created. Small numbers keep fractions of a millisecond. */
  #now(): number {
    return this.#clock.monotonic() - this.#startedAt;
  }
}

// A rate limit that strangers share by key, source and network, like `Quota` for held resources.

/** Tokens per second, and the burst. */
export interface Rate {
  readonly perSecond: number;
  readonly burst: number;
}

export interface RateQuotaLimits {
  /** For each key (the node, if a holder has no key), named or not. */
  readonly perKey: Rate;
  /** For strangers at one IPv4 address or IPv6 /64. */
  readonly perSource?: Rate;
  /** For strangers in one IPv4 /24 or IPv6 /48. */
  readonly perNetwork?: Rate;
  /** For all strangers together. */
  readonly strangers?: Rate;
  /**
   * Maximum number of keys, sources and networks per level. Must be at least the number that can spend before a bucket
   * is full again.
   */
  readonly maxKeys?: number;
}

/** A bucket to charge. */
type Level = readonly [RateLimiter, string];

/** Default for `maxKeys`. */
const MAX_KEYS = 4096;
const ALL = 'strangers';

export class RateQuota {
  readonly #keys: RateLimiter;
  readonly #sources: RateLimiter | null;
  readonly #networks: RateLimiter | null;
  readonly #strangers: RateLimiter | null;

  constructor(
    { perKey, perSource, perNetwork, strangers, maxKeys = MAX_KEYS }: RateQuotaLimits,
    dependencies: { readonly clock: Clock },
  ) {
    const limiter = (rate: Rate): RateLimiter => new RateLimiter({ ...rate, maxKeys }, dependencies);
    const optional = (rate: Rate | undefined): RateLimiter | null => (rate === undefined ? null : limiter(rate));
    this.#keys = limiter(perKey);
    this.#sources = optional(perSource);
    this.#networks = optional(perNetwork);
    this.#strangers = optional(strangers);
  }

  /** Spends `cost` tokens at every level. Returns false, and spends none, if a level has fewer. */
  take(holder: QuotaHolder, cost = 1): boolean {
    return spendAll(this.#levels(holder), cost);
  }

  /** Like `take` for several holders: a level that they share is charged once. */
  takeAll(holders: readonly QuotaHolder[], cost = 1): boolean {
    return spendAll(distinct(holders.flatMap((holder) => this.#levels(holder))), cost);
  }

  /**
   * Spends tokens even if a level has fewer, for a cost that is known only afterwards. `take` fails until the deficit
   * is refilled.
   */
  spend(holder: QuotaHolder, cost: number): void {
    for (const [limiter, key] of this.#levels(holder)) limiter.spend(key, cost);
  }

  /** Whole milliseconds until `take` succeeds if no other holder spends; 0 if it succeeds now, Infinity if never. */
  retryAfterMs(holder: QuotaHolder, cost = 1): number {
    return Math.max(...this.#levels(holder).map(([limiter, key]) => limiter.retryAfterMs(key, cost)));
  }

  #levels({ key, node, source, named }: QuotaHolder): readonly Level[] {
    const levels: Level[] = [[this.#keys, key ?? node]];
    if (named || source === null) return levels;
    const group = sourceGroupOf(source);
    const isHere = group.network === THIS_MACHINE;
    if (this.#sources !== null && !isHere) levels.push([this.#sources, group.source]);
    if (this.#networks !== null && !isHere) levels.push([this.#networks, group.network]);
    if (this.#strangers !== null) levels.push([this.#strangers, ALL]);
    return levels;
  }
}

function distinct(levels: readonly Level[]): readonly Level[] {
  return levels.filter(([limiter, key], at) => levels.findIndex(([l, k]) => l === limiter && k === key) === at);
}

function spendAll(levels: readonly Level[], cost: number): boolean {
  if (levels.some(([limiter, key]) => limiter.retryAfterMs(key, cost) > 0)) return false;
  for (const [limiter, key] of levels) limiter.spend(key, cost);
  return true;
}
