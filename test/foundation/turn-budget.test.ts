import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { TurnBudget } from '../../src/foundation/concurrency.ts';

test('allows a fixed number per turn of the event loop', async () => {
  const allowance = new TurnBudget(2);
  const take = (): boolean[] => Array.from({ length: 3 }, () => allowance.take());
  for (let i = 0; i < 3; i++) {
    assert.deepEqual(take(), [true, true, false]);
    await Promise.resolve();
    assert.ok(!allowance.take(), 'the same turn has no budget left');
    await turn();
  }
  assert.ok(allowance.take());
  await turn();
  assert.deepEqual(take(), [true, true, false], 'one that was taken before is no longer missing');
});
