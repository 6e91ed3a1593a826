import { type Clock, systemClock, type Timer } from '../../src/foundation/clock.ts';

/** Well below the stall detection, milliseconds. */
const STEP_MS = 100;

interface Pending {
  /** Time of this clock. */
  readonly at: number;
  readonly task: () => void;
  readonly real: Timer;
}

/** The system clock, which a test can advance: timers that become due run immediately. */
export class LeapClock implements Clock {
  #ahead = 0;
  readonly #pending = new Set<Pending>();

  now(): number {
    return systemClock.now() + this.#ahead;
  }

  monotonic(): number {
    return systemClock.monotonic() + this.#ahead;
  }

  after(ms: number, task: () => void): Timer {
    const run = (): void => {
      this.#pending.delete(pending);
      pending.real.cancel();
      task();
    };
    const pending: Pending = { at: this.now() + ms, task: run, real: systemClock.after(ms, run) };
    this.#pending.add(pending);
    return {
      cancel: () => {
        this.#pending.delete(pending);
        pending.real.cancel();
      },
    };
  }

  leap(ms: number): void {
    this.#ahead += ms;
    const due = [...this.#pending].filter(({ at }) => at <= this.now()).sort((a, b) => a.at - b.at);
    for (const one of due) if (this.#pending.has(one)) one.task();
  }

  /** Advances in steps too small to count as a stall of the process. */
  pass(ms: number): void {
    for (let left = ms; left > 0; left -= STEP_MS) this.leap(Math.min(left, STEP_MS));
  }
}
