/** Disk quota of the objects of one agent. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { QuotaLedger } from '../../../src/capabilities/objects/quota.ts';
import { testAid } from '../../support/agents.ts';

const [ONE, OTHER] = [testAid(1), testAid(2)];
const FULL = { code: 'quota_exceeded' };

/** A quota with a given, variable usage. */
function ledger(stored = { bytes: 0, count: 0 }) {
  return { stored, quotas: new QuotaLedger(() => stored, { bytes: 100, count: 2 }) };
}

test('uploads in progress count as stored, for bytes and objects, separately for each agent', () => {
  const { quotas } = ledger({ bytes: 50, count: 0 });
  const first = quotas.reserve(ONE);
  first.add(30);
  const second = quotas.reserve(ONE);
  second.add(20);
  assert.throws(() => second.add(1), { ...FULL, details: { max_bytes: 100 } });
  assert.throws(() => quotas.reserve(ONE), { ...FULL, details: { max_objects: 2 } });
  quotas.reserve(OTHER).add(50);
});

test('a rejected upload reserves nothing, and a released reservation can be used again', () => {
  const { quotas } = ledger();
  const first = quotas.reserve(ONE);
  assert.throws(() => first.add(101), FULL);
  first.add(60);
  {
    using second = quotas.reserve(ONE);
    second.add(40);
    assert.throws(() => first.add(1), FULL);
  }
  first.add(40);
  quotas.reserve(ONE);
});

test('uploads that were stored meanwhile count when an object is stored', () => {
  const { quotas, stored } = ledger();
  const room = quotas.reserve(ONE);
  room.add(60);
  room.confirm();
  stored.bytes = 40;
  stored.count = 1;
  room.confirm();
  stored.bytes = 41;
  assert.throws(() => room.confirm(), { ...FULL, details: { max_bytes: 100 } });
  stored.bytes = 0;
  stored.count = 2;
  assert.throws(() => room.confirm(), { ...FULL, details: { max_objects: 2 } });
});
