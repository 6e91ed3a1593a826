import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SharedTimers } from '../../src/foundation/clock.ts';
import { TestClock } from '../support/test-clock.ts';

test('timers of the same millisecond run together, canceled ones do not run', async () => {
  const clock = new TestClock();
  const begun: number[] = [];
  const after = clock.after.bind(clock);
  const timers = new SharedTimers({
    clock: {
      now: () => clock.now(),
      after: (ms, task) => {
        begun.push(ms);
        return after(ms, task);
      },
    },
  });
  const done: string[] = [];
  const add = (name: string) => () => void done.push(name);
  timers.after(20, add('one'));
  timers.after(20, add('two'));
  timers.after(20, add('never')).cancel();
  timers.after(30, add('three'));
  await clock.run(19);
  assert.deepEqual(done, []);
  timers.after(20, add('four'));
  await clock.run(1);
  assert.deepEqual(done, ['one', 'two']);
  await clock.run(19);
  assert.deepEqual(done, ['one', 'two', 'three', 'four']);
  assert.deepEqual(begun, [20, 30, 20]);
  timers.after(20, add('five'));
  await clock.run(20);
  assert.equal(done.at(-1), 'five');
});
