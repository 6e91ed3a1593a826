import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  checkRoomAbove,
  type OwnState,
  sequencePosition,
} from '../../../src/capabilities/directory/record-publisher.ts';
import { encodeEndpointsPayload } from '../../../src/foundation/records/payloads.ts';
import type { SignedRecord } from '../../../src/foundation/records/record.ts';
import { RECORD } from '../../../src/foundation/records/types.ts';
import { delegateAnew, newIdentity } from '../../support/identities.ts';
import { testRecord } from '../../support/records.ts';

const HERE = new Uint8Array(32).fill(1);
const ELSEWHERE = new Uint8Array(32).fill(2);
const OWNER = newIdentity();
const OWN: OwnState = { nodeKey: HERE, issuedAt: OWNER.delegation.issuedAt, seq: 10, publishedSeq: 8 };

function held(nodeKey: Uint8Array, seq: number, owner = OWNER): SignedRecord {
  const payload = encodeEndpointsPayload({ endpoints: [], natType: 0, nodeKey, helpers: [], customTypes: [] });
  return testRecord(owner, RECORD.endpoints, { seq, payload });
}

test('if the network has no record, or a known one, the next number is the newest', () => {
  assert.deepEqual(sequencePosition(null, OWN), { kind: 'clear' });
  assert.deepEqual(sequencePosition(held(HERE, 8), OWN), { kind: 'clear' });
  assert.deepEqual(sequencePosition(held(HERE, 10), OWN), { kind: 'clear' });
  assert.deepEqual(sequencePosition(held(ELSEWHERE, 7), OWN), { kind: 'clear' });
});

test('a higher number from this node was used before a backup was restored', () => {
  assert.deepEqual(sequencePosition(held(HERE, 11), OWN), { kind: 'behind', seq: 11, ours: true });
});

test('another node with the same number or a higher one hosts the agent', () => {
  assert.deepEqual(sequencePosition(held(ELSEWHERE, 8), OWN), { kind: 'behind', seq: 8, ours: false });
  assert.deepEqual(sequencePosition(held(ELSEWHERE, 99), OWN), { kind: 'behind', seq: 99, ours: false });
});

test('an agent that was never published here is behind any record', () => {
  const fresh = { ...OWN, seq: 0, publishedSeq: 0 };
  assert.deepEqual(sequencePosition(held(ELSEWHERE, 1), fresh), { kind: 'behind', seq: 1, ours: false });
});

test('a newer delegation wins over any number, an older one over none', () => {
  const newer = delegateAnew(OWNER.master, OWN.issuedAt + 1);
  const older = delegateAnew(OWNER.master, OWN.issuedAt - 1);
  assert.deepEqual(sequencePosition(held(HERE, 1, newer), OWN), { kind: 'superseded' });
  assert.deepEqual(sequencePosition(held(ELSEWHERE, 99, older), OWN), { kind: 'clear' });
});

test('an invalid endpoint payload counts as from another node', () => {
  const odd = testRecord(OWNER, RECORD.endpoints, { seq: 9, payload: new Uint8Array([1]) });
  assert.deepEqual(sequencePosition(odd, OWN), { kind: 'behind', seq: 9, ours: false });
});

test('there is no number above the maximum', () => {
  assert.throws(() => checkRoomAbove(Number.MAX_SAFE_INTEGER), { code: 'stale_sequence' });
  checkRoomAbove(2 ** 52);
});
