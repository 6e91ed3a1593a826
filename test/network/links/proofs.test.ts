import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toHex } from '../../../src/foundation/bytes.ts';
import { CLOCK_SKEW_S } from '../../../src/foundation/domain/time.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import { nativeAid } from '../../../src/foundation/identity/aid.ts';
import { DelegationVerifier } from '../../../src/foundation/identity/delegation-verifier.ts';
import { KeyPair } from '../../../src/foundation/identity/keys.ts';
import { isCurrent, makeProof, type ProofRole, proofInput, verifyProof } from '../../../src/network/links/proofs.ts';
import type { LocalIdentity } from '../../../src/network/links/types.ts';
import type { ConnectionEnd } from '../../../src/network/peers/session.ts';
import { ProtocolBreach } from '../../../src/network/peers/wire.ts';
import { delegateAnew, newIdentity, type TestIdentity } from '../../support/identities.ts';

const NOW = Date.UTC(2026, 0, 2) / 1000;
const verifier = new DelegationVerifier();

function end(fill: number): ConnectionEnd {
  return { nodeKey: new Uint8Array(32).fill(fill), nonce: new Uint8Array(32).fill(fill + 1) };
}

const prover = end(0x10);
const verifying = end(0x20);

function local({ aid, delegation, operational }: TestIdentity): LocalIdentity {
  return { aid, delegation, sign: (message) => operational.sign(message) };
}

function verified(
  identity: TestIdentity,
  proof: ReturnType<typeof makeProof>,
  change: { here?: ConnectionEnd; there?: ConnectionEnd; role?: ProofRole; oldest?: number; now?: number } = {},
): ReturnType<typeof verifyProof> {
  const { here = verifying, there = prover, role = 'caller', oldest = 0, now = NOW } = change;
  return verifyProof(role, identity.aid, proof, { here, there, oldest, now }, verifier);
}

test('a proof verifies only at the other end of its connection and in its role', async () => {
  const agent = newIdentity();
  const proof = makeProof('caller', local(agent), prover, verifying);
  assert.deepEqual(await verified(agent, proof), { issuedAt: agent.delegation.issuedAt, expiresAt: 0 });
  const elsewhere = {
    'shown by another node': { there: { ...prover, nodeKey: end(0x30).nodeKey } },
    'shown to another node': { here: { ...verifying, nodeKey: end(0x30).nodeKey } },
    'on another connection of the two': { here: { ...verifying, nonce: end(0x30).nonce } },
    'on another connection, in reverse': { there: { ...prover, nonce: end(0x30).nonce } },
    'reflected to its maker': { here: prover, there: verifying },
    'in the other role': { role: 'called' as const },
  };
  for (const [name, change] of Object.entries(elsewhere))
    await assert.rejects(verified(agent, proof, change), ProtocolBreach, name);
});

test('a proof of one agent is invalid for another', async () => {
  const [agent, other] = [newIdentity(), newIdentity()];
  const proof = makeProof('caller', local(agent), prover, verifying);
  await assert.rejects(verified(other, proof), ProtocolBreach);
  // The delegation is the victim's, and the signature is by the attacker's key.
  const forged = makeProof('caller', local({ ...other, operational: agent.operational }), prover, verifying);
  await assert.rejects(verified(other, forged), ProtocolBreach);
  // The attacker delegates the victim's AID to its key, and signs that with its master key.
  const delegation = {
    ...delegateAnew(agent.master).delegation,
    agent: other.aid,
    operationalKey: agent.operational.publicKey,
  };
  const claimed = makeProof(
    'caller',
    local({ ...other, delegation, operational: agent.operational }),
    prover,
    verifying,
  );
  await assert.rejects(verified(other, claimed), ProtocolBreach);
  await assert.rejects(verified(other, { ...claimed, delegation: Uint8Array.of(1, 2, 3) }), ProtocolBreach);
});

test('a delegation is valid within its window and until a newer one is known', async () => {
  const agent = delegateAnew(KeyPair.generate(), NOW - 100, NOW + 100);
  const proof = makeProof('caller', local(agent), prover, verifying);
  const failing = (code: string) => (error: unknown) => error instanceof SvcError && error.code === code;
  await verified(agent, proof, { now: NOW - 100 - CLOCK_SKEW_S });
  await verified(agent, proof, { now: NOW + 100 + CLOCK_SKEW_S });
  await assert.rejects(verified(agent, proof, { now: NOW - 101 - CLOCK_SKEW_S }), failing('clock_wrong'));
  await assert.rejects(verified(agent, proof, { now: NOW + 101 + CLOCK_SKEW_S }), failing('clock_wrong'));
  await verified(agent, proof, { oldest: NOW - 100 });
  await assert.rejects(verified(agent, proof, { oldest: NOW - 99 }), failing('bad_delegation'));
});

test('later only the window is checked again', () => {
  const window = { issuedAt: 1000, expiresAt: 2000 };
  assert.ok(isCurrent(window, 1000, 1500));
  assert.ok(!isCurrent(window, 1001, 1500));
  assert.ok(!isCurrent(window, 0, 2001 + CLOCK_SKEW_S));
  assert.ok(isCurrent({ ...window, expiresAt: 0 }, 0, Number.MAX_SAFE_INTEGER));
});

test('the signed bytes match docs/protocol-links.md', () => {
  const aid = nativeAid(new Uint8Array(32).fill(0x55));
  const input = Buffer.from(proofInput('called', aid, prover, verifying));
  const domain = 'svcd/link-proof/v1\0';
  assert.equal(input.subarray(0, domain.length).toString('latin1'), domain);
  const rest = ['02', '10'.repeat(32), '20'.repeat(32), '11'.repeat(32), '21'.repeat(32), `a0${'55'.repeat(32)}`];
  assert.equal(toHex(input.subarray(domain.length)), rest.join(''));
});
