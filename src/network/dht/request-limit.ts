/** The share of this node's answers that one address gets, whatever it asks. */
import type { Address } from '../../foundation/address.ts';
import type { Clock } from '../../foundation/clock.ts';
import { RateLimiter } from '../../foundation/rate-limit.ts';
import { hostKeyOf } from './node-address.ts';

/** Requests of any kind that one address gets answered per second, and at once. */
const REQUESTS_PER_SECOND = 500;
const REQUEST_BURST = 5000;
/** Addresses whose rates are remembered. */
const MAX_RATE_KEYS = 8192;

/** Says of each request whether its sender has a share left. */
export function requestLimit(dependencies: { readonly clock: Clock }): (from: Address) => boolean {
  const perAddress = { perSecond: REQUESTS_PER_SECOND, burst: REQUEST_BURST, maxKeys: MAX_RATE_KEYS };
  const rate = new RateLimiter(perAddress, dependencies);
  return (from) => rate.take(hostKeyOf(from));
}
