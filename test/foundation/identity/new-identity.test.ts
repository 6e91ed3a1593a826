import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nativeAid } from '../../../src/foundation/identity/aid.ts';
import { verifyDelegation } from '../../../src/foundation/identity/delegation-verifier.ts';
import { KeyPair } from '../../../src/foundation/identity/keys.ts';
import { makeNativeIdentity } from '../../../src/foundation/identity/native-identity.ts';
import { makeWalletIdentity } from '../../../src/foundation/identity/wallet-identity.ts';
import { walletAid, walletPublicKey } from '../../../src/foundation/identity/wallet-keys.ts';
import { failsWith } from '../../support/vectors.ts';

const NOW = 1_760_000_000;

test('a native identity is that of its master key, and its operational key may act', () => {
  const master = KeyPair.generate();
  const made = makeNativeIdentity(NOW, master, NOW + 9);
  assert.equal(made.aid, nativeAid(master.publicKey));
  assert.equal(made.master, master);
  assert.equal(made.delegation.agent, made.aid);
  assert.deepEqual(made.delegation.operationalKey, made.operational.publicKey);
  assert.deepEqual([made.delegation.issuedAt, made.delegation.expiresAt], [NOW, NOW + 9]);
  verifyDelegation(made.delegation, NOW);
  assert.equal(makeNativeIdentity(NOW).delegation.expiresAt, 0);
  assert.throws(() => makeNativeIdentity(NOW, master, NOW), failsWith('bad_delegation'));
});

test('a wallet identity is that of its key, in either scheme', () => {
  for (const scheme of ['ethereum', 'paralism'] as const) {
    const made = makeWalletIdentity(scheme, NOW);
    assert.equal(made.aid, walletAid(scheme, walletPublicKey(made.walletKey)));
    assert.equal(made.delegation.agent, made.aid);
    assert.deepEqual(made.delegation.operationalKey, made.operational.publicKey);
    assert.deepEqual([made.delegation.issuedAt, made.delegation.expiresAt], [NOW, 0]);
    verifyDelegation(made.delegation, NOW);
    assert.equal(makeWalletIdentity(scheme, NOW, made.walletKey, NOW + 9).aid, made.aid);
  }
});
