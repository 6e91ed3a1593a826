import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { type Clock, systemClock } from '../../src/foundation/clock.ts';
import { every, type RepeatOptions, UNTIL_REQUESTED } from '../../src/foundation/repeat.ts';
import { TestClock } from '../support/test-clock.ts';

const SILENT = { onError: (error: unknown): void => assert.fail(String(error)) };

/** Repeats a task that writes down when it ran, counted from the start. */
function noting(options: Omit<RepeatOptions, 'onError'>, next: () => number | void = () => {}) {
  const clock = new TestClock();
  const start = clock.now();
  const runs: number[] = [];
  const repeating = every(clock, { ...options, ...SILENT }, () => {
    runs.push(clock.now() - start);
    return next();
  });
  return { clock, runs, repeating };
}

test('a task runs after each period, the first time after the period too', () => {
  const { clock, runs } = noting({ periodMs: 100 });
  clock.advance(99);
  assert.deepEqual(runs, []);
  clock.advance(301);
  assert.deepEqual(runs, [100, 200, 300, 400]);
  assert.equal(clock.timers, 1);
});

test('the first run may come at another time', () => {
  for (const firstMs of [0, 30, 250]) {
    const { clock, runs } = noting({ periodMs: 100, firstMs });
    clock.advance(300);
    assert.deepEqual(
      runs,
      [firstMs, firstMs + 100, firstMs + 200, firstMs + 300].filter((at) => at <= 300),
    );
  }
});

test('a run can return the delay of the next; the default is the period', () => {
  const next = [10, undefined, 0, -5, 40];
  const { clock, runs } = noting({ periodMs: 100 }, () => next.shift());
  clock.advance(360);
  assert.deepEqual(runs, [100, 110, 210, 210, 210, 250, 350]);
});

test('a task that waits to be hurried has no timer meanwhile', () => {
  const { clock, runs, repeating } = noting({ periodMs: UNTIL_REQUESTED });
  clock.advance(1e12);
  assert.equal(clock.timers, 0);
  repeating.soon(70);
  repeating.soon(90);
  clock.advance(69);
  assert.deepEqual(runs, []);
  clock.advance(1);
  assert.deepEqual(runs, [1e12 + 70]);
  clock.advance(1000);
  assert.deepEqual([runs.length, clock.timers], [1, 0], 'a hurry counts once');
});

test('a hurry brings the next run forward and never puts it off', () => {
  const { clock, runs, repeating } = noting({ periodMs: 100 });
  repeating.soon(150);
  repeating.soon(40);
  repeating.soon(60);
  assert.equal(clock.timers, 1);
  clock.advance(50);
  assert.deepEqual(runs, [40]);
  repeating.soon();
  clock.advance(0);
  assert.deepEqual(runs, [40, 50]);
  clock.advance(100);
  assert.deepEqual(runs, [40, 50, 150], 'the period begins with the end of the run');
});

test('plan replaces the earlier plan, even with a later time', () => {
  const { clock, runs, repeating } = noting({ periodMs: 100 }, () => {
    if (runs.length === 2) repeating.plan(30);
  });
  clock.advance(90);
  repeating.plan(50);
  clock.advance(49);
  assert.deepEqual(runs, []);
  clock.advance(1);
  repeating.plan(20);
  assert.equal(clock.timers, 1);
  clock.advance(20);
  assert.deepEqual(runs, [140, 160]);
  clock.advance(30);
  assert.deepEqual(runs, [140, 160, 190], 'in a run it is as good as a hurry');
  repeating.stop();
  repeating.plan(10);
  assert.equal(clock.timers, 0);
});

/** A clock that counts the timers that are set. */
function counting(clock: Clock): { readonly clock: Clock; readonly set: number[] } {
  const set: number[] = [];
  const after: Clock['after'] = (ms, task) => {
    set.push(ms);
    return clock.after(ms, task);
  };
  return { clock: { now: () => clock.now(), monotonic: () => clock.monotonic(), after }, set };
}

test('hurried again and again, a run that is due is not put off', () => {
  const time = new TestClock();
  const { clock, set } = counting(time);
  const repeating = every(clock, { periodMs: 1000, ...SILENT }, () => {});
  for (let i = 0; i < 5; i++) {
    repeating.soon();
    time.jump(1);
  }
  assert.deepEqual(set, [1000, 0]);
});

test('after the machine slept, soon does not wait for the rest of the timer', () => {
  const { clock, runs, repeating } = noting({ periodMs: 3_600_000 });
  clock.jump(8 * 3_600_000);
  const time = counting(clock);
  repeating.soon(5000);
  clock.advance(0);
  assert.equal(runs.length, 1);
  assert.deepEqual(time.set, []);
});

test('a stopped task does not run again', () => {
  const { clock, runs, repeating } = noting({ periodMs: 100 });
  clock.advance(100);
  repeating.stop();
  assert.equal(clock.timers, 0);
  repeating.soon();
  assert.equal(clock.timers, 0);
  clock.advance(1000);
  assert.deepEqual(runs, [100]);
});

