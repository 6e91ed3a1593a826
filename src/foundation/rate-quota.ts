/** A rate that strangers share by key, source and network, as `Quota` does for what is held. */
import type { Clock } from './clock.ts';
import { HERE, type QuotaHolder, sourceGroupOf } from './quota.ts';
import { RateLimiter } from './rate-limit.ts';

/** Tokens a second, and at once. */
export interface Rate {
  readonly perSecond: number;
  readonly burst: number;
}

export interface RateQuotaLimits {
  /** Of each key (the node, if a holder has no key), named or not. */
  readonly perKey: Rate;
  /** Of the strangers at one IPv4 address or IPv6 /64. */
  readonly perSource?: Rate;
  /** Of the strangers in one IPv4 /24 or IPv6 /48. */
  readonly perNetwork?: Rate;
  /** Of all strangers together. */
  readonly strangers?: Rate;
}

/** Keys, sources and networks that are remembered at each level. */
const MAX_KEYS = 4096;
const ALL = 'strangers';

export class RateQuota {
  readonly #keys: RateLimiter;
  readonly #sources: RateLimiter | null;
  readonly #networks: RateLimiter | null;
  readonly #strangers: RateLimiter | null;

  constructor({ perKey, perSource, perNetwork, strangers }: RateQuotaLimits, dependencies: { readonly clock: Clock }) {
    const limiter = (rate: Rate): RateLimiter => new RateLimiter({ ...rate, maxKeys: MAX_KEYS }, dependencies);
    const optional = (rate: Rate | undefined): RateLimiter | null => (rate === undefined ? null : limiter(rate));
    this.#keys = limiter(perKey);
    this.#sources = optional(perSource);
    this.#networks = optional(perNetwork);
    this.#strangers = optional(strangers);
  }

  /** Spends `cost` tokens at every level; false, and nothing spent, if one of them has fewer. */
  take(holder: QuotaHolder, cost = 1): boolean {
    const levels = this.#levels(holder);
    if (levels.some(([limiter, key]) => limiter.retryAfterMs(key, cost) > 0)) return false;
    for (const [limiter, key] of levels) limiter.spend(key, cost);
    return true;
  }

  /** Whole milliseconds until `take` succeeds if no other holder spends; 0 now, Infinity never. */
  retryAfterMs(holder: QuotaHolder, cost = 1): number {
    return Math.max(...this.#levels(holder).map(([limiter, key]) => limiter.retryAfterMs(key, cost)));
  }

  #levels({ key, node, source, named }: QuotaHolder): readonly (readonly [RateLimiter, string])[] {
    const levels: [RateLimiter, string][] = [[this.#keys, key ?? node]];
    if (named || source === null) return levels;
    const group = sourceGroupOf(source);
    const isHere = group.network === HERE;
    if (this.#sources !== null && !isHere) levels.push([this.#sources, group.source]);
    if (this.#networks !== null && !isHere) levels.push([this.#networks, group.network]);
    if (this.#strangers !== null) levels.push([this.#strangers, ALL]);
    return levels;
  }
}
