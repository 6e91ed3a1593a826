/** Limits on concurrent calls per caller, node, source and network, and in total. */
import { SvcError } from '../../foundation/errors.ts';
import { Quota, type QuotaShare } from '../../foundation/quota.ts';
import { pairHolder } from '../../network/links/holder.ts';
import type { LinkPair, LinkStream } from '../../network/links/types.ts';

/**
 * Concurrent requests of one calling agent to one called agent. Connections that switched protocols count separately.
 */
export const MAX_CALLS_PER_CALLER = 64;
/** Concurrent requests of all agents of one node. */
export const MAX_CALLS_PER_NODE = 512;
/** Concurrent requests of strangers on one IPv4 address or IPv6 /64. */
export const MAX_CALLS_PER_SOURCE = 1024;
/** Concurrent requests of strangers in one IPv4 /24 or IPv6 /48. */
export const MAX_CALLS_PER_NETWORK = 1536;
/** Concurrent requests that this daemon forwards. */
export const MAX_CALLS = 4096;
/** Part of `MAX_CALLS` that is reserved for callers allowed by name. */
export const RESERVED_CALLS = 1024;
/** `Retry-After` for a rejected caller, in seconds. */
const BUSY_RETRY_S = 1;

interface CallEntry {
  /** The owner of the called agent allowed the caller by name. */
  readonly named: boolean;
  /** The request asks to switch protocols. */
  readonly isSwitched?: boolean;
  /** Aborts the request. Called if the request is evicted. */
  readonly onEvict: () => void;
}

function busy(): SvcError {
  return new SvcError('rate_limited', {
    message: 'Too many concurrent calls. Try again in a second.',
    details: { retry_after_s: BUSY_RETRY_S },
  });
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
   * Counts a request.
   * @returns its slot, to be released
   * @throws SvcError `rate_limited`
   */
  enter(link: LinkStream, { named, isSwitched = false, onEvict }: CallEntry): QuotaShare {
    const share = this.#quota.take(pairHolder(link, named, isSwitched ? 'switched ' : ''), { onEvict });
    if (share === null) throw busy();
    return share;
  }

  /** Counts another request of a link in the slot of the one before. @throws SvcError `rate_limited` */
  enterAgain(slot: QuotaShare): void {
    if (!slot.retake(1)) throw busy();
  }

  /** Number of requests in progress. */
  get active(): number {
    return this.#quota.used;
  }
}

// Limits on open event streams. An event stream may be silent for a day and uses memory and a connection to the
// service. Its limits are separate, so that idle streams do not block calls.

/** Concurrent event streams to all agents of one node. */
export const MAX_EVENT_STREAMS_PER_NODE = 1024;
/** Concurrent event streams to strangers on one IPv4 address or IPv6 /64. */
export const MAX_EVENT_STREAMS_PER_SOURCE = 1536;
/** Concurrent event streams that this daemon forwards. */
export const MAX_EVENT_STREAMS = 2048;

export class EventStreamLimits {
  readonly #isNamed: (link: LinkPair) => boolean;
  readonly #quota = new Quota({
    perNode: MAX_EVENT_STREAMS_PER_NODE,
    perSource: MAX_EVENT_STREAMS_PER_SOURCE,
    total: MAX_EVENT_STREAMS,
  });

  /**
   * @param isNamed true if the owner of the called agent allowed this caller by name. Strangers are evicted in its favor
   */
  constructor(isNamed: (link: LinkPair) => boolean) {
    this.#isNamed = isNamed;
  }

  /** Number of open streams. */
  get active(): number {
    return this.#quota.used;
  }

  /**
   * Counts a stream.
   * @param cut ends the stream; called if it is evicted, when it no longer counts
   * @returns a function that releases the slot; further calls have no effect
   * @throws SvcError `rate_limited`
   */
  enter(link: LinkStream, cut: () => void): () => void {
    const share = this.#quota.take(pairHolder(link, this.#isNamed(link)), { onEvict: cut });
    if (share === null)
      throw new SvcError('rate_limited', {
        message: 'Too many concurrent event streams. Try again in a second.',
        details: { retry_after_s: BUSY_RETRY_S },
      });
    return () => share.release();
  }
}
