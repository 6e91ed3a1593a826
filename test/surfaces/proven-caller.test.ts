import assert from 'node:assert/strict';
import { test } from 'node:test';
import { callerKey, callerProof } from '../../src/capabilities/calls/caller-proof.ts';
import { provenCaller } from '../../src/surfaces/proven-caller.ts';
import { newIdentity } from '../support/identities.ts';

const [caller, called, other] = [newIdentity().aid, newIdentity().aid, newIdentity().aid];
const AT = 1_800_000_000;
const key = callerKey(new Uint8Array(32).fill(1), called);

function requestWith(changed: Readonly<Record<string, string | undefined>> = {}, method = 'GET', url = '/a?b=c') {
  const proof = callerProof(key, { caller, called, method: 'GET', target: '/a?b=c', at: AT });
  const headers = { 'svc-caller-aid': caller, 'svc-local-aid': called, 'svc-caller-proof': proof, ...changed };
  return { method, url, headers };
}

test('a request from the daemon names the caller', () => {
  assert.equal(provenCaller(requestWith(), { key, aid: called }, AT + 60), caller);
  assert.equal(provenCaller(requestWith(), { key, aid: called }, AT - 60), caller);
});

test('a forged, changed or replayed request names no caller', () => {
  const forged = callerProof(callerKey(new Uint8Array(32), called), {
    caller,
    called,
    method: 'GET',
    target: '/a?b=c',
    at: AT,
  });
  for (const request of [
    requestWith({ 'svc-caller-aid': other }),
    requestWith({ 'svc-caller-proof': undefined }),
    requestWith({ 'svc-caller-proof': forged }),
    requestWith({ 'svc-caller-proof': `t=${AT},v1=` }),
    requestWith({ 'svc-caller-proof': `t=${AT},v1=${'0'.repeat(64)}` }),
    requestWith({}, 'POST'),
    requestWith({}, 'GET', '/a?b=d'),
  ])
    assert.equal(provenCaller(request, { key, aid: called }, AT), null, JSON.stringify(request));
  assert.equal(provenCaller(requestWith(), { key, aid: other }, AT), null, 'for another agent');
  assert.equal(provenCaller(requestWith(), { key, aid: called }, AT + 61), null, 'too old');
  assert.equal(provenCaller(requestWith(), { key, aid: called }, AT - 61), null, 'from the future');
});

test('a client of a public address is named by the label of its token, which the proof covers', () => {
  const named = (proven: string, headers: Readonly<Record<string, string>>) => {
    const proof = callerProof(key, { caller: proven, called, method: 'GET', target: '/a?b=c', at: AT });
    const request = requestWith({ 'svc-caller-aid': undefined, 'svc-caller-proof': proof, ...headers });
    return provenCaller(request, { key, aid: called }, AT);
  };
  assert.equal(named('public', { 'svc-caller': 'public' }), 'public');
  assert.equal(named('public laptop', { 'svc-caller': 'public', 'svc-client': 'laptop' }), 'public laptop');
  assert.equal(named('public', { 'svc-caller': 'public', 'svc-client': 'laptop' }), null);
  assert.equal(named('other', { 'svc-caller': 'other' }), null);
});
