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
  readonly perSource: Rate;
  /** Of the strangers in one IPv4 /24 or IPv6 /48. */
  readonly perNetwork?: Rate;
  /** Of all strangers together. */
  readonly strangers: Rate;
}

/** Keys, sources and networks that are remembered at each level. */
const MAX_KEYS = 4096;
const ALL = 'strangers';

export class RateQuota {
  readonly #keys: RateLimiter;
  readonly #sources: RateLimiter;
  readonly #networks: RateLimiter | null;
  readonly #strangers: RateLimiter;

  constructor({ perKey, perSource, perNetwork, strangers }: RateQuotaLimits, dependencies: { readonly clock: Clock }) {
    const limiter = (rate: Rate): RateLimiter => new RateLimiter({ ...rate, maxKeys: MAX_KEYS }, dependencies);
    this.#keys = limiter(perKey);
    this.#sources = limiter(perSource);
    this.#networks = perNetwork === undefined ? null : limiter(perNetwork);
    this.#strangers = limiter(strangers);
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
    const own = [this.#keys, key ?? node] as const;
    if (named || source === null) return [own];
    const all = [this.#strangers, ALL] as const;
    const group = sourceGroupOf(source);
    if (group.network === HERE) return [own, all];
    const ofSource = [this.#sources, group.source] as const;
    return this.#networks === null ? [own, ofSource, all] : [own, ofSource, [this.#networks, group.network], all];
  }
}
