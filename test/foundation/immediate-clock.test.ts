import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { immediateClock } from '../../src/foundation/immediate-clock.ts';
import { TestClock } from '../support/test-clock.ts';

test('no time is a turn of the event loop, and any other time is that of the clock', async () => {
  const clock = new TestClock();
  const prompt = immediateClock(clock);
  const ran: string[] = [];
  prompt.after(0, () => ran.push('no time'));
  prompt.after(0.04, () => ran.push('a moment'));
  assert.deepEqual([ran, clock.timers], [[], 1]);
  await turn();
  assert.deepEqual(ran, ['no time']);
  clock.advance(1);
  assert.deepEqual(ran, ['no time', 'a moment']);
  assert.equal(prompt.now(), clock.now());
});

test('both are cancelled', async () => {
  const clock = new TestClock();
  for (const ms of [0, 1]) {
    const timer = immediateClock(clock).after(ms, () => assert.fail('it was cancelled'));
    timer.cancel();
  }
  clock.advance(1);
  await turn();
});
