/**
 * Limits on open event streams. An event stream may be silent for a day and uses memory and a connection to the
 * service. Its limits are separate, so that idle streams do not block calls.
 */
import { SvcError } from '../../foundation/errors.ts';
import { Quota } from '../../foundation/quota.ts';
import { pairHolder } from '../../network/links/holder.ts';
import type { LinkStream } from '../../network/links/types.ts';
import { BUSY_RETRY_S } from './caller-limits.ts';

/** Concurrent event streams to all agents of one node. */
export const MAX_EVENT_STREAMS_PER_NODE = 1024;
/** Concurrent event streams to strangers on one IPv4 address or IPv6 /64. */
export const MAX_EVENT_STREAMS_PER_SOURCE = 1536;
/** Concurrent event streams that this daemon forwards. */
export const MAX_EVENT_STREAMS = 2048;

export interface EventStreamLimitsDependencies {
  /** True if the owner of the called agent allowed this caller by name. Strangers are evicted in its favor. */
  isNamed(link: Pick<LinkStream, 'caller' | 'called'>): boolean;
}

export class EventStreamLimits {
  readonly #deps: EventStreamLimitsDependencies;
  readonly #quota = new Quota({
    perNode: MAX_EVENT_STREAMS_PER_NODE,
    perSource: MAX_EVENT_STREAMS_PER_SOURCE,
    total: MAX_EVENT_STREAMS,
  });

  constructor(dependencies: EventStreamLimitsDependencies) {
    this.#deps = dependencies;
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
    const share = this.#quota.take(pairHolder(link, this.#deps.isNamed(link)), { onEvict: cut });
    if (share === null)
      throw new SvcError('rate_limited', {
        message: 'Too many concurrent event streams. Try again in a second.',
        details: { retry_after_s: BUSY_RETRY_S },
      });
    return () => share.release();
  }
}
