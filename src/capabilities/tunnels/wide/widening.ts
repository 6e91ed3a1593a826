/**
 * Decides on the calling side how many lanes a connection has: one, until packets are lost; then a
 * few, and all of them only where the few have made it faster. A path that is simply full gains
 * nothing from more lanes, and its other users would lose.
 */

import type { Clock } from '../../../foundation/clock.ts';
import { detach } from '../../../foundation/detached.ts';
import { LossWatch, type PathCounts } from './loss-watch.ts';
import { MAX_LANES } from './wide-stream.ts';

/** Lanes where packets are lost, before it is known whether they help. */
export const FEW_LANES = 4;
/** Their speed is measured over so long at least, milliseconds, and so many bytes. */
const TRIAL_MS = 500;
const TRIAL_BYTES = 256 * 1024;
/** How much faster the few lanes must be for more of them. */
const WORTHWHILE = 1.5;

/** How much had moved when, milliseconds and bytes. */
interface Mark {
  readonly at: number;
  readonly moved: number;
}

interface WideningOptions {
  readonly path: () => PathCounts;
  /** Opens the lane of a number, 1 and up; rejects where it cannot be had. */
  readonly openLane: (index: number) => Promise<void>;
}

export class Widening {
  readonly #options: WideningOptions;
  readonly #clock: Clock;
  readonly #watch: LossWatch;
  #lanes = 1;
  /** The other side says that it loses packets. */
  #asked = false;
  #opening = false;
  /** Bytes a millisecond with one lane. */
  #speedBefore = 0;
  /** Where the speed is measured from: the last mark but one with one lane, the opening of the few with them. */
  #from: Mark;
  #lastMark: Mark;
  #moved = 0;

  constructor(options: WideningOptions, dependencies: { readonly clock: Clock }) {
    this.#options = options;
    this.#clock = dependencies.clock;
    this.#watch = new LossWatch(options.path, dependencies);
    this.#from = this.#lastMark = { at: this.#clock.now(), moved: 0 };
  }

  /** The other side asks for more lanes. */
  ask(): void {
    this.#asked = true;
  }

  /**
   * Looks again, after bytes have moved.
   * @param moved bytes so far
   * @param waits whether our writer waits for the lanes
   */
  progress(moved: number, waits: boolean): void {
    this.#moved = moved;
    if (this.#opening || this.#lanes >= MAX_LANES) return;
    if (this.#lanes === 1 && !this.#watch.isLossy(moved, waits) && !this.#asked) return this.#mark();
    const { at, moved: before } = this.#from;
    const passed = this.#clock.now() - at;
    const speed = (moved - before) / Math.max(1, passed);
    if (this.#lanes === 1) {
      this.#speedBefore = speed;
      detach(this.#open(FEW_LANES));
    } else if (passed >= TRIAL_MS && moved - before >= TRIAL_BYTES) {
      if (speed >= WORTHWHILE * this.#speedBefore) detach(this.#open(MAX_LANES));
      // The few may still gain speed, or the path become free.
      else this.#from = { at: this.#clock.now(), moved };
    }
  }

  async #open(lanes: number): Promise<void> {
    this.#opening = true;
    const missing = Array.from({ length: lanes - this.#lanes }, (_, i) => this.#options.openLane(this.#lanes + i));
    const opened = await Promise.allSettled(missing);
    this.#opening = false;
    // Where not a single lane can be had, none is tried again.
    this.#lanes = opened.some(({ status }) => status === 'fulfilled') ? lanes : MAX_LANES;
    this.#from = { at: this.#clock.now(), moved: this.#moved };
  }

  #mark(): void {
    const now = this.#clock.now();
    if (now - this.#lastMark.at < TRIAL_MS) return;
    this.#from = this.#lastMark;
    this.#lastMark = { at: now, moved: this.#moved };
  }
}
