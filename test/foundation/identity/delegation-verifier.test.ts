import assert from 'node:assert/strict';
import { test } from 'node:test';
import { issueDelegation } from '../../../src/foundation/identity/delegation.ts';
import { DelegationVerifier } from '../../../src/foundation/identity/delegation-verifier.ts';
import { KeyPair } from '../../../src/foundation/identity/keys.ts';
import { signDelegation } from '../../../src/foundation/identity/wallet.ts';
import { generateWalletKey, walletAid, walletPublicKey } from '../../../src/foundation/identity/wallet-keys.ts';
import { countCrypto } from '../../support/count-calls.ts';
import { failsWith } from '../../support/vectors.ts';

const NOW = 1_760_000_000;
const HOUR_S = 3600;

function newProof() {
  return issueDelegation(KeyPair.generate(), KeyPair.generate().publicKey, NOW, NOW + HOUR_S);
}

function walletProof() {
  const key = generateWalletKey();
  const agent = walletAid('ethereum', walletPublicKey(key));
  const operationalKey = KeyPair.generate().publicKey;
  return signDelegation('ethereum', key, { agent, operationalKey, scope: 1, issuedAt: NOW, expiresAt: NOW + HOUR_S });
}

test('rejects a proof after its end', async () => {
  const verifier = new DelegationVerifier();
  for (const proof of [newProof(), walletProof()]) {
    verifier.verify(proof, NOW);
    verifier.verify(proof, NOW + HOUR_S);
    assert.throws(() => verifier.verify(proof, NOW + HOUR_S + 61), failsWith('bad_delegation'));
    await assert.rejects(verifier.verifyAsync(proof, NOW + HOUR_S + 61), failsWith('bad_delegation'));
    assert.throws(() => verifier.verify(proof, NOW - 61), failsWith('bad_delegation'));
  }
});

test('a good proof does not vouch for a forged one', async () => {
  const verifier = new DelegationVerifier();
  for (const proof of [newProof(), walletProof()]) {
    verifier.verify(proof, NOW);
    const signature = proof.signature.map((byte, index) => (index === 3 ? byte ^ 1 : byte));
    for (const forged of [
      { ...proof, signature },
      { ...proof, operationalKey: KeyPair.generate().publicKey },
    ]) {
      assert.throws(() => verifier.verify(forged, NOW), failsWith('bad_delegation'));
      await assert.rejects(verifier.verifyAsync(forged, NOW), failsWith('bad_delegation'));
      // Not remembered as good either.
      assert.throws(() => verifier.verify(forged, NOW), failsWith('bad_delegation'));
    }
  }
});

test('distinguishes many concurrent proofs', async () => {
  const verifier = new DelegationVerifier();
  const good = [newProof(), walletProof(), newProof(), walletProof()];
  const bad = good.map((proof) => ({ ...proof, expiresAt: proof.expiresAt + 1 }));
  const all = [...good, ...bad, ...good];
  const results = await Promise.allSettled(all.map((proof) => verifier.verifyAsync(proof, NOW)));
  assert.deepEqual(
    results.map((result) => result.status === 'fulfilled'),
    all.map((proof) => good.includes(proof)),
  );
});

test('a bad wallet proof does not delay the following ones', async () => {
  const verifier = new DelegationVerifier();
  const proof = walletProof();
  const bad = verifier.verifyAsync({ ...proof, signature: new Uint8Array(65) }, NOW);
  await Promise.all([assert.rejects(bad, failsWith('bad_delegation')), verifier.verifyAsync(proof, NOW)]);
});

test('a good proof is verified once, until it is forgotten', async (t) => {
  const verified = countCrypto(t, 'verify');
  const verifier = new DelegationVerifier({ maxEntries: 2 });
  const [first, second, third] = [newProof(), newProof(), newProof()];
  for (const proof of [first, first, second, first]) verifier.verify(proof, NOW);
  await verifier.verifyAsync(first, NOW);
  assert.equal(verified(), 2);
  verifier.verify(third, NOW);
  verifier.verify(first, NOW);
  assert.equal(verified(), 3);
  verifier.verify(second, NOW);
  assert.equal(verified(), 4);
});

test('verifies concurrent copies of a proof once', async (t) => {
  const verified = countCrypto(t, 'verify');
  const verifier = new DelegationVerifier();
  const proof = newProof();
  await Promise.all([1, 2, 3].map(() => verifier.verifyAsync(proof, NOW)));
  await verifier.verifyAsync(proof, NOW);
  assert.equal(verified(), 1);
});

test('wallet proofs let others have their turn between them', async () => {
  const verifier = new DelegationVerifier();
  let turns = 0;
  const turn = () => {
    turns += 1;
    if (turns < 100) setImmediate(turn);
  };
  setImmediate(turn);
  await Promise.all([walletProof(), walletProof(), walletProof()].map((proof) => verifier.verifyAsync(proof, NOW)));
  assert.ok(turns >= 3, `${turns}`);
});
