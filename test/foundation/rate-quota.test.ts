import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { QuotaHolder } from '../../src/foundation/quota.ts';
import { RateQuota } from '../../src/foundation/rate-limit.ts';
import { TestClock } from '../support/test-clock.ts';

const LIMITS = {
  perKey: { perSecond: 1, burst: 2 },
  perSource: { perSecond: 1, burst: 4 },
  perNetwork: { perSecond: 1, burst: 6 },
  strangers: { perSecond: 1, burst: 8 },
};
const stranger = (node: string, source: string): QuotaHolder => ({ node, source, named: false });

/** How many single tokens a holder can take immediately. */
function takes(rate: RateQuota, holder: QuotaHolder): number {
  let taken = 0;
  while (taken < 100 && rate.take(holder)) taken++;
  return taken;
}

test('strangers share a rate by key, source, network and all together', () => {
  const rate = new RateQuota(LIMITS, { clock: new TestClock() });
  assert.equal(takes(rate, stranger('n1', '192.0.2.1')), 2, 'its key');
  assert.equal(takes(rate, stranger('n2', '192.0.2.1')), 2);
  assert.equal(takes(rate, stranger('n3', '192.0.2.1')), 0, 'its address');
  assert.equal(takes(rate, stranger('n4', '192.0.2.2')), 2);
  assert.equal(takes(rate, stranger('n5', '192.0.2.3')), 0, 'its network');
  assert.equal(takes(rate, stranger('n6', '198.51.100.1')), 2);
  assert.equal(takes(rate, stranger('n7', '203.0.113.1')), 0, 'all strangers');
});

test('a named holder has its own rate whatever strangers do, and so have programs on this machine', () => {
  const rate = new RateQuota(LIMITS, { clock: new TestClock() });
  for (let i = 0; i < 20; i++) takes(rate, stranger(`n${i}`, '192.0.2.1'));
  assert.equal(takes(rate, { node: 'f', source: '192.0.2.1', named: true }), 2);
  assert.equal(takes(rate, { node: 'here', source: null, named: true }), 2);
});

test('nodes on this machine are not counted by source', () => {
  const rate = new RateQuota(LIMITS, { clock: new TestClock() });
  for (const node of ['a', 'b', 'c', 'd']) assert.equal(takes(rate, stranger(node, '127.0.0.1')), 2);
});

test('a refusal costs nothing and returns the waiting time', () => {
  const clock = new TestClock();
  const rate = new RateQuota(LIMITS, { clock });
  assert.equal(rate.take(stranger('n1', '192.0.2.1'), 2), true);
  for (let i = 0; i < 9; i++) assert.equal(rate.take(stranger('n1', '192.0.2.1')), false);
  assert.equal(takes(rate, stranger('n2', '192.0.2.1')), 2, 'refusals have not used up the source');
  assert.equal(rate.retryAfterMs(stranger('n1', '192.0.2.1')), 1000);
  clock.advance(1000);
  assert.equal(rate.take(stranger('n1', '192.0.2.1')), true);
  assert.equal(rate.retryAfterMs(stranger('n9', '203.0.113.1'), 3), Number.POSITIVE_INFINITY);
});

test('nodes without a known address share the rate of one network: their names are free', () => {
  const rate = new RateQuota(LIMITS, { clock: new TestClock() });
  let taken = 0;
  for (let i = 0; i < 20; i++) taken += takes(rate, stranger(`n${i}`, `node ${i}`));
  assert.equal(taken, LIMITS.perNetwork.burst);
});

test('takeAll charges a shared level once', () => {
  const rate = new RateQuota(
    {
      perKey: { perSecond: 1, burst: 2 },
      perSource: { perSecond: 1, burst: 2 },
      strangers: { perSecond: 1, burst: 9 },
    },
    { clock: new TestClock() },
  );
  const at = (source: string, node = 'a') => ({ node, source, named: false });
  assert.equal(rate.takeAll([at('192.0.2.1'), at('198.51.100.1')]), true);
  assert.equal(rate.takeAll([at('192.0.2.1'), at('192.0.2.1')]), true);
  assert.equal(rate.take(at('203.0.113.1')), false, 'its key has spent both');
  assert.equal(rate.take(at('192.0.2.1', 'b')), false, 'and so has one source');
  assert.equal(rate.takeAll([at('198.51.100.1', 'b'), at('192.0.2.1', 'b')]), false);
  assert.equal(rate.take(at('198.51.100.1', 'b')), true, 'a refusal spends nothing');
});

test('a cost that becomes known later must be recovered before the next token', () => {
  const clock = new TestClock();
  const each = { perSecond: 1, burst: 1 };
  const rate = new RateQuota({ perKey: each, perSource: each, strangers: { perSecond: 9, burst: 9 } }, { clock });
  const holder = { node: 'a', source: '192.0.2.1', named: false };
  assert.equal(rate.take(holder), true);
  rate.spend(holder, 3);
  clock.advance(3000);
  assert.equal(rate.take({ ...holder, node: 'b' }), false);
  clock.advance(1000);
  assert.equal(rate.take(holder), true);
});
