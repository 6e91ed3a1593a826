import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Clock, systemClock } from '../../src/foundation/clock.ts';
import { awakeClock, SilenceWatch, STALL_MS } from '../../src/foundation/stall.ts';
import { TestClock } from '../support/test-clock.ts';

/** A watch, with the milliseconds since its start after which it called back. */
function watching(limitMs: number) {
  const clock = new TestClock();
  const start = clock.now();
  const silences: number[] = [];
  const watch = new SilenceWatch(clock, limitMs, () => silences.push(clock.now() - start));
  /** A stalled process: its timers fire late, in order. */
  const stall = (ms: number): void => {
    clock.jump(ms);
    clock.advance(0);
  };
  return { clock, silences, watch, stall };
}

test('silence is called once, when it has lasted for its time', () => {
  for (const limitMs of [0, 1, 249, 250, 1000, 1001, 30_000, 600_000]) {
    const { clock, silences } = watching(limitMs);
    clock.advance(limitMs - 1);
    assert.deepEqual(silences, []);
    clock.advance(1);
    assert.deepEqual(silences, [limitMs]);
    clock.advance(10 * limitMs + 10_000);
    assert.equal(silences.length, 1);
    assert.equal(clock.timers, 0);
  }
});

test('it lasts from the last that was heard', () => {
  const { clock, silences, watch } = watching(1000);
  clock.advance(900);
  watch.heard();
  clock.advance(900);
  watch.heard();
  watch.heard();
  clock.advance(999);
  assert.deepEqual(silences, []);
  clock.advance(1);
  assert.deepEqual(silences, [2800]);
});

test('a stopped watch never calls back and leaves no timer', () => {
  const { clock, silences, watch } = watching(1000);
  clock.advance(500);
  watch.stop();
  assert.equal(clock.timers, 0);
  clock.advance(5000);
  assert.deepEqual(silences, []);
});

test('a word costs no timer', () => {
  let timers = 0;
  const clock: Clock = {
    now: () => 0,
    monotonic: () => 0,
    after: () => {
      timers++;
      return { cancel: () => {} };
    },
  };
  const watch = new SilenceWatch(clock, 1000, () => {});
  for (let i = 0; i < 100; i++) watch.heard();
  assert.equal(timers, 1);
});

test('a long wait takes few timers, a short one no very short ones', () => {
  for (const [limitMs, timers] of [
    [600_000, 8],
    [1000, 4],
    [100, 1],
  ] as const) {
    const time = new TestClock();
    let set = 0;
    const after: Clock['after'] = (ms, task) => {
      set++;
      return time.after(ms, task);
    };
    let silent = false;
    const clock = { now: () => time.now(), monotonic: () => time.monotonic(), after };
    const watch = new SilenceWatch(clock, limitMs, () => {
      silent = true;
    });
    time.advance(limitMs);
    assert.ok(silent);
    watch.stop();
    assert.equal(set, timers);
  }
});

test('a stall does not count as silence: it is followed by time to read received data', () => {
  for (const before of [0, 100, 700, 999]) {
    const { clock, silences, stall } = watching(1000);
    clock.advance(before);
    stall(60_000);
    assert.deepEqual(silences, [], `stalled after ${before} ms`);
    clock.advance(999);
    assert.deepEqual(silences, []);
    clock.advance(1);
    assert.deepEqual(silences, [before + 61_000]);
  }
});

test('a peer that keeps this process busy times out, and received data restarts the timeout', () => {
  const { clock, silences, watch, stall } = watching(1000);
  const stalls = (times: number): void => {
    for (let i = 0; i < times; i++) stall(10_000);
  };
  stalls(16);
  watch.heard();
  stalls(1 + 16);
  assert.deepEqual(silences, []);
  stalls(4);
  assert.equal(silences.length, 1);
  assert.equal(clock.timers, 0);
});

test('of a long timeout only the stalled part is repeated', () => {
  const { clock, silences, stall } = watching(80_000);
  clock.advance(65_000);
  stall(3_600_000);
  // Six parts of ten seconds have passed, and the seventh restarts.
  clock.advance(19_999);
  assert.deepEqual(silences, []);
  clock.advance(1);
  assert.deepEqual(silences, [65_000 + 3_600_000 + 20_000]);
});

test('near the end of a long wait a stall still leaves a second', () => {
  const { clock, silences, watch, stall } = watching(30_000);
  clock.advance(100);
  // From here on its last part is one of 100 ms.
  watch.heard();
  clock.advance(29_950);
  stall(10_000);
  clock.advance(999);
  assert.deepEqual(silences, []);
  clock.advance(1);
  assert.deepEqual(silences, [30_050 + 10_000 + 1000]);
});

test('data received just before a stall counts as received after it', () => {
  const { clock, silences, watch, stall } = watching(1000);
  clock.advance(800);
  watch.heard();
  stall(60_000);
  clock.advance(999);
  assert.deepEqual(silences, []);
  clock.advance(1);
  assert.deepEqual(silences, [61_800]);
});

test('a timer that is a little late is no stall', () => {
  for (const [lateMs, isStall] of [
    [STALL_MS, false],
    [STALL_MS + 1, true],
  ] as const) {
    const { clock, silences, stall } = watching(200);
    stall(200 + lateMs);
    assert.equal(silences.length, isStall ? 0 : 1);
    clock.advance(200);
    assert.equal(silences.length, 1);
  }
});

test('a clock that is set back neither ends nor stops a wait', () => {
  for (const heard of [false, true]) {
    const clock = new TestClock();
    let late = 0;
    const tasks: (() => void)[] = [];
    const after: Clock['after'] = (ms, task) => {
      late += ms;
      tasks.push(task);
      return { cancel: () => {} };
    };
    let silent = false;
    const watch = new SilenceWatch({ now: () => clock.now(), monotonic: () => clock.monotonic(), after }, 1000, () => {
      silent = true;
    });
    if (heard) watch.heard();
    clock.jump(-3_600_000);
    for (let next = tasks.shift(); next !== undefined; next = tasks.shift()) next();
    assert.ok(silent);
    assert.equal(late, heard ? 1250 : 1000);
  }
});

test('a waking clock tells the time of its clock, and its timers outlast a stall', () => {
  const time = new TestClock();
  const clock = awakeClock(time);
  assert.equal(clock.now(), time.now());
  let ran = 0;
  clock.after(1000, () => ran++);
  const cancelled = clock.after(1000, () => assert.fail('cancelled'));
  time.advance(300);
  cancelled.cancel();
  time.jump(60_000);
  time.advance(999);
  assert.equal(ran, 0);
  time.advance(1);
  assert.equal(ran, 1);
  assert.equal(time.timers, 0);
});

test('a blocked event loop reads received data before a peer times out', async () => {
  const { port1, port2 } = new MessageChannel();
  const outcome = Promise.withResolvers<string>();
  const watch = new SilenceWatch(systemClock, 300, () => outcome.resolve('silent'));
  port1.on('message', () => outcome.resolve('heard'));
  port2.postMessage('here I am');
  for (const end = Date.now() + 300 + 2 * STALL_MS; Date.now() < end; ) Math.sqrt(end);
  assert.equal(await outcome.promise, 'heard');
  watch.stop();
  port1.close();
});
