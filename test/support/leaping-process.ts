/**
 * Loaded before a program (`node --import`): its clock leaps when its parent says `{ leap: milliseconds }`. What has
 * become due meanwhile runs at once, in its order, and the parent hears `{ leapt: milliseconds }`. The clock that users
 * and our components see leaps, with their timers; that of the machine, and with it Node's own sockets, does not.
 */
import { syncBuiltinESMExports } from 'node:module';
import timers from 'node:timers';

type Task = (...args: unknown[]) => void;

interface Pending {
  /** In the time of this clock. */
  at: number;
  readonly due: () => void;
}

const real = { now: Date.now, setTimeout: globalThis.setTimeout, clearTimeout: globalThis.clearTimeout };
const realInterval = { set: globalThis.setInterval, clear: globalThis.clearInterval };
const pending = new Map<unknown, Pending>();
/** A program that is started again goes on at the time that its parent names. */
let ahead = Number(process.env['LEAPT_MS'] ?? 0);

const now = (): number => real.now() + ahead;

function setLeapingTimeout(task: Task, ms = 0, ...args: unknown[]) {
  const run = (): void => {
    pending.delete(timer);
    task(...args);
  };
  const timer = real.setTimeout(run, ms);
  pending.set(timer, {
    at: now() + ms,
    due: () => {
      real.clearTimeout(timer);
      run();
    },
  });
  return timer;
}

function setLeapingInterval(task: Task, ms = 1, ...args: unknown[]) {
  const timer = realInterval.set(task, ms, ...args);
  const one: Pending = {
    at: now() + ms,
    due: () => {
      one.at = now() + ms;
      task(...args);
    },
  };
  pending.set(timer, one);
  return timer;
}

function forget(timer: Parameters<typeof clearTimeout>[0]): void {
  pending.delete(timer);
  real.clearTimeout(timer);
}

const leaping = {
  setTimeout: Object.assign(setLeapingTimeout, real.setTimeout),
  clearTimeout: forget,
  setInterval: setLeapingInterval,
  clearInterval: forget,
};
Date.now = now;
Object.assign(globalThis, leaping);
Object.assign(timers, leaping);
syncBuiltinESMExports();

function leap(ms: number): void {
  ahead += ms;
  const due = [...pending.entries()].filter(([, { at }]) => at <= now()).sort(([, a], [, b]) => a.at - b.at);
  for (const [timer, one] of due) if (pending.get(timer) === one) one.due();
}

process.on('message', (message) => {
  if (typeof message !== 'object' || message === null || !('leap' in message)) return;
  leap(Number(message.leap));
  process.send?.({ leapt: message.leap });
});
// A program ends as it would without.
process.channel?.unref();
