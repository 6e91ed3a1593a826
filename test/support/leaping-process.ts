/**
 * Preloaded before a program (`node --import`): its clock advances when its parent sends `{ leap: milliseconds }`.
 * Timers that become due run immediately in order, and the parent receives `{ leapt: milliseconds }`. The clock of the
 * program and its timers advances. The machine's clock, and with it Node's own sockets, does not.
 */
import { syncBuiltinESMExports } from 'node:module';
import timers from 'node:timers';

type Task = (...args: unknown[]) => void;

interface Pending {
  /** Time of this clock. */
  at: number;
  readonly due: () => void;
}

const real = { now: Date.now, setTimeout: globalThis.setTimeout, clearTimeout: globalThis.clearTimeout };
const realInterval = { set: globalThis.setInterval, clear: globalThis.clearInterval };
const pending = new Map<unknown, Pending>();
/** A restarted program continues at the time that its parent states. */
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
// The channel must not keep the program running.
process.channel?.unref();
