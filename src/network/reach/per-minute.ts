/** Rates of what others may cause here: so often in a minute, and at once. */
import type { Clock } from '../../foundation/clock.ts';
import { RateLimiter } from '../../foundation/rate-limit.ts';

/** Nodes, hosts and sources whose rates are remembered, for each rate. */
const MAX_LIMITED = 4096;
const SECONDS_PER_MINUTE = 60;

/** A rate for each of many keys. */
export function perMinute(times: number, dependencies: { readonly clock: Clock }): RateLimiter {
  return new RateLimiter({ perSecond: times / SECONDS_PER_MINUTE, burst: times, maxKeys: MAX_LIMITED }, dependencies);
}
