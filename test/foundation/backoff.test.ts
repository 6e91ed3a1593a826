import assert from 'node:assert/strict';
import { test } from 'node:test';
import { backoff, isWaiting } from '../../src/foundation/backoff.ts';

const STEPS = { firstMs: 500, maxMs: 30_000 };

test('no wait without a failure', () => {
  assert.equal(backoff(STEPS, 0), 0);
  assert.equal(backoff(STEPS, -3), 0);
  assert.equal(backoff({ ...STEPS, jitter: 0.5 }, 0, 0.9), 0);
});

test('each failure doubles the wait, up to its bound', () => {
  const waits = [1, 2, 3, 4, 5, 6, 7, 8].map((failures) => backoff(STEPS, failures));
  assert.deepEqual(waits, [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
});

test('the factor is the caller’s to choose', () => {
  const waits = [1, 2, 3, 4, 5].map((failures) => backoff({ firstMs: 1000, maxMs: 60_000, factor: 3 }, failures));
  assert.deepEqual(waits, [1000, 3000, 9000, 27_000, 60_000]);
  assert.equal(backoff({ firstMs: 1000, maxMs: 60_000, factor: 1 }, 9), 1000);
});

test('a first wait above the bound is the bound', () => {
  assert.equal(backoff({ firstMs: 5000, maxMs: 3000 }, 1), 3000);
});

test('many failures do not overflow', () => {
  for (const failures of [1000, 1025, 1e9, Number.MAX_SAFE_INTEGER, Number.POSITIVE_INFINITY]) {
    assert.equal(backoff(STEPS, failures), 30_000);
    assert.equal(backoff({ ...STEPS, jitter: 0.5 }, failures, 0.5), 22_500);
  }
});

test('chance shortens the wait by up to the part that the jitter says, and never makes it longer', () => {
  const halved = { ...STEPS, jitter: 0.5 };
  assert.equal(backoff(halved, 2, 0), 1000);
  assert.equal(backoff(halved, 2, 0.5), 750);
  assert.equal(backoff(halved, 2, 0.999), 501, 'whole milliseconds, rounded up');
  assert.equal(backoff({ ...STEPS, jitter: 1 }, 2, 0.75), 250);
  assert.equal(backoff({ ...STEPS, jitter: 0 }, 2, 0.75), 1000);
  assert.equal(backoff(halved, 20, 0.5), 22_500, 'of the bound too');
});

test('a retry waits for its time, and not for one that a clock set back has moved away', () => {
  const [now, maxMs] = [1_000_000, 60_000];
  assert.equal(isWaiting(now, now, maxMs), false);
  assert.equal(isWaiting(now + 1, now, maxMs), true);
  assert.equal(isWaiting(now + maxMs, now, maxMs), true);
  assert.equal(isWaiting(now + maxMs + 1, now, maxMs), false);
});
