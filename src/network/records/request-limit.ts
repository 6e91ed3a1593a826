/** The share of this node's answers that one address and its network get, whatever they ask. */
import type { Address } from '../../foundation/address.ts';
import type { Clock } from '../../foundation/clock.ts';
import { type Rate, RateQuota } from '../../foundation/rate-quota.ts';
import { hostHolder, hostKeyOf } from './node-address.ts';

/** Requests of any kind that one IPv4 address gets answered. */
export const REQUEST_RATE_PER_HOST: Rate = { perSecond: 500, burst: 5000 };
/** The same of one IPv4 /24. There is no rate for all: addresses are easily forged, so it would let one sender silence everyone. */
export const REQUEST_RATE_PER_BLOCK: Rate = { perSecond: 1500, burst: 15_000 };
/** Addresses whose rates are remembered. */
const MAX_RATE_KEYS = 8192;

/** Says of each request whether its sender has a share left. */
export function requestLimit(dependencies: { readonly clock: Clock }): (from: Address) => boolean {
  const rate = new RateQuota(
    { perKey: REQUEST_RATE_PER_HOST, perNetwork: REQUEST_RATE_PER_BLOCK, maxKeys: MAX_RATE_KEYS },
    dependencies,
  );
  return (from) => rate.take(hostHolder(hostKeyOf(from)));
}
