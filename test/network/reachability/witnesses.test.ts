import assert from 'node:assert/strict';
import { test } from 'node:test';
import { REMAINING_HELPERS_MS, waitForWitnesses } from '../../../src/network/reachability/reachable-helpers.ts';
import { TestClock } from '../../support/test-clock.ts';

const SILENT = new Promise<boolean>(() => {});

/** Whether the wait ends after so many milliseconds, and not before. */
async function endsAfter(words: readonly Promise<boolean>[], ms: number): Promise<void> {
  const clock = new TestClock();
  let hasEnded = false;
  const heard = waitForWitnesses(words, clock).then(() => {
    hasEnded = true;
  });
  await clock.run(Math.max(0, ms - 1));
  assert.equal(hasEnded, ms === 0);
  await clock.run(1);
  await heard;
  assert.equal(clock.timers, 0);
}

test('a silent helper is waited for a moment only, once another one has said something', async () => {
  await endsAfter([SILENT, Promise.resolve(true)], REMAINING_HELPERS_MS);
  await endsAfter([Promise.resolve(false), Promise.resolve(true), SILENT], REMAINING_HELPERS_MS);
});

test('nothing is waited for where all have answered or failed', async () => {
  await endsAfter([Promise.resolve(true), Promise.resolve(false)], 0);
  await endsAfter([], 0);
});
