/** How much of the objects here other agents may read at once, and how often they may ask. */
import type { Clock } from '../../foundation/clock.ts';
import { SvcError } from '../../foundation/errors.ts';
import { RateLimiter } from '../../foundation/rate-limit.ts';
import { Tally } from '../../foundation/tally.ts';
import type { LinkStream } from '../../network/links/types.ts';

/** Objects that one calling agent reads at once. */
export const MAX_READS_PER_CALLER = 8;
/** Objects that all agents of one node read at once. */
export const MAX_READS_PER_NODE = 32;
/** Objects that are read at once. */
export const MAX_READS = 256;
/** Requests of one node at once, and in the long run. */
const REQUEST_BURST = 400;
const REQUESTS_PER_S = 100;
/** Nodes that are counted at a time. */
const MAX_NODES = 10_000;
/** What a refused caller is told to wait where too much is read at once, seconds. */
const BUSY_RETRY_S = 2;

export class ReaderLimits {
  readonly #ofCaller = new Tally();
  readonly #ofNode = new Tally();
  readonly #requests: RateLimiter;

  constructor(clock: Clock) {
    this.#requests = new RateLimiter(
      { perSecond: REQUESTS_PER_S, burst: REQUEST_BURST, maxKeys: MAX_NODES },
      { clock },
    );
  }

  /**
   * Counts a request in; returns how to count it out.
   * @throws SvcError `rate_limited`
   */
  enter(link: Pick<LinkStream, 'caller' | 'nodeKey'>): () => void {
    const node = link.nodeKey === null ? 'here' : Buffer.from(link.nodeKey).toString('hex');
    if (!this.#requests.take(node)) throw busy(Math.ceil(this.#requests.retryAfterMs(node) / 1000));
    if (
      this.#ofCaller.of(link.caller) >= MAX_READS_PER_CALLER ||
      this.#ofNode.of(node) >= MAX_READS_PER_NODE ||
      this.#ofNode.total >= MAX_READS
    )
      throw busy(BUSY_RETRY_S);
    this.#ofCaller.add(link.caller);
    this.#ofNode.add(node);
    return () => {
      this.#ofCaller.add(link.caller, -1);
      this.#ofNode.add(node, -1);
    };
  }
}

function busy(retryAfterS: number): SvcError {
  return new SvcError('rate_limited', {
    message: 'Too many objects are read at once.',
    details: { retry_after_s: Math.max(1, retryAfterS) },
  });
}
