import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { RateLimiter } from '../../src/foundation/rate-limit.ts';
import { TestClock } from '../support/test-clock.ts';

test('allows the burst, then refills at the rate', () => {
  const clock = new TestClock();
  const limiter = new RateLimiter({ perSecond: 2, burst: 3, maxKeys: 10 }, { clock });
  assert.deepEqual(
    [1, 2, 3, 4].map(() => limiter.take('a')),
    [true, true, true, false],
  );
  assert.equal(limiter.retryAfterMs('a'), 500);
  clock.advance(499);
  assert.equal(limiter.take('a'), false);
  clock.advance(1);
  assert.equal(limiter.take('a'), true);
  assert.equal(limiter.take('a'), false);
  clock.advance(60_000);
  assert.deepEqual(
    [1, 2, 3, 4].map(() => limiter.take('a')),
    [true, true, true, false],
  );
});

test('keys do not share a bucket', () => {
  const limiter = new RateLimiter({ perSecond: 1, burst: 1, maxKeys: 10 }, { clock: new TestClock() });
  assert.equal(limiter.take('a'), true);
  assert.equal(limiter.take('a'), false);
  assert.equal(limiter.take('b'), true);
});

test('a deficit must be refilled before take succeeds', () => {
  const clock = new TestClock();
  const limiter = new RateLimiter({ perSecond: 1, burst: 2, maxKeys: 10 }, { clock });
  limiter.spend('a', 5);
  assert.equal(limiter.take('a'), false);
  assert.equal(limiter.retryAfterMs('a'), 4000);
  clock.advance(4000);
  assert.equal(limiter.take('a'), true);
  assert.equal(limiter.take('a'), false);
  assert.equal(limiter.take('b', 2), true);
});

test('a refused take spends nothing', () => {
  const limiter = new RateLimiter({ perSecond: 1, burst: 5, maxKeys: 10 }, { clock: new TestClock() });
  assert.equal(limiter.take('a', 4), true);
  assert.equal(limiter.take('a', 2), false);
  assert.equal(limiter.take('a', 1), true);
});

test('a cost above the burst is never granted', () => {
  const limiter = new RateLimiter({ perSecond: 1, burst: 5, maxKeys: 10 }, { clock: new TestClock() });
  assert.equal(limiter.take('a', 6), false);
  assert.equal(limiter.retryAfterMs('a', 6), Number.POSITIVE_INFINITY);
  assert.equal(limiter.take('a', Number.NaN), false);
  assert.equal(limiter.take('a', 5), true);
});

test('asking how long to wait changes nothing', () => {
  const limiter = new RateLimiter({ perSecond: 1, burst: 1, maxKeys: 1 }, { clock: new TestClock() });
  assert.equal(limiter.retryAfterMs('a'), 0);
  assert.equal(limiter.take('a'), true);
  assert.equal(limiter.retryAfterMs('b'), 0);
  assert.equal(limiter.retryAfterMs('a'), 1000);
});

test('setting the clock back does not lock a key out', () => {
  const clock = new TestClock();
  const limiter = new RateLimiter({ perSecond: 1, burst: 2, maxKeys: 10 }, { clock });
  assert.equal(limiter.take('a', 2), true);
  clock.jump(-3_600_000);
  assert.equal(limiter.retryAfterMs('a'), 1000);
  clock.advance(1000);
  assert.equal(limiter.take('a'), true);
});

test('keeps at most maxKeys buckets, and those in use stay', () => {
  const limiter = new RateLimiter({ perSecond: 1, burst: 1, maxKeys: 2 }, { clock: new TestClock() });
  assert.equal(limiter.take('busy'), true);
  for (let i = 0; i < 100; i += 1) {
    assert.equal(limiter.take(`passer-by ${i}`), true);
    assert.equal(limiter.take('busy'), false);
  }
});

test('refuses options that limit nothing', () => {
  const clock = new TestClock();
  for (const options of [
    { perSecond: 0, burst: 1, maxKeys: 1 },
    { perSecond: Number.NaN, burst: 1, maxKeys: 1 },
    { perSecond: 1, burst: 0, maxKeys: 1 },
    { perSecond: 1, burst: Number.POSITIVE_INFINITY, maxKeys: 1 },
    { perSecond: 1, burst: 1, maxKeys: 0 },
  ]) {
    assert.throws(() => new RateLimiter(options, { clock }), RangeError);
  }
});

test('waiting for retryAfterMs succeeds, and never more than burst plus rate passes', () => {
  const step = fc.record({ wait: fc.integer({ min: 0, max: 3000 }), cost: fc.integer({ min: 1, max: 5 }) });
  fc.assert(
    fc.property(
      fc.double({ min: 0.01, max: 5000, noNaN: true }),
      fc.integer({ min: 5, max: 50 }),
      fc.array(step, { maxLength: 50 }),
      (perSecond, burst, steps) => {
        const clock = new TestClock();
        const start = clock.now();
        const limiter = new RateLimiter({ perSecond, burst, maxKeys: 1 }, { clock });
        let spent = 0;
        for (const { wait, cost } of steps) {
          clock.advance(wait);
          if (!limiter.take('a', cost)) {
            const ms = limiter.retryAfterMs('a', cost);
            assert.ok(ms > 0 && Number.isInteger(ms));
            clock.advance(ms);
            assert.equal(limiter.take('a', cost), true);
          }
          spent += cost;
          assert.ok(spent <= burst + ((clock.now() - start + 1) * perSecond) / 1000);
        }
      },
    ),
    { seed: 2 },
  );
});
