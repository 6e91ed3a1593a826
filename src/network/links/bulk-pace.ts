/**
 * Paces the writes of a link on a long path: the engine gets little more than it sends. If packet loss slows the path
 * down, few bytes then wait behind the lost ones when the link continues on a lane.
 */
import type { Clock } from '../../foundation/clock.ts';
import type { LruCache } from '../../foundation/lru-cache.ts';
import type { WritePace } from '../transport/types.ts';
import { isLong, isLossyNode, LossWatch, type MeasuredLink } from './loss-watch.ts';

/** Bytes in the engine at first, and the start of a link that is never paced. */
export const FIRST_PACED_BYTES: number = 64 * 1024;
/** Bytes in the engine at most. */
const MAX_PACED_BYTES: number = 4 * 1024 * 1024;
/** Largest write while few bytes may be in the engine … */
const SMALL_WRITE_BYTES: number = 32 * 1024;
/** … and otherwise. */
const LARGE_WRITE_BYTES: number = 256 * 1024;
/** On a short path, the path is looked at again after this many bytes. */
const NEXT_LOOK_BYTES: number = 4 * 1024 * 1024;
/** Interval of the checks whether the engine has sent enough, in parts of a round trip … */
const LOOKS_PER_RTT = 4;
/** … within these limits, milliseconds. */
const MIN_LOOK_MS = 5;
const MAX_LOOK_MS = 50;
/** If the engine sends nothing for this time, the number of bytes in it is wrong, or a write changes nothing, milliseconds. */
const STILL_MS = 250;
/** A writer that did not wait for this time has paused. Its packet loss is then counted from zero, milliseconds. */
const WRITER_PAUSE_MS = 1_000;

/** The link of a pace. */
export interface PacedLink extends MeasuredLink {
  /** Bytes that the connection has sent, for all its streams. */
  sentBytes(): number;
  /** True if the stream has closed or continues elsewhere. */
  isOver(): boolean;
}

export class BulkPace implements WritePace {
  readonly #clock: Clock;
  readonly #link: PacedLink;
  readonly #lossy: LruCache<string, true>;
  readonly #slowed: () => void;
  /** False on a short path. */
  #isPaced = true;
  /** Bytes passed to the engine, and those after which the path is looked at. */
  #passed = 0;
  #lookAt = FIRST_PACED_BYTES;
  #allowed = FIRST_PACED_BYTES;
  /** The connection's sent bytes minus the sent bytes of this link. */
  #base: number | null = null;
  #watch: LossWatch | null = null;
  #waitedAt = Number.NEGATIVE_INFINITY;

  /**
   * @param lossy as `lossyNodes`
   * @param slowed called each time the writer waits while packet loss slows the path down
   */
  constructor(clock: Clock, link: PacedLink, lossy: LruCache<string, true>, slowed: () => void) {
    this.#clock = clock;
    this.#link = link;
    this.#lossy = lossy;
    this.#slowed = slowed;
  }

  get maxBytes(): number {
    return this.#isPaced && this.#allowed < MAX_PACED_BYTES ? SMALL_WRITE_BYTES : LARGE_WRITE_BYTES;
  }

  /** Null if the bytes may be written now. They count as passed to the engine when this has settled. */
  before(bytes: number): Promise<void> | null {
    if (this.#passed + bytes > this.#lookAt && this.#look(bytes)) return this.#wait(bytes);
    this.#passed += bytes;
    return null;
  }

  /** Looks at the path. True if a write of this size must wait. */
  #look(bytes: number): boolean {
    this.#isPaced = isLong(this.#link);
    if (this.#isPaced) return this.#afterWrite(bytes) > this.#allowed;
    this.#lookAt = this.#passed + bytes + NEXT_LOOK_BYTES;
    return false;
  }

  /**
   * Bytes in the engine after a write. The write itself counts for at most half of what is allowed: it may be larger
   * than that if the path was short when the writer chose its size, and must not wait for itself.
   */
  #afterWrite(bytes: number): number {
    return this.#inEngine() + Math.min(bytes, this.#allowed / 2);
  }

  /**
   * Bytes of this link that the engine has not sent. Other streams and repeated packets make it too small. It may also
   * be too large, see `#wait`.
   */
  #inEngine(): number {
    const sent = this.#link.sentBytes();
    this.#base ??= sent - Math.max(0, this.#passed - FIRST_PACED_BYTES);
    const inEngine = this.#base + this.#passed - sent;
    if (inEngine < 0) this.#base -= inEngine;
    return Math.max(0, inEngine);
  }

  async #wait(bytes: number): Promise<void> {
    if (this.#watch !== null && this.#clock.monotonic() - this.#waitedAt > WRITER_PAUSE_MS) this.#watch = null;
    let sent = this.#link.sentBytes();
    let stillMs = 0;
    while (!this.#link.isOver() && this.#look(bytes)) {
      const afterWrite = this.#afterWrite(bytes);
      if (this.#isLossy()) this.#slowed();
      else if (afterWrite <= this.#allowed / 2) this.#allowed = Math.min(2 * this.#allowed, MAX_PACED_BYTES);
      stillMs += await this.#pause();
      const sentNow = this.#link.sentBytes();
      if (sentNow !== sent) [sent, stillMs] = [sentNow, 0];
      // The engine holds nothing, or cannot send. In the first case only a write gets it going, and in the second one
      // the engine itself makes the writer wait.
      else if (stillMs >= STILL_MS) this.#base = sent - this.#passed;
    }
    this.#passed += bytes;
  }

  /** Nothing is measured while the connection has lost no packet. */
  #isLossy(): boolean {
    if (isLossyNode(this.#link, this.#lossy)) return true;
    if ((this.#link.packets?.().lost ?? 0) === 0) return false;
    this.#watch ??= new LossWatch(this.#link, this.#lossy, this.#clock);
    this.#waitedAt = this.#clock.monotonic();
    return this.#watch.isLossy(this.#passed - this.#inEngine());
  }

  /** @returns the length of the pause, milliseconds */
  #pause(): Promise<number> {
    const ms = Math.min(Math.max(this.#link.path().rttMs / LOOKS_PER_RTT, MIN_LOOK_MS), MAX_LOOK_MS);
    return new Promise((resolve) => this.#clock.after(ms, () => resolve(ms)));
  }
}
