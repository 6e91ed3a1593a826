/** Time as an argument: tests run a day in a millisecond with a clock of their own. */
export interface Clock {
  /** Milliseconds since the Unix epoch. */
  now(): number;
  /** Runs `task` once after `ms`; the timer does not keep the process alive. */
  after(ms: number, task: () => void): Timer;
}

export interface Timer {
  cancel(): void;
}

/** Longest wait that one timer takes, milliseconds: Node ends a longer one at once. A longer wait is made of several. */
const MAX_TIMER_MS: number = 2 ** 31 - 1;

/** A timer keeps no program from ending. A browser numbers its timers, and needs no leave to close a page. */
function leaveAlone(timer: number | { unref(): unknown }): void {
  if (typeof timer === 'object') timer.unref();
}

/** The machine's own clock. */
export const systemClock: Clock = {
  now: () => Date.now(),
  after(ms, task) {
    let handle: ReturnType<typeof setTimeout> | number;
    const wait = (left: number): void => {
      const rest = left - MAX_TIMER_MS;
      handle = rest > 0 ? setTimeout(wait, MAX_TIMER_MS, rest) : setTimeout(task, left);
      leaveAlone(handle);
    };
    wait(ms);
    return { cancel: () => clearTimeout(handle) };
  },
};

/** Whole Unix seconds of a clock, the unit of records and delegations. */
export function unixSeconds(clock: Clock): number {
  return Math.floor(clock.now() / 1000);
}

/** ISO 8601 UTC text of Unix milliseconds, the API's form of a timestamp. */
export function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}
