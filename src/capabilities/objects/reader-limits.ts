/** Limits concurrent reads and requests of other agents. */
import type { Clock } from '../../foundation/clock.ts';
import { SvcError } from '../../foundation/errors.ts';
import { Quota } from '../../foundation/quota.ts';
import { type Rate, RateQuota } from '../../foundation/rate-limit.ts';
import { type LinkEnds, pairHolder } from '../../network/links/holder.ts';
import type { IsNamed } from '../../network/links/http-server.ts';

/** Limit of concurrent reads of one calling agent. */
export const MAX_READS_PER_CALLER = 8;
/** Limit of concurrent reads of all agents of one node. */
export const MAX_READS_PER_NODE = 32;
/** Limit of concurrent reads of the strangers at one IPv4 address or IPv6 /64. */
export const MAX_READS_PER_SOURCE = 64;
/** Limit of concurrent reads of the strangers in one IPv4 /24 or IPv6 /48. */
export const MAX_READS_PER_NETWORK = 96;
/** Limit of concurrent reads. */
export const MAX_READS = 256;
/** Reads reserved for callers that the access list allows by name. */
export const RESERVED_READS = 64;
/** Request rate of one node. */
const REQUEST_RATE: Rate = { perSecond: 100, burst: 400 };
/** Request rate of the strangers at one IPv4 address or IPv6 /64. */
export const REQUEST_RATE_PER_SOURCE: Rate = { perSecond: 200, burst: 800 };
/** Request rate of the strangers in one IPv4 /24 or IPv6 /48. */
export const REQUEST_RATE_PER_NETWORK: Rate = { perSecond: 300, burst: 1200 };
/** Request rate of all strangers. */
const REQUEST_RATE_OF_STRANGERS: Rate = { perSecond: 1000, burst: 4000 };
/** `Retry-After` of callers that are rejected because of too many reads, seconds. */
const BUSY_RETRY_S = 2;

export class ReaderLimits {
  readonly #isNamed: IsNamed;
  readonly #reads = new Quota({
    perKey: MAX_READS_PER_CALLER,
    perNode: MAX_READS_PER_NODE,
    perSource: MAX_READS_PER_SOURCE,
    perNetwork: MAX_READS_PER_NETWORK,
    total: MAX_READS,
    reserved: RESERVED_READS,
  });
  readonly #requests: RateQuota;

  constructor({ clock, isNamed }: { readonly clock: Clock; readonly isNamed: IsNamed }) {
    this.#isNamed = isNamed;
    this.#requests = new RateQuota(
      {
        perKey: REQUEST_RATE,
        perSource: REQUEST_RATE_PER_SOURCE,
        perNetwork: REQUEST_RATE_PER_NETWORK,
        strangers: REQUEST_RATE_OF_STRANGERS,
      },
      { clock },
    );
  }

  /**
   * Counts a read. Returns a function that ends it.
   * @param cut called if another read evicts this one
   * @throws SvcError `rate_limited`
   */
  enter(link: LinkEnds, cut: () => void): () => void {
    const pair = pairHolder(link, this.#isNamed(link));
    const node = { ...pair, key: pair.node };
    if (!this.#requests.take(node)) throw busy(Math.ceil(this.#requests.retryAfterMs(node) / 1000));
    const share = this.#reads.take({ ...pair, key: link.caller }, { onEvict: cut });
    if (share === null) throw busy(BUSY_RETRY_S);
    return () => share.release();
  }
}

function busy(retryAfterS: number): SvcError {
  return new SvcError('rate_limited', {
    message: 'Too many concurrent reads. Try again later.',
    details: { retry_after_s: Math.max(1, retryAfterS) },
  });
}
