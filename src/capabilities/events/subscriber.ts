/** One subscriber of a stream: where it stands, and how fast it takes what there is. */
import type { RecentEvents, Wish } from './recent-events.ts';

/** Events that a subscriber who is far behind takes from the log at once. */
export const MAX_LOG_PAGE = 256;

/** Where the frames of a subscriber go. */
export interface EventOutlet {
  /** False where no more should come before it has drained; the frames given are taken all the same. */
  write(frames: Buffer): boolean;
  /** Ends the stream cleanly. */
  end(): void;
  /** Cuts it. */
  destroy(): void;
}

/** What a subscriber reads where the recent events do not reach back far enough. */
export interface Backlog {
  /** Frames behind `seq`, up to the newest event at `until`. */
  read(wish: Wish, seq: number, until: number): { readonly frames: Buffer; readonly seq: number };
  /** Says that something behind `seq` is gone; null where nothing is but what was gone at `known` already. */
  loss(wish: Wish, seq: number, known: number): { readonly frame: Buffer; readonly prunedSeq: number } | null;
}

/**
 * It holds no queue: only a number, so a slow one costs nothing but its socket's buffer. When it
 * drains it goes on from the recent events, or from the log where it has fallen behind those.
 */
export class Subscriber {
  readonly wish: Wish;
  readonly outlet: EventOutlet;
  /** Number of the last event that it has. */
  #seq: number;
  /** What is known to be gone, and was told. */
  #knownLoss: number;
  /** When it began to be full, Unix milliseconds; null while it takes frames. */
  fullSince: number | null = null;

  constructor(wish: Wish, outlet: EventOutlet, seq: number, knownLoss: number) {
    this.wish = wish;
    this.outlet = outlet;
    this.#seq = seq;
    this.#knownLoss = knownLoss;
  }

  /** Sends what there is and it takes. */
  pump(recent: RecentEvents, backlog: Backlog, now: number): void {
    while (this.fullSince === null && this.#seq < recent.position) {
      if (recent.reaches(this.#seq)) {
        const { bytes, seq } = recent.batch(this.wish, this.#seq);
        this.#seq = seq;
        this.#write(bytes, now);
        continue;
      }
      const loss = backlog.loss(this.wish, this.#seq, this.#knownLoss);
      if (loss !== null) {
        this.#knownLoss = loss.prunedSeq;
        this.#write(loss.frame, now);
      }
      const { frames, seq } = backlog.read(this.wish, this.#seq, recent.position);
      this.#seq = seq;
      this.#write(frames, now);
    }
  }

  /** Sends frames of its own, such as a heartbeat, where it takes any. */
  send(frames: Buffer, now: number): void {
    if (this.fullSince === null) this.#write(frames, now);
  }

  #write(frames: Buffer, now: number): void {
    if (frames.length > 0 && !this.outlet.write(frames)) this.fullSince ??= now;
  }
}
