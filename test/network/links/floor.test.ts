import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DelegationFloor } from '../../../src/network/links/proven.ts';
import { newIdentity } from '../../support/identities.ts';

test('the newest delegation of an agent counts, and only a newer one raises an event', () => {
  const [a, b] = [newIdentity().aid, newIdentity().aid];
  const reported: [string, number][] = [];
  const kept: [string, number][] = [];
  const floor = new DelegationFloor({
    raised: (aid, issuedAt) => reported.push([aid, issuedAt]),
    seen: { note: (aid, issuedAt) => kept.push([aid, issuedAt]), newest: (aid) => (aid === b ? 50 : 0) },
  });
  assert.equal(floor.of(a), 0);
  for (const issuedAt of [10, 10, 9, 11]) floor.note(a, issuedAt, null);
  assert.equal(floor.of(a), 11);
  assert.deepEqual(reported, [
    [a, 10],
    [a, 11],
  ]);
  assert.deepEqual(kept, reported);
  floor.note(b, 20, null);
  assert.equal(floor.of(b), 50, 'a stored delegation of an earlier run counts too');
});

test('a rejected caller is stored only if it is known already', () => {
  const [stranger, known] = [newIdentity().aid, newIdentity().aid];
  const kept: [string, number, string | null][] = [];
  const floor = new DelegationFloor({
    seen: {
      note: (aid, issuedAt, source = null) => kept.push([aid, issuedAt, source]),
      newest: (aid) => (aid === known ? 50 : 0),
    },
  });
  floor.meet(stranger, 10, '192.0.2.1');
  floor.meet(known, 60, '192.0.2.1');
  assert.deepEqual([floor.of(stranger), floor.of(known)], [0, 60]);
  floor.note(stranger, 10, '192.0.2.1');
  assert.deepEqual(kept, [
    [known, 60, '192.0.2.1'],
    [stranger, 10, '192.0.2.1'],
  ]);
});
