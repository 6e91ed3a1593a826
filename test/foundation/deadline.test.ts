import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import type { Clock } from '../../src/foundation/clock.ts';
import { abortable, abortError, deadline } from '../../src/foundation/deadline.ts';
import { SvcError } from '../../src/foundation/errors.ts';
import { TestClock } from '../support/test-clock.ts';

/** How many listen to a signal. */
function listeners(signal: AbortSignal): number {
  return getEventListeners(signal, 'abort').length;
}

test('a deadline aborts when its time is up, and says after how long', () => {
  const clock = new TestClock();
  using limit = deadline(clock, 100);
  clock.advance(99);
  assert.equal(limit.signal.aborted, false);
  clock.advance(1);
  assert.equal(limit.signal.aborted, true);
  const error = abortError(limit.signal);
  assert.equal(error, limit.signal.reason);
  assert.equal(error.code, 'timeout');
  assert.deepEqual(error.details, { after_ms: 100 });
});

test('a restarted deadline does not count the sleep of the machine', () => {
  const awake = new TestClock();
  let sleptMs = 0;
  const clock: Clock = {
    now: () => awake.now() + sleptMs,
    monotonic: () => awake.monotonic() + sleptMs,
    after: (ms, task) => awake.after(ms, task),
  };
  using limit = deadline(clock, 100);
  awake.advance(90);
  limit.restart();
  sleptMs = 3_600_000;
  awake.advance(99);
  assert.equal(limit.signal.aborted, false);
  awake.advance(1);
  assert.equal(limit.signal.aborted, true);
  assert.deepEqual(abortError(limit.signal).details, { after_ms: 100 });
});

test('a deadline may be restarted with another length', () => {
  const clock = new TestClock();
  using limit = deadline(clock, 100);
  limit.restart(300);
  clock.advance(200);
  limit.restart(50);
  clock.advance(49);
  assert.equal(limit.signal.aborted, false);
  clock.advance(1);
  assert.deepEqual(abortError(limit.signal).details, { after_ms: 50 });
});

test('a deadline follows its outer signal', () => {
  const clock = new TestClock();
  const controller = new AbortController();
  const reason = new Error('the caller left');
  {
    using limit = deadline(clock, 100, controller.signal);
    assert.equal(limit.signal.aborted, false);
    controller.abort(reason);
    assert.equal(limit.signal.aborted, true);
    assert.equal(abortError(limit.signal).code, 'cancelled');
    assert.equal(abortError(limit.signal).cause, reason);
    clock.advance(100);
    assert.equal(abortError(limit.signal).code, 'cancelled', 'the first reason stays');
  }
  assert.equal(listeners(controller.signal), 0);
  using late = deadline(clock, 100, controller.signal);
  assert.equal(late.signal.aborted, true, 'an outer signal that aborted before counts too');
  assert.equal(abortError(late.signal).code, 'cancelled');
});

test('passes on the error of the outer signal', () => {
  const clock = new TestClock();
  using outer = deadline(clock, 50);
  using inner = deadline(clock, 100, outer.signal);
  clock.advance(50);
  assert.equal(inner.signal.reason, outer.signal.reason);
  assert.equal(abortError(inner.signal).code, 'timeout');
});

test('a deadline that is over leaves no timer and no listener, and never aborts', () => {
  const clock = new TestClock();
  const controller = new AbortController();
  const limit = deadline(clock, 100, controller.signal);
  assert.deepEqual([clock.timers, listeners(controller.signal)], [1, 1]);
  limit[Symbol.dispose]();
  assert.deepEqual([clock.timers, listeners(controller.signal)], [0, 0]);
  controller.abort();
  clock.advance(100);
  assert.equal(limit.signal.aborted, false);
});

test('an abortable wait settles like its promise and releases the signal', async () => {
  const controller = new AbortController();
  const given = Promise.withResolvers<number>();
  const wait = abortable(given.promise, controller.signal);
  assert.equal(listeners(controller.signal), 1);
  given.resolve(7);
  assert.equal(await wait, 7);
  await assert.rejects(abortable(Promise.reject(new Error('no')), controller.signal), /no/);
  assert.equal(listeners(controller.signal), 0);
  assert.equal(await abortable(Promise.resolve(8), undefined), 8);
});

test('giving up ends the wait, not the work that others share', async () => {
  const shared = Promise.withResolvers<number>();
  const controller = new AbortController();
  const given = abortable(shared.promise, controller.signal);
  const waiting = abortable(shared.promise, undefined);
  controller.abort();
  await assert.rejects(given, (error) => error instanceof SvcError && error.code === 'cancelled');
  await assert.rejects(abortable(shared.promise, controller.signal), { code: 'cancelled' });
  shared.resolve(1);
  assert.equal(await waiting, 1);
  assert.equal(listeners(controller.signal), 0);
});

test('work that fails after the wait was given up rejects nowhere', async () => {
  const controller = new AbortController();
  controller.abort();
  const work = Promise.withResolvers<never>();
  await assert.rejects(abortable(work.promise, controller.signal), { code: 'cancelled' });
  work.reject(new Error('too late'));
  await new Promise((resolve) => setImmediate(resolve));
});
