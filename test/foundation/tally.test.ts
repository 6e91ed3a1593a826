import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Tally } from '../../src/foundation/tally.ts';

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
