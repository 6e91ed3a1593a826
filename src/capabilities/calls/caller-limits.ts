/** How many calls one caller, one node, one source, one network and all of them together may have at once. */
import { SvcError } from '../../foundation/errors.ts';
import { Quota } from '../../foundation/quota.ts';
import { pairHolder } from '../../network/links/holder.ts';
import type { LinkStream } from '../../network/links/types.ts';

/** Requests at once from one calling agent to one called agent; connections that switched protocols are counted apart. */
export const MAX_CALLS_PER_CALLER = 64;
/** Requests at once from all agents of one node. */
export const MAX_CALLS_PER_NODE = 512;
/** Requests at once from the strangers on one IPv4 address or IPv6 /64. */
export const MAX_CALLS_PER_SOURCE = 1024;
/** Requests at once from the strangers in one IPv4 /24 or IPv6 /48. */
export const MAX_CALLS_PER_NETWORK = 1536;
/** Requests at once that this daemon forwards. */
export const MAX_CALLS = 4096;
/** Of these, the ones that only callers let in by name may have. */
export const RESERVED_CALLS = 1024;
/** What a refused caller is told to wait, seconds. */
export const BUSY_RETRY_S = 1;

interface Entering {
  /** The owner of the called agent let the caller in by name. */
  readonly named: boolean;
  /** It is a connection that is to switch protocols. */
  readonly isSwitched?: boolean;
  /** Ends the request; called if it has to make room. */
  readonly onEvict: () => void;
}

export class CallerLimits {
  readonly #quota = new Quota({
    perKey: MAX_CALLS_PER_CALLER,
    perNode: MAX_CALLS_PER_NODE,
    perSource: MAX_CALLS_PER_SOURCE,
    perNetwork: MAX_CALLS_PER_NETWORK,
    total: MAX_CALLS,
    reserved: RESERVED_CALLS,
  });

  /**
   * Counts a request in; returns how to count it out.
   * @throws SvcError `rate_limited`
   */
  enter(link: LinkStream, { named, isSwitched = false, onEvict }: Entering): () => void {
    const share = this.#quota.take(pairHolder(link, named, isSwitched ? 'switched ' : ''), { onEvict });
    if (share === null)
      throw new SvcError('rate_limited', {
        message: 'Too many calls at once. Try again in a second.',
        details: { retry_after_s: BUSY_RETRY_S },
      });
    return () => share.release();
  }

  /** Requests that are being served. */
  get active(): number {
    return this.#quota.used;
  }
}
