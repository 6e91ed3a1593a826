import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Quota, type QuotaHolder } from '../../src/foundation/quota.ts';
import { ResizableShare } from '../../src/foundation/resizable-share.ts';

const stranger = (node: string): QuotaHolder => ({ node, source: `192.0.2.${node}`, named: false });

test('a share grows and shrinks, and cannot exceed the quota', () => {
  const quota = new Quota({ total: 10 });
  const share = new ResizableShare(quota, stranger('1'), () => assert.fail());
  assert.deepEqual([share.set(4), share.set(10), share.set(11)], [true, true, false]);
  assert.deepEqual([share.amount, quota.used], [10, 10]);
  assert.deepEqual([share.set(3), quota.used], [true, 3]);
  assert.deepEqual([share.set(0), share.amount, quota.used], [true, 0, 0]);
});

test('one that holds nothing is never evicted; one that was holds nothing, and may take again', () => {
  const quota = new Quota({ total: 10 });
  const evicted: string[] = [];
  const share = (node: string): ResizableShare => new ResizableShare(quota, stranger(node), () => evicted.push(node));
  const [empty, largest, small] = [share('1'), share('2'), share('3')];
  empty.set(5);
  empty.set(0);
  largest.set(9);
  assert.equal(small.set(2), true);
  assert.deepEqual(evicted, ['2']);
  assert.deepEqual([largest.amount, quota.used], [0, 2]);
  assert.equal(largest.set(8), true);
  assert.equal(quota.used, 10);
});
