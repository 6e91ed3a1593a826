import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NewAids } from '../../../src/foundation/identity/new-identities.ts';
import { newIdentity } from '../../support/identities.ts';
import { TestClock } from '../../support/test-clock.ts';

test('an AID is new for two seconds, unless its agent is deleted', () => {
  const clock = new TestClock();
  const aids = new NewAids(clock);
  const [{ aid }, { aid: other }] = [newIdentity(), newIdentity()];
  assert.equal(aids.has(aid), false);
  aids.add(aid);
  aids.add(other);
  assert.equal(aids.has(aid), true);
  aids.forget(aid);
  assert.equal(aids.has(aid), false);
  clock.advance(1999);
  assert.equal(aids.has(other), true);
  clock.advance(1);
  assert.equal(aids.has(other), false);
});

test('of many new AIDs the last 256 are remembered', () => {
  const aids = new NewAids(new TestClock());
  const all = Array.from({ length: 257 }, () => newIdentity().aid);
  for (const aid of all) aids.add(aid);
  assert.equal(all.filter((aid) => aids.has(aid)).length, 256);
});
