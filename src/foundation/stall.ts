/**
 * Timeouts that ignore stalls of this process. While the process or its machine sleeps, is stopped or is busy, it
 * receives nothing, and on resume its timers fire before it reads the data that arrived meanwhile. So a timeout that
 * declares a peer dead only counts the time in which data could have been received.
 */
import type { Clock, Timer } from './clock.ts';
import { type Deadline, deadline } from './deadline.ts';

/** A timer that fires this late was delayed by this process or its machine, in milliseconds. */
export const STALL_MS = 500;
/**
 * A timer that fires this late was delayed by a sleeping machine, which may be in another network now. In milliseconds.
 */
export const SLEEP_MS = 5_000;
/** Minimum time after a stall to read received data, in milliseconds; the whole timeout if that is shorter. */
const RESUME_GRACE_MS = 1000;
/** Number of parts of a timeout. A stall affects only the part in which it occurs. */
const PARTS = 8;
/** Minimum length of a part, in milliseconds. */
const MIN_PART_MS = 250;
/**
 * Maximum number of stalled parts of one timeout that are ignored, so that a peer that keeps this process busy still
 * times out.
 */
const MAX_STALLS = 16;

/** Calls back after a time without received data. Reporting data does not restart a timer, so it is cheap. */
export class SilenceWatch {
  readonly #clock: Clock;
  readonly #limitMs: number;
  readonly #silent: () => void;
  #leftMs: number;
  /** When data was last received in the current part, in the clock's time; null if none was. */
  #heardAt: number | null = null;
  /** Stalled parts without data since data was last received. */
  #stalls = 0;
  #timer: Timer;

  /** @param silent called once, after `limitMs` milliseconds of awake time without data */
  constructor(clock: Clock, limitMs: number, silent: () => void) {
    this.#clock = clock;
    this.#limitMs = limitMs;
    this.#silent = silent;
    this.#leftMs = limitMs;
    this.#timer = this.#startInterval();
  }

  /** Reports that data was received, which restarts the timeout. */
  readonly heard = (): void => {
    this.#heardAt = this.#clock.monotonic();
  };

  stop(): void {
    this.#timer.cancel();
  }

  #startInterval(): Timer {
    this.#heardAt = null;
    const partMs = Math.min(this.#leftMs, Math.max(MIN_PART_MS, this.#limitMs / PARTS));
    const endsAt = this.#clock.monotonic() + partMs;
    return this.#clock.after(partMs, () => {
      this.#leftMs = this.#remainingAfter(partMs, this.#clock.monotonic() - endsAt > STALL_MS);
      if (this.#leftMs > 0) this.#timer = this.#startInterval();
      else this.#silent();
    });
  }

  /** Milliseconds left after a part. */
  #remainingAfter(partMs: number, stalled: boolean): number {
    const limitMs = this.#limitMs;
    if (this.#heardAt === null) {
      const isForgiven = stalled && ++this.#stalls <= MAX_STALLS;
      return isForgiven ? Math.max(this.#leftMs, Math.min(limitMs, RESUME_GRACE_MS)) : this.#leftMs - partMs;
    }
    this.#stalls = 0;
    return stalled ? limitMs : Math.min(limitMs, limitMs - (this.#clock.monotonic() - this.#heardAt));
  }
}

/** Like `deadline`, but counts awake time only: for timeouts after which a peer is considered dead. */
export function awakeTimeout(clock: Clock, ms: number, outer?: AbortSignal): Deadline {
  return deadline(awakeClock(clock), ms, outer);
}

/** A clock whose timers count awake time only. */
export function awakeClock(clock: Clock): Clock {
  return {
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    after(ms, task) {
      const watch = new SilenceWatch(clock, ms, task);
      return { cancel: () => watch.stop() };
    },
  };
}
