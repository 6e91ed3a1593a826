import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Address } from '../../../src/foundation/address.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import {
  AddressVerification,
  REACHABLE_TTL_MS,
  UNANSWERED_RETRY_MS,
  UNREACHABLE_TTL_MS,
} from '../../../src/network/reachability/address-verification.ts';
import { TestClock } from '../../support/test-clock.ts';

const OWN = { host: '203.0.113.9', port: 40_000 };
const LOOKS_MS = 9_999;

type Answer = 'reached' | 'not reached' | 'elsewhere' | 'refuses';

async function world(t: { after(end: () => Promise<void>): void }, answers: readonly Answer[]) {
  const clock = new TestClock();
  const state = { candidates: [OWN] as Address[], answers };
  const asked: { readonly node: number | undefined; readonly port: number }[] = [];
  const reported: (readonly (readonly [string, boolean])[])[] = [];
  const proof = new AddressVerification({
    clock,
    log: silentLog,
    candidates: () => state.candidates,
    nodes: async () =>
      state.answers.map((_, i) => ({ nodeKey: Uint8Array.of(i), address: { host: '198.51.100.1', port: 4122 } })),
    requestDialBack: async ({ nodeKey: [node] }, port) => {
      asked.push({ node, port });
      const answer = state.answers[node ?? 0];
      if (answer === 'refuses') throw new SvcError('access_denied');
      const seenAt = answer === 'elsewhere' ? { ...OWN, host: '203.0.113.10' } : OWN;
      return { seenAt, relays: true, reached: answer !== 'not reached', called: null, relayPort: null, tlsPorts: [] };
    },
    onResults: (verdicts) => void reported.push([...verdicts]),
  });
  t.after(() => proof.stop());
  await proof.start();
  await clock.run(LOOKS_MS);
  return { clock, state, asked, reported, proof };
}

test('an address is verified by the first node that reaches it, and checked again later', async (t) => {
  const { clock, asked, reported, state } = await world(t, ['not reached', 'reached', 'not reached']);
  assert.deepEqual(reported, [[['203.0.113.9:40000', true]]]);
  assert.deepEqual(asked.splice(0), [
    { node: 0, port: 40_000 },
    { node: 1, port: 40_000 },
  ]);
  state.answers = ['not reached'];
  await clock.run(REACHABLE_TTL_MS);
  assert.equal(asked.length, 1);
  assert.deepEqual(reported.at(-1), [['203.0.113.9:40000', false]]);
});

test('an address is refuted by two nodes, or by one if there is no other', async (t) => {
  const two = await world(t, ['not reached', 'refuses', 'not reached', 'reached']);
  assert.deepEqual(two.reported, [[['203.0.113.9:40000', false]]]);
  assert.equal(two.asked.length, 3);
  const one = await world(t, ['not reached']);
  assert.deepEqual(one.reported, [[['203.0.113.9:40000', false]]]);
  one.state.answers = ['reached'];
  await one.clock.run(UNREACHABLE_TTL_MS);
  assert.deepEqual(one.reported.at(-1), [['203.0.113.9:40000', true]]);
});

test('after a failure the address is tried again within seconds, then at growing intervals', async (t) => {
  const { clock, state, reported, asked } = await world(t, ['not reached']);
  await clock.run(6 * UNREACHABLE_TTL_MS);
  assert.ok(asked.length <= 10, `${asked.length} times per hour`);
  state.answers = ['refuses'];
  await clock.run(UNREACHABLE_TTL_MS);
  assert.deepEqual(reported, [[['203.0.113.9:40000', false]]], 'silence does not refute it');
  const busy = await world(t, ['not reached']);
  busy.state.answers = ['reached'];
  await busy.clock.run(LOOKS_MS);
  assert.deepEqual(busy.reported.at(-1), [['203.0.113.9:40000', true]]);
});

test('a node that sees another address, or refuses, does not affect the result', async (t) => {
  const { reported, asked, clock } = await world(t, ['elsewhere', 'refuses']);
  assert.deepEqual([reported, asked.length], [[], 2]);
  await clock.run(LOOKS_MS);
  assert.equal(asked.length, 4);
  await clock.run(6 * UNANSWERED_RETRY_MS);
  assert.ok(asked.length <= 4 + 2 * 7, `${asked.length} requests`);
});

test('the result for an address is removed with the address', async (t) => {
  const { reported, state, clock, asked } = await world(t, ['reached']);
  state.candidates = [];
  await clock.run(LOOKS_MS);
  assert.deepEqual(reported.at(-1), []);
  state.candidates = [OWN];
  await clock.run(LOOKS_MS);
  assert.equal(asked.length, 2);
});

test('the time of the last success is known until an attempt fails', async (t) => {
  const { proof, state, clock } = await world(t, ['reached']);
  const first = proof.reachedAt(OWN);
  assert.ok(first !== null && first <= clock.now());
  await clock.run(REACHABLE_TTL_MS);
  assert.ok((proof.reachedAt(OWN) ?? 0) > first);
  state.answers = ['refuses'];
  await clock.run(REACHABLE_TTL_MS);
  assert.equal(proof.reachedAt(OWN), null);
  assert.equal(proof.reachedAt({ ...OWN, port: 1 }), null);
});
