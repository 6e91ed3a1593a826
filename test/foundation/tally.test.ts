import assert from 'node:assert/strict';
import { test } from 'node:test';
import { holderToEvict, Tally } from '../../src/foundation/tally.ts';

test('counts by key and all together', () => {
  const tally = new Tally();
  assert.deepEqual([tally.of('a'), tally.total], [0, 0]);
  tally.add('a');
  tally.add('a', 4);
  tally.add('b', 2);
  assert.deepEqual([tally.of('a'), tally.of('b'), tally.of('c'), tally.total], [5, 2, 0, 7]);
  tally.add('a', -1);
  tally.add('b', -2);
  assert.deepEqual([tally.of('a'), tally.of('b'), tally.total], [4, 0, 4]);
});

test('a count never falls below 0', () => {
  const tally = new Tally<number>();
  tally.add(1, -1);
  assert.deepEqual([tally.of(1), tally.total], [0, 0]);
  tally.add(1, 2);
  tally.add(2, 3);
  tally.add(1, -5);
  assert.deepEqual([tally.of(1), tally.total], [0, 3]);
  tally.add(1);
  assert.deepEqual([tally.of(1), tally.total], [1, 4]);
  assert.deepEqual(
    [...tally],
    [
      [2, 3],
      [1, 1],
    ],
  );
});

test('clear removes all counts', () => {
  const tally = new Tally();
  tally.add('a', 3);
  tally.clear();
  assert.deepEqual([tally.of('a'), tally.total], [0, 0]);
  tally.add('a');
  assert.deepEqual([tally.of('a'), tally.total], [1, 1]);
});

test('evicts from the largest network, there from its largest source, and there from its largest key', () => {
  const holder = (network: string, source: string, key: string, count = 1) => ({ network, source, key, count });
  const holders = [
    holder('n1', 's1', 'a', 4),
    holder('n1', 's1', 'b', 3),
    holder('n1', 's2', 'c', 6),
    holder('n2', 's3', 'd', 9),
  ];
  const key = (newcomer: Parameters<typeof holderToEvict>[1], full: Parameters<typeof holderToEvict>[2]) =>
    holderToEvict(holders, newcomer, full)?.key ?? null;
  assert.equal(key(holder('n3', 's9', 'x'), 'total'), 'a');
  assert.equal(key(null, 'total'), 'a');
  assert.equal(key(holder('n1', 's2', 'x'), 'network'), 'c');
  assert.equal(key(holder('n1', 's1', 'a'), 'source'), null);
  assert.equal(key(holder('n1', 's1', 'x'), 'source'), 'a');
  // No holder has more than the newcomer would.
  assert.equal(key(holder('n2', 's3', 'd'), 'network'), null);
  assert.equal(holderToEvict([], null, 'total'), null);
});
