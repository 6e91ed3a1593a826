/** How much one caller, one node, one source and all of them together may ask of this daemon at once. */
import { SvcError } from '../../foundation/errors.ts';
import { Tally } from '../../foundation/tally.ts';
import { SharedQuota } from '../../network/links/shared-quota.ts';
import { sourceOfLink } from '../../network/links/source.ts';
import type { LinkStream } from '../../network/links/types.ts';

/** Connections at once from one calling agent to one called agent that switched to WebSocket, counted apart. */
const MAX_SWITCHED_PER_CALLER = 64;
/** Requests at once from one calling agent to one called agent. */
export const MAX_CALLS_PER_CALLER = 64;
/** Requests at once from all agents of one node. */
export const MAX_CALLS_PER_NODE = 512;
/** Requests at once that this daemon forwards. */
export const MAX_CALLS = 4096;
/** Requests at once from all nodes on one IPv4 address or IPv6 /64. */
export const MAX_CALLS_PER_SOURCE = 1024;
/** What a refused caller is told to wait, seconds. */
export const BUSY_RETRY_S = 1;

export class CallerLimits {
  readonly #ofPair = new Tally();
  readonly #places = new SharedQuota({ perNode: MAX_CALLS_PER_NODE, perSource: MAX_CALLS_PER_SOURCE, all: MAX_CALLS });

  /**
   * Counts a request in; returns how to count it out.
   * @param isSwitched it is a connection that is to switch to WebSocket
   * @throws SvcError `rate_limited`
   */
  enter(link: LinkStream, isSwitched = false): () => void {
    const pair = `${isSwitched ? 'switched ' : ''}${link.caller} ${link.called}`;
    const limit = isSwitched ? MAX_SWITCHED_PER_CALLER : MAX_CALLS_PER_CALLER;
    const node = link.nodeKey === null ? 'here' : Buffer.from(link.nodeKey).toString('hex');
    const leave = this.#ofPair.of(pair) < limit ? this.#places.take(node, sourceOfLink(link)) : null;
    if (leave === null)
      throw new SvcError('rate_limited', {
        message: 'Too many calls at once.',
        details: { retry_after_s: BUSY_RETRY_S },
      });
    this.#ofPair.add(pair);
    return () => {
      this.#ofPair.add(pair, -1);
      leave();
    };
  }

  /** Requests that are being served. */
  get active(): number {
    return this.#places.taken;
  }
}
