import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isoTime, monotonicTime, systemClock } from '../../src/foundation/clock.ts';
import { MAX_IDLE_TIMEOUT_S } from '../../src/foundation/domain/tunnels.ts';

/** Longer than one timer of Node takes. */
const WAIT_MS = MAX_IDLE_TIMEOUT_S * 1000;
const LONGEST_MS = 2 ** 31 - 1;

test('a wait longer than a Node timer uses several timers', (t) => {
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

test('the text of a time is that of toISOString, on every day that leap years move', () => {
  const dayMs = 86_400_000;
  const days = [
    '1970-01-01',
    '1999-12-31',
    '2000-02-29',
    '2023-12-31',
    '2024-02-28',
    '2024-03-01',
    '2100-02-28',
    '9999-12-31',
  ];
  for (const day of days) {
    const start = Date.parse(`${day}T00:00:00Z`);
    const times = [
      start,
      start + 1,
      start + 59_999.9,
      start + 3_599_999,
      start + 46_800_000,
      start + dayMs - 1,
      start + dayMs,
    ];
    for (const ms of times) assert.equal(isoTime(ms), new Date(ms).toISOString());
  }
  for (let ms = 0; ms < 800 * 366 * dayMs; ms += dayMs + 1003) assert.equal(isoTime(ms), new Date(ms).toISOString());
  assert.equal(isoTime(-1), '1969-12-31T23:59:59.999Z');
  for (const ms of [Number.NaN, Number.POSITIVE_INFINITY]) assert.throws(() => isoTime(ms), RangeError);
});

test('monotonic time never goes back, counts a sleep, and ignores small differences of two clocks', () => {
  let [precise, wall] = [100, 1_000_000];
  const pass = (preciseMs: number, wallMs: number): void => {
    precise += preciseMs;
    wall += wallMs;
  };
  const now = monotonicTime(
    () => precise,
    () => wall,
  );
  assert.equal(now(), 1_000_000);
  pass(10, 10);
  assert.equal(now(), 1_000_010);
  pass(10, -3_600_000);
  assert.equal(now(), 1_000_020, 'the wall clock was set back');
  pass(10, 10);
  assert.equal(now(), 1_000_030);
  pass(0, 60_000);
  assert.equal(now(), 1_060_030, 'the machine slept');
  for (let i = 0; i < 1000; i++) {
    pass(0.5, i % 2);
    now();
  }
  assert.equal(now(), 1_060_530, 'the wall clock counts whole milliseconds');
});
