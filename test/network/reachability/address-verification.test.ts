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
const LOOKS_MS = 10_000;

type Answer = 'reached' | 'not reached' | 'elsewhere' | 'refuses';

async function world(t: { after(end: () => Promise<void>): void }, answers: readonly Answer[]) {
  const clock = new TestClock();
  const state = { candidates: [OWN] as Address[], answers };
  const asked: { readonly node: number | undefined; readonly port: number }[] = [];
  const told: (readonly (readonly [string, boolean])[])[] = [];
  const proof = new AddressVerification({
    clock,
    log: silentLog,
    candidates: () => state.candidates,
    nodes: async () =>
      state.answers.map((_, i) => ({ nodeKey: Uint8Array.of(i), address: { host: '198.51.100.1', port: 4122 } })),
    ask: async ({ nodeKey: [node] }, port) => {
      asked.push({ node, port });
      const answer = state.answers[node ?? 0];
      if (answer === 'refuses') throw new SvcError('access_denied');
      const seenAt = answer === 'elsewhere' ? { ...OWN, host: '203.0.113.10' } : OWN;
      return { seenAt, relays: true, reached: answer !== 'not reached', called: null, relayPort: null };
    },
    found: (verdicts) => void told.push([...verdicts]),
  });
  t.after(() => proof.stop());
  await proof.start();
  await clock.run(LOOKS_MS);
  return { clock, state, asked, told, proof };
}

test('an address is proven by the first node that reaches it there, and looked at again after a while', async (t) => {
  const { clock, asked, told, state } = await world(t, ['not reached', 'reached', 'not reached']);
  assert.deepEqual(told, [[['203.0.113.9:40000', true]]]);
  assert.deepEqual(asked.splice(0), [
    { node: 0, port: 40_000 },
    { node: 1, port: 40_000 },
  ]);
  state.answers = ['not reached'];
  await clock.run(REACHABLE_TTL_MS);
  assert.equal(asked.length, 1);
  assert.deepEqual(told.at(-1), [['203.0.113.9:40000', false]]);
});

test('an address is refuted by two nodes, or by one where no other can be asked', async (t) => {
  const two = await world(t, ['not reached', 'refuses', 'not reached', 'reached']);
  assert.deepEqual(two.told, [[['203.0.113.9:40000', false]]]);
  assert.equal(two.asked.length, 3);
  const one = await world(t, ['not reached']);
  assert.deepEqual(one.told, [[['203.0.113.9:40000', false]]]);
  one.state.answers = ['reached'];
  await one.clock.run(UNREACHABLE_TTL_MS);
  assert.deepEqual(one.told.at(-1), [['203.0.113.9:40000', true]]);
});

test('who sees this node elsewhere, or refuses, says nothing of the address', async (t) => {
  const { told, asked, clock } = await world(t, ['elsewhere', 'refuses']);
  assert.deepEqual([told, asked.length], [[], 2]);
  await clock.run(UNANSWERED_RETRY_MS);
  assert.equal(asked.length, 4);
});

test('what is known of an address is forgotten with it', async (t) => {
  const { told, state, clock, asked } = await world(t, ['reached']);
  state.candidates = [];
  await clock.run(LOOKS_MS);
  assert.deepEqual(told.at(-1), []);
  state.candidates = [OWN];
  await clock.run(LOOKS_MS);
  assert.equal(asked.length, 2);
});

test('it says when a node last reached an address, and nothing once an attempt has failed', async (t) => {
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
