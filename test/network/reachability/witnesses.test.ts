import assert from 'node:assert/strict';
import { test } from 'node:test';
import { REMAINING_HELPERS_MS, waitForWitnesses } from '../../../src/network/reachability/reachable-helpers.ts';
import { TestClock } from '../../support/test-clock.ts';

const SILENT = new Promise<boolean>(() => {});

/** Checks that the wait ends exactly after this many milliseconds. */
async function endsAfter(answers: readonly Promise<boolean>[], ms: number): Promise<void> {
  const clock = new TestClock();
  let hasEnded = false;
  const waiting = waitForWitnesses(answers, clock).then(() => {
    hasEnded = true;
  });
  await clock.run(Math.max(0, ms - 1));
  assert.equal(hasEnded, ms === 0);
  await clock.run(1);
  await waiting;
  assert.equal(clock.timers, 0);
}

test('after one helper has answered, silent helpers are waited for only briefly', async () => {
  await endsAfter([SILENT, Promise.resolve(true)], REMAINING_HELPERS_MS);
  await endsAfter([Promise.resolve(false), Promise.resolve(true), SILENT], REMAINING_HELPERS_MS);
});

test('there is no wait if all helpers have answered or failed', async () => {
  await endsAfter([Promise.resolve(true), Promise.resolve(false)], 0);
  await endsAfter([], 0);
});
