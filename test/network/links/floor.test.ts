import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DelegationFloor } from '../../../src/network/links/floor.ts';
import { newIdentity } from '../../support/identities.ts';

test('the newest delegation of an agent counts, and only a newer one is told', () => {
  const [a, b] = [newIdentity().aid, newIdentity().aid];
  const told: [string, number][] = [];
  const kept: [string, number][] = [];
  const floor = new DelegationFloor({
    raised: (aid, issuedAt) => told.push([aid, issuedAt]),
    noteDelegation: (aid, issuedAt) => kept.push([aid, issuedAt]),
    newestDelegation: (aid) => (aid === b ? 50 : 0),
  });
  assert.equal(floor.of(a), 0);
  for (const issuedAt of [10, 10, 9, 11]) floor.note(a, issuedAt);
  assert.equal(floor.of(a), 11);
  assert.deepEqual(told, [
    [a, 10],
    [a, 11],
  ]);
  assert.deepEqual(kept, told);
  floor.note(b, 20);
  assert.equal(floor.of(b), 50, 'what was kept of an earlier life counts too');
});
