/** A rate that strangers share by key, source and network, as `Quota` does for what is held. */
import type { Clock } from './clock.ts';
import { type QuotaHolder, sourceGroupOf, THIS_MACHINE } from './quota.ts';
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
  /** Keys, sources and networks that are remembered at each level: at least as many as can spend before they are full again. */
  readonly maxKeys?: number;
}

/** A bucket that is charged. */
type Level = readonly [RateLimiter, string];

/** Keys, sources and networks that are remembered at each level, unless fewer are asked for. */
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

  /** Spends `cost` tokens at every level; false, and nothing spent, if one of them has fewer. */
  take(holder: QuotaHolder, cost = 1): boolean {
    return spendAll(this.#levels(holder), cost);
  }

  /** As `take`, for several holders at once: a level that they share is charged once. */
  takeAll(holders: readonly QuotaHolder[], cost = 1): boolean {
    return spendAll(distinct(holders.flatMap((holder) => this.#levels(holder))), cost);
  }

  /** Spends tokens though a level may have fewer, for a cost that is known only afterwards: `take` fails until they have flowed back. */
  spend(holder: QuotaHolder, cost: number): void {
    for (const [limiter, key] of this.#levels(holder)) limiter.spend(key, cost);
  }

  /** Whole milliseconds until `take` succeeds if no other holder spends; 0 now, Infinity never. */
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
