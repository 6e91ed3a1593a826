import assert from 'node:assert/strict';
import { test } from 'node:test';
import { lazy } from '../../src/foundation/lazy.ts';

test('creates the value once on first use, even undefined, and retries after a failure', () => {
  let times = 0;
  const value = lazy(() => {
    times += 1;
    if (times === 1) throw new Error('not yet');
    return undefined;
  });
  assert.equal(times, 0);
  assert.throws(value, /not yet/);
  assert.equal(value(), undefined);
  assert.equal(value(), undefined);
  assert.equal(times, 2);
});
