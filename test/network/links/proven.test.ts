import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nativeAid } from '../../../src/foundation/identity/aid.ts';
import { DelegationVerifier } from '../../../src/foundation/identity/delegation-verifier.ts';
import { KeyPair } from '../../../src/foundation/identity/keys.ts';
import { DelegationFloor, ProvenAgents } from '../../../src/network/links/proven.ts';
import type { LocalIdentity } from '../../../src/network/links/types.ts';
import { UNHELPED } from '../../../src/network/peers/dial.ts';
import { localIdentity, newIdentity } from '../../support/identities.ts';
import { LinkWorld } from '../../support/link-world.ts';

test('a limited number of accepted callers need no new proof', async () => {
  await using world = new LinkWorld();
  const [a, b] = [await world.node(), await world.node()];
  const place = { nodeKey: b.key.publicKey, addresses: [b.endpoint.address], ...UNHELPED };
  const session = await a.pool.connect(place, new AbortController().signal);
  const proven = new ProvenAgents(new DelegationFloor(), new DelegationVerifier());
  const anyone = localIdentity(newIdentity());
  const caller = (): LocalIdentity => ({ ...anyone, aid: nativeAid(KeyPair.generate().publicKey) });
  const needsProof = (one: LocalIdentity): boolean => proven.callerProof(session, one) !== null;
  const [first, second, third, last] = [caller(), caller(), caller(), caller()];
  const between = Array.from({ length: 1024 - 3 }, caller);
  for (const one of [first, second, third, ...between]) proven.accepted(session, one);
  assert.ok(!needsProof(first));
  proven.accepted(session, last);
  // The first agent was called again recently.
  assert.deepEqual([first, second, third, last].map(needsProof), [false, true, false, false]);
});
