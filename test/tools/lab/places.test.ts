/** Which pairs of the NAT lab a name selects. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pairName, pairsNamed, promised } from '../../lab/places.ts';

test('a run without names has the 36 pairs that can use UDP', () => {
  const pairs = pairsNamed([]);
  assert.equal(pairs.length, 36);
  assert(pairs.every((pair) => promised(pair) !== 'any'));
});

test('networks that allow little meet the six other places, and each other, when they are named', () => {
  const pairs = pairsNamed(['places']);
  assert.equal(pairs.length, 2 * 13 * 6 + 13 * 13);
  assert.equal(new Set(pairs.map(pairName)).size, pairs.length, 'names are unambiguous');
  assert.deepEqual(pairsNamed(['udp-blocked-cone']), [{ caller: 'udp-blocked', called: 'cone' }]);
  assert.equal(pairsNamed(['proxy-password']).length, 2 * 18 + 1);
  assert.equal(pairsNamed(['cones']).length, 9);
  assert.throws(() => pairsNamed(['udp']), /udp is none of/);
});
