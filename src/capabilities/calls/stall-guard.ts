/** Notices that nothing has moved for a time; a note that something did costs no timer. */
import type { Clock, Timer } from '../../foundation/clock.ts';

export class StallGuard {
  readonly #clock: Clock;
  readonly #limitMs: number;
  readonly #stalled: () => void;
  #lastAt: number;
  #timer: Timer;

  constructor(clock: Clock, limitMs: number, stalled: () => void) {
    this.#clock = clock;
    this.#limitMs = limitMs;
    this.#stalled = stalled;
    this.#lastAt = clock.now();
    this.#timer = clock.after(limitMs, () => this.#check());
  }

  /** Something moved. */
  readonly moved = (): void => {
    this.#lastAt = this.#clock.now();
  };

  stop(): void {
    this.#timer.cancel();
  }

  #check(): void {
    const left = this.#lastAt + this.#limitMs - this.#clock.now();
    if (left <= 0) this.#stalled();
    else this.#timer = this.#clock.after(left, () => this.#check());
  }
}
