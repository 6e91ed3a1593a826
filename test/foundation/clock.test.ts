import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '../../src/foundation/clock.ts';
import { MAX_IDLE_TIMEOUT_S } from '../../src/foundation/domain/tunnels.ts';

/** Longer than one timer of Node takes. */
const WAIT_MS = MAX_IDLE_TIMEOUT_S * 1000;
const LONGEST_MS = 2 ** 31 - 1;

test('a wait beyond what a timer of Node takes is made of several', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const set = t.mock.method(globalThis, 'setTimeout');
  let runs = 0;
  const timer = systemClock.after(WAIT_MS, () => runs++);
  for (const ms of [LONGEST_MS, WAIT_MS - LONGEST_MS - 1]) t.mock.timers.tick(ms);
  assert.equal(runs, 0);
  t.mock.timers.tick(1);
  assert.equal(runs, 1);
  assert.deepEqual(
    set.mock.calls.map((call) => call.arguments[1]),
    [LONGEST_MS, WAIT_MS - LONGEST_MS],
  );
  timer.cancel();
});

test('such a wait is cancelled in each of its parts', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  for (const ms of [1, LONGEST_MS + 1]) {
    const timer = systemClock.after(WAIT_MS, () => assert.fail('it was cancelled'));
    t.mock.timers.tick(ms);
    timer.cancel();
    t.mock.timers.tick(WAIT_MS);
  }
});
