/**
 * Who may hold how many event streams open. Such a stream may be silent for a day and keeps memory and a connection to
 * the service all the while, so it does not count among the calls: idle streams keep no call out.
 */
import { SvcError } from '../../foundation/errors.ts';
import { Quota } from '../../foundation/quota.ts';
import { pairHolder } from '../../network/links/holder.ts';
import type { LinkStream } from '../../network/links/types.ts';
import { BUSY_RETRY_S } from './caller-limits.ts';

/** Event streams to all agents of one node at once. */
export const MAX_EVENT_STREAMS_PER_NODE = 1024;
/** Event streams to the strangers on one IPv4 address or IPv6 /64 at once. */
export const MAX_EVENT_STREAMS_PER_SOURCE = 1536;
/** Event streams that this daemon forwards at once. */
export const MAX_EVENT_STREAMS = 2048;

export interface StreamPlacesDependencies {
  /** True if the owner of the called agent let this caller in by name: strangers make room for it. */
  isNamed(link: Pick<LinkStream, 'caller' | 'called'>): boolean;
}

export class StreamPlaces {
  readonly #deps: StreamPlacesDependencies;
  readonly #quota = new Quota({
    perNode: MAX_EVENT_STREAMS_PER_NODE,
    perSource: MAX_EVENT_STREAMS_PER_SOURCE,
    total: MAX_EVENT_STREAMS,
  });

  constructor(dependencies: StreamPlacesDependencies) {
    this.#deps = dependencies;
  }

  /** Open streams. */
  get taken(): number {
    return this.#quota.used;
  }

  /**
   * Counts a stream in; returns how to count it out, once.
   * @param cut ends the stream; called if it has to make room, when it no longer counts
   * @throws SvcError `rate_limited`
   */
  take(link: LinkStream, cut: () => void): () => void {
    const share = this.#quota.take(pairHolder(link, this.#deps.isNamed(link)), { onEvict: cut });
    if (share === null)
      throw new SvcError('rate_limited', {
        message: 'Too many event streams at once. Try again in a second.',
        details: { retry_after_s: BUSY_RETRY_S },
      });
    return () => share.release();
  }
}
