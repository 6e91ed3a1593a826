/**
 * Our own stall is not the other side's silence. While this process or its machine sleeps, is stopped
 * or is held up by work, nothing is heard of anybody, and timers end as soon as it goes on: before what
 * has come meanwhile is read. So a wait that ends in a verdict on others counts only the time in which
 * we could have heard them.
 */
import type { Clock, Timer } from './clock.ts';
import { type Deadline, deadline } from './deadline.ts';

/** A timer that is so late was held up by this process or its machine: milliseconds. */
export const STALL_MS = 500;
/** One that is so late was held up by a machine that slept, and may be elsewhere now: milliseconds. */
export const SLEEP_MS = 5_000;
/** After a stall there is at least so long, or the whole wait where that is shorter, to read what came: milliseconds. */
const HEARING_MS = 1000;
/** A wait is cut into so many parts, to see in which of them we stalled … */
const PARTS = 8;
/** … none of them shorter than this: milliseconds. */
const MIN_PART_MS = 250;
/** So many stalled parts of one wait are forgiven: whoever keeps us busy for ever shall not be waited for as long. */
const MAX_STALLS = 16;

/** Calls back once nothing was heard for a time; a note that something was costs no timer. */
export class SilenceWatch {
  readonly #clock: Clock;
  readonly #limitMs: number;
  readonly #silent: () => void;
  #leftMs: number;
  /** When something was heard last in the present part, in the clock's time; null where nothing was. */
  #heardAt: number | null = null;
  /** Parts without a word in which we stalled, since the last one was heard. */
  #stalls = 0;
  #timer: Timer;

  /** @param silent called once, when nothing was heard for `limitMs` milliseconds of waking time */
  constructor(clock: Clock, limitMs: number, silent: () => void) {
    this.#clock = clock;
    this.#limitMs = limitMs;
    this.#silent = silent;
    this.#leftMs = limitMs;
    this.#timer = this.#waitPart();
  }

  /** Something was heard: the time begins anew. */
  readonly heard = (): void => {
    this.#heardAt = this.#clock.now();
  };

  stop(): void {
    this.#timer.cancel();
  }

  #waitPart(): Timer {
    this.#heardAt = null;
    const partMs = Math.min(this.#leftMs, Math.max(MIN_PART_MS, this.#limitMs / PARTS));
    const endsAt = this.#clock.now() + partMs;
    return this.#clock.after(partMs, () => {
      this.#leftMs = this.#leftAfter(partMs, this.#clock.now() - endsAt > STALL_MS);
      if (this.#leftMs > 0) this.#timer = this.#waitPart();
      else this.#silent();
    });
  }

  /** Milliseconds that are left after a part in which we stalled or did not. */
  #leftAfter(partMs: number, stalled: boolean): number {
    const limitMs = this.#limitMs;
    if (this.#heardAt === null) {
      const isForgiven = stalled && ++this.#stalls <= MAX_STALLS;
      return isForgiven ? Math.max(this.#leftMs, Math.min(limitMs, HEARING_MS)) : this.#leftMs - partMs;
    }
    this.#stalls = 0;
    return stalled ? limitMs : Math.min(limitMs, limitMs - (this.#clock.now() - this.#heardAt));
  }
}

/** As `deadline`, in waking time: a time limit after which somebody else counts as gone. */
export function awakeTimeout(clock: Clock, ms: number, outer?: AbortSignal): Deadline {
  return deadline(awakeClock(clock), ms, outer);
}

/** A clock whose timers count waking time only. */
export function awakeClock(clock: Clock): Clock {
  return {
    now: () => clock.now(),
    after(ms, task) {
      const watch = new SilenceWatch(clock, ms, task);
      return { cancel: () => watch.stop() };
    },
  };
}
