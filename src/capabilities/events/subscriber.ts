/** One subscriber of a stream: its position and its backpressure. */
import type { RecentEvents, SubscriberFilter } from './recent-events.ts';

/** Events that a subscriber reads from the log in one step if it is far behind. */
export const MAX_LOG_PAGE = 256;

/** The destination of the frames of a subscriber. */
export interface EventOutlet {
  /** Accepts the frames. Returns false if the caller should wait for a drain before the next write. */
  write(frames: Buffer): boolean;
  /** Ends the stream after pending writes. */
  end(): void;
  /** Closes the stream immediately. */
  destroy(): void;
}

/** The events that are no longer in the cache. */
export interface Backlog {
  /** Frames after `seq`, up to the newest event at `until`. */
  read(filter: SubscriberFilter, seq: number, until: number): { readonly frames: Buffer; readonly seq: number };
  /** A frame that reports deleted events after `seq`, or null if there are none beyond those up to `known`. */
  loss(
    filter: SubscriberFilter,
    seq: number,
    known: number,
  ): { readonly frame: Buffer; readonly prunedSeq: number } | null;
}

/**
 * It has no queue, only a position, so a slow subscriber uses no memory except its socket buffer. When the socket
 * drains, it continues from the recent events, or from the log if it is too far behind.
 */
export class Subscriber {
  readonly filter: SubscriberFilter;
  readonly outlet: EventOutlet;
  /** Number of the last event sent. */
  #seq: number;
  /** Deleted events up to this number have been reported. */
  #knownLoss: number;
  /** Since when writes are blocked, Unix milliseconds, or null. */
  blockedSince: number | null = null;

  constructor(filter: SubscriberFilter, outlet: EventOutlet, seq: number, knownLoss: number) {
    this.filter = filter;
    this.outlet = outlet;
    this.#seq = seq;
    this.#knownLoss = knownLoss;
  }

  /** Sends as many events as the outlet accepts. */
  pump(recent: RecentEvents, backlog: Backlog, now: number): void {
    while (this.blockedSince === null && this.#seq < recent.position) {
      if (recent.reaches(this.#seq)) {
        const { bytes, seq } = recent.batch(this.filter, this.#seq);
        this.#seq = seq;
        this.#write(bytes, now);
        continue;
      }
      const loss = backlog.loss(this.filter, this.#seq, this.#knownLoss);
      if (loss !== null) {
        this.#knownLoss = loss.prunedSeq;
        this.#write(loss.frame, now);
      }
      const { frames, seq } = backlog.read(this.filter, this.#seq, recent.position);
      this.#seq = seq;
      this.#write(frames, now);
    }
  }

  /** Sends other frames, such as a heartbeat, if the outlet accepts any. */
  send(frames: Buffer, now: number): void {
    if (this.blockedSince === null) this.#write(frames, now);
  }

  #write(frames: Buffer, now: number): void {
    if (frames.length > 0 && !this.outlet.write(frames)) this.blockedSince ??= now;
  }
}
