/** A clock for which no time is a turn of the event loop: a timer takes a millisecond at least. */
import type { Clock } from './clock.ts';

/** As `clock`, but what is to run after 0 milliseconds runs in the next turn of the event loop. */
export function immediateClock(clock: Clock): Clock {
  return {
    now: () => clock.now(),
    after(ms, task) {
      if (ms > 0) return clock.after(ms, task);
      const turn = setImmediate(task).unref();
      return { cancel: () => clearImmediate(turn) };
    },
  };
}
