import assert from 'node:assert/strict';
import { test } from 'node:test';
import { callerKey, callerProof, type ProvenCall } from '../../../src/capabilities/calls/caller-proof.ts';
import { toHex } from '../../../src/foundation/bytes.ts';
import { newIdentity } from '../../support/identities.ts';

const [a, b] = [newIdentity().aid, newIdentity().aid];
const CALL: ProvenCall = { caller: a, called: b, method: 'GET', target: '/', at: 1_700_000_000 };

test('each agent has its own key, derived from the node key', () => {
  const seed = new Uint8Array(32).fill(1);
  assert.equal(toHex(callerKey(seed, a)), toHex(callerKey(seed, a)));
  const keys = [callerKey(seed, a), callerKey(seed, b), callerKey(new Uint8Array(32).fill(2), a), seed];
  assert.equal(new Set(keys.map(toHex)).size, keys.length);
});

test('a proof is valid for its call only', () => {
  const key = callerKey(new Uint8Array(32).fill(1), b);
  const proof = callerProof(key, CALL);
  assert.match(proof, /^t=1700000000,v1=[0-9a-f]{64}$/);
  assert.equal(callerProof(key, { ...CALL }), proof);
  const others = [
    callerProof(new Uint8Array(32), CALL),
    callerProof(key, { ...CALL, caller: b }),
    callerProof(key, { ...CALL, called: a }),
    callerProof(key, { ...CALL, method: 'HEAD' }),
    callerProof(key, { ...CALL, target: '/x' }),
    callerProof(key, { ...CALL, at: CALL.at + 1 }).replace(`${CALL.at + 1}`, `${CALL.at}`),
  ];
  for (const other of others) assert.notEqual(other, proof);
});