test('a task that stops itself is not waited for again', () => {
  const clock = new TestClock();
  const repeating = every(clock, { periodMs: 100, ...SILENT }, () => repeating.stop());
  clock.advance(100);
  assert.equal(clock.timers, 0);
});

test('a run that is hurried while it lasts is followed by another one', () => {
  const { clock, runs, repeating } = noting({ periodMs: 100 }, () => {
    if (runs.length === 1) {
      repeating.soon(60);
      repeating.soon(30);
      repeating.soon(50);
    }
    if (runs.length === 2) repeating.soon(400);
  });
  clock.advance(130);
  assert.deepEqual(runs, [100, 130]);
  clock.advance(100);
  assert.deepEqual(runs, [100, 130, 230], 'a hurry to a later time than the period says changes nothing');
  clock.advance(100);
  assert.deepEqual(runs, [100, 130, 230, 330], 'and is forgotten with the run');
});

/** A task whose runs the test ends. */
function lasting(options: Omit<RepeatOptions, 'onError'>) {
  const clock = new TestClock();
  const runs: PromiseWithResolvers<number | void>[] = [];
  const failures: unknown[] = [];
  const onError = (error: unknown): void => void failures.push(error);
  const repeating = every(clock, { ...options, onError }, () => {
    const run = Promise.withResolvers<number | void>();
    runs.push(run);
    return run.promise;
  });
  return { clock, runs, failures, repeating };
}

test('a run that takes longer than the period is never joined by another one', async () => {
  const { clock, runs, repeating } = lasting({ periodMs: 100 });
  clock.advance(100);
  repeating.soon();
  clock.advance(1000);
  assert.equal(runs.length, 1);
  assert.deepEqual([clock.timers, repeating.isRunning], [0, true]);
  runs[0]?.resolve();
  await turn();
  assert.equal(repeating.isRunning, false);
  clock.advance(0);
  assert.equal(runs.length, 2, 'hurried meanwhile');
  runs[1]?.resolve(20);
  await turn();
  clock.advance(19);
  assert.equal(runs.length, 2);
  clock.advance(1);
  assert.equal(runs.length, 3);
  runs[2]?.resolve();
  await turn();
  clock.advance(99);
  assert.equal(runs.length, 3, 'the period begins with the end');
  clock.advance(1);
  assert.equal(runs.length, 4);
});

test('the error of a run is reported once, and the next run follows after the period', async () => {
  const clock = new TestClock();
  const failures: unknown[] = [];
  const faults = [new Error('thrown'), new Error('rejected')];
  let runs = 0;
  every(clock, { periodMs: 100, firstMs: 10, onError: (error) => void failures.push(error) }, () => {
    runs++;
    if (runs === 1) throw faults[0];
    return runs === 2 ? Promise.reject(faults[1]) : undefined;
  });
  clock.advance(10);
  assert.deepEqual([runs, failures], [1, faults.slice(0, 1)]);
  clock.advance(99);
  assert.equal(runs, 1);
  clock.advance(1);
  await turn();
  assert.deepEqual([runs, failures], [2, faults]);
  clock.advance(99);
  assert.equal(runs, 2);
  clock.advance(1);
  assert.equal(runs, 3);
});

test('the repetition continues if onError throws', () => {
  const clock = new TestClock();
  let runs = 0;
  const onError = (error: unknown): void => {
    throw error;
  };
  every(clock, { periodMs: 100, onError }, () => {
    runs++;
    throw new Error(`run ${runs}`);
  });
  assert.throws(() => clock.advance(100), { message: 'run 1' });
  assert.throws(() => clock.advance(100), { message: 'run 2' });
});

test('a stop during a run ignores its result and its error', async () => {
  for (const end of ['resolve', 'reject'] as const) {
    const { clock, runs, failures, repeating } = lasting({ periodMs: 100 });
    clock.advance(100);
    repeating.stop();
    runs[0]?.[end](5);
    await repeating.idle();
    assert.deepEqual([clock.timers, failures], [0, []]);
    clock.advance(1000);
    assert.equal(runs.length, 1);
  }
});

test('idle waits for the run under way, and for nothing else', async () => {
  const { clock, runs, repeating } = lasting({ periodMs: 100 });
  await repeating.idle();
  clock.advance(100);
  let idle = false;
  const waiting = repeating.idle().then(() => {
    idle = true;
  });
  repeating.stop();
  await turn();
  assert.equal(idle, false);
  runs[0]?.reject(new Error('of no interest'));
  await waiting;
});

test('it repeats by the clock of the machine', async (t) => {
  const done = Promise.withResolvers<void>();
  let runs = 0;
  const repeating = every(systemClock, { periodMs: 1, ...SILENT }, async () => {
    if (++runs === 3) done.resolve();
  });
  t.after(() => repeating.stop());
  // Its timers keep no process alive.
  const alive = setInterval(() => {}, 1000);
  await done.promise;
  clearInterval(alive);
});
