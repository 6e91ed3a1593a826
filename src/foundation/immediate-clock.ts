/**
 * A clock whose zero-length timers run in the next turn of the event loop. Node's own timers take at least a
 * millisecond.
 */
import type { Clock } from './clock.ts';

/** Like `clock`, but tasks with a delay of 0 run in the next turn of the event loop. */
export function immediateClock(clock: Clock): Clock {
  return {
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    after(ms, task) {
      if (ms > 0) return clock.after(ms, task);
      const turn = setImmediate(task).unref();
      return { cancel: () => clearImmediate(turn) };
    },
  };
}
