import assert from 'node:assert/strict';
import { test } from 'node:test';
import { unlessAborted, withDeadline } from '../../../src/capabilities/directory/deadline.ts';
import { Turns } from '../../../src/capabilities/directory/turns.ts';
import { TestClock } from '../../support/test-clock.ts';

test('work on one key runs one after the other, on others side by side', async () => {
  const turns = new Turns<string>();
  const seen: string[] = [];
  const first = Promise.withResolvers<void>();
  const a = turns.run('a', async () => {
    seen.push('a1');
    await first.promise;
    seen.push('a1 ends');
    throw new Error('fails');
  });
  const b = turns.run('a', () => seen.push('a2'));
  await turns.run('b', () => seen.push('b1'));
  assert.deepEqual(seen, ['a1', 'b1']);
  first.resolve();
  await assert.rejects(a, /fails/);
  await b;
  await turns.idle();
  assert.deepEqual(seen, ['a1', 'b1', 'a1 ends', 'a2']);
});

test('a deadline ends the wait and tells the work', async () => {
  const clock = new TestClock();
  const stop = new AbortController();
  let told = false;
  const hanging = async (signal: AbortSignal): Promise<never> => {
    signal.addEventListener('abort', () => {
      told = true;
    });
    return new Promise(() => {});
  };
  const late = withDeadline(clock, 100, stop.signal, hanging);
  clock.advance(100);
  await assert.rejects(late, { code: 'timeout' });
  assert.ok(told);
  const stopped = withDeadline(clock, 100, stop.signal, hanging);
  stop.abort();
  await assert.rejects(stopped, { code: 'cancelled' });
  await assert.rejects(withDeadline(clock, 100, stop.signal, hanging), { code: 'cancelled' });
  assert.equal(clock.timers, 0);
});

test('giving up does not end shared work', async () => {
  const shared = Promise.withResolvers<number>();
  const controller = new AbortController();
  const given = unlessAborted(shared.promise, controller.signal);
  const waiting = unlessAborted(shared.promise, undefined);
  controller.abort();
  await assert.rejects(given, { code: 'cancelled' });
  await assert.rejects(unlessAborted(shared.promise, controller.signal), { code: 'cancelled' });
  shared.resolve(1);
  assert.equal(await waiting, 1);
});
