import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { toHex } from '../../../src/foundation/bytes.ts';
import { type CborValue, encodeCbor } from '../../../src/foundation/cbor.ts';
import { MAX_UNIX_S } from '../../../src/foundation/domain/time.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import { aidToBytes, parseAid } from '../../../src/foundation/identity/aid.ts';
import {
  type Delegation,
  decodeDelegation,
  delegates,
  delegationSigningInput,
  encodeDelegation,
  issueDelegation,
  MAX_DELEGATION_BYTES,
  selfDelegation,
} from '../../../src/foundation/identity/delegation.ts';
import {
  DelegationVerifier,
  verifyDelegation,
  verifyDelegationSignature,
} from '../../../src/foundation/identity/delegation-verifier.ts';
import { scopeOf } from '../../../src/foundation/identity/grant.ts';
import { KeyPair, parseSeed } from '../../../src/foundation/identity/keys.ts';
import { delegationVectors } from '../../../tools/vectors/delegation.ts';
import { failsWith, hex, readVectors } from '../../support/vectors.ts';

interface DelegationVectors {
  readonly now: number;
  readonly master_seed_hex: string;
  readonly operational_seed_hex: string;
  readonly valid: readonly {
    name: string;
    agent: string;
    operational_public_key_hex: string;
    scope: number;
    issued_at: number;
    expires_at: number;
    signing_input_hex?: string;
    text?: string;
    signature_hex: string;
    proof_hex: string;
  }[];
  readonly windows: readonly { proof_hex: string; now: number; valid: boolean }[];
  readonly invalid: readonly { why: string; proof_hex: string }[];
}
const vectors = readVectors('delegation') as DelegationVectors;
const NOW = vectors.now;

test('the vectors match the output of tools/make-vectors.ts', () => {
  assert.deepEqual(vectors, delegationVectors());
});

test('the proofs of the vectors are read, verified and written again', () => {
  for (const v of vectors.valid) {
    const d = decodeDelegation(hex(v.proof_hex));
    verifyDelegation(d, NOW);
    assert.equal(d.agent, parseAid(v.agent));
    assert.equal(toHex(d.operationalKey), v.operational_public_key_hex);
    assert.deepEqual([d.scope, d.issuedAt, d.expiresAt], [v.scope, v.issued_at, v.expires_at]);
    assert.equal(d.text, v.text);
    assert.equal(toHex(d.signature), v.signature_hex);
    if (v.signing_input_hex !== undefined) assert.equal(toHex(delegationSigningInput(d)), v.signing_input_hex);
    assert.equal(toHex(encodeDelegation(d)), v.proof_hex);
  }
});

test('a native proof is issued as in the vectors', () => {
  const operational = parseSeed(vectors.operational_seed_hex);
  const d = issueDelegation(parseSeed(vectors.master_seed_hex), operational.publicKey, NOW);
  assert.equal(toHex(encodeDelegation(d)), vectors.valid[0]?.proof_hex);
  assert.ok(delegates(d, operational.publicKey));
  assert.ok(!delegates(d, KeyPair.generate().publicKey));
});

test('rejects proofs that are invalid at any time', () => {
  for (const { why, proof_hex } of vectors.invalid)
    assert.throws(() => verifyDelegation(decodeDelegation(hex(proof_hex)), NOW + 1), failsWith('bad_delegation'), why);
});

test('applies the signed time window, with a tolerance of a minute', () => {
  for (const { proof_hex, now, valid } of vectors.windows) {
    const d = decodeDelegation(hex(proof_hex));
    if (valid) verifyDelegation(d, now);
    else assert.throws(() => verifyDelegation(d, now), failsWith('bad_delegation'));
  }
});

test('proofs that make no sense are not issued', () => {
  const [master, key] = [KeyPair.generate(), KeyPair.generate().publicKey];
  const issues: readonly [Uint8Array, number, number][] = [
    [key, -1, 0],
    [key, 1.5, 0],
    [key, MAX_UNIX_S + 1, 0],
    [key, 10, 10],
    [key, 10, 9],
    [key.subarray(1), 10, 0],
    [new Uint8Array(32), 10, 0],
  ];
  for (const [operational, issuedAt, expiresAt] of issues)
    assert.throws(() => issueDelegation(master, operational, issuedAt, expiresAt), failsWith('bad_delegation'));
});

test('a scope of 0, or none, means network operations', () => {
  assert.deepEqual([scopeOf(undefined), scopeOf(0), scopeOf(1)], [1, 1, 1]);
  for (const scope of [2, -1, 1.5]) assert.throws(() => scopeOf(scope), failsWith('bad_delegation'));
});

test('members that were put together by hand are verified as strictly as bytes', () => {
  const d = issueDelegation(KeyPair.generate(), KeyPair.generate().publicKey, NOW);
  verifyDelegation(d, NOW);
  const forgeries = [
    { ...d, scope: 2 },
    { ...d, issuedAt: NOW - 1 },
    { ...d, text: 'x' },
    { ...d, operationalKey: KeyPair.generate().publicKey },
    { ...d, agent: parseAid('0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed') },
    { ...d, signature: new Uint8Array(64) },
  ];
  for (const forgery of forgeries) assert.throws(() => verifyDelegation(forgery, NOW), failsWith('bad_delegation'));
});

test('a node delegates to itself without expiry', () => {
  const node = KeyPair.generate();
  const d = selfDelegation(node);
  verifyDelegation(d, 0);
  verifyDelegation(d, MAX_UNIX_S);
  assert.ok(delegates(d, node.publicKey));
});

test('random and damaged proofs are refused with bad_delegation; none verifies by accident', () => {
  const proofs = vectors.valid.map((v) => hex(v.proof_hex));
  const damaged = fc
    .tuple(
      fc.constantFrom(...proofs),
      fc.array(fc.tuple(fc.nat(), fc.integer({ min: 1, max: 255 })), { minLength: 1, maxLength: 3 }),
    )
    .map(([proof, changes]) => {
      const bytes = Uint8Array.from(proof);
      for (const [at, change] of changes) bytes[at % bytes.length] = (bytes[at % bytes.length] ?? 0) ^ change;
      return bytes;
    })
    .filter((bytes) => !proofs.some((proof) => Buffer.compare(proof, bytes) === 0));
  const cut = fc.tuple(fc.constantFrom(...proofs), fc.nat()).map(([proof, at]) => proof.subarray(0, at % proof.length));
  fc.assert(
    fc.property(fc.oneof({ weight: 5, arbitrary: damaged }, cut, fc.uint8Array({ maxLength: 400 })), (bytes) => {
      assert.throws(
        () => verifyDelegation(decodeDelegation(bytes), NOW + 1),
        (error) => error instanceof SvcError && error.code === 'bad_delegation',
      );
    }),
    { seed: 31, numRuns: 3000 },
  );
});

test('a proof is read where every member has its form, and no further', () => {
  const [native, wallet] = vectors.valid
    .map((v) => decodeDelegation(hex(v.proof_hex)))
    .sort((a, b) => a.signature.length - b.signature.length);
  assert.ok(native !== undefined && wallet?.text !== undefined);
  const members = (d: Delegation) => {
    const { agent: _, operationalKey: k, scope: s, issuedAt: i, expiresAt: e, signature: g, text: t } = d;
    return { v: 1, a: aidToBytes(d.agent), k, s, i, e, g, t };
  };
  const refused = (d: Delegation, change: { readonly [key: string]: CborValue | undefined }, reason: string): void => {
    const proof = encodeCbor({ ...members(d), ...change });
    assert.throws(
      () => decodeDelegation(proof),
      { code: 'bad_delegation', details: { reason } },
      JSON.stringify(change),
    );
  };
  assert.deepEqual(decodeDelegation(encodeCbor(members(native))), native);
  for (const change of [{ v: 2 }, { v: undefined }, { x: 1 }]) refused(native, change, 'unknown format');
  for (const change of [{ a: 'aid1' }, { k: 1 }, { g: 'x' }, { s: 'x' }, { i: -1 }, { i: 'x' }, { e: 1.5 }, { t: 5 }])
    refused(native, change, 'malformed field');
  refused(native, { s: 2 }, 'unknown scope');
  refused(native, { e: native.issuedAt }, 'expires_at is not after issued_at');
  for (const g of [native.signature.subarray(1), wallet.signature]) refused(native, { g }, 'malformed field');
  refused(wallet, { g: native.signature }, 'malformed field');
  refused(native, { t: wallet.text }, 'a wallet must sign a text, and a native agent must not');
  refused(wallet, { t: undefined }, 'a wallet must sign a text, and a native agent must not');
});

test('rejects nonsense in spite of a valid signature', async () => {
  const master = KeyPair.generate();
  const sensible = issueDelegation(master, KeyPair.generate().publicKey, NOW);
  for (const change of [{ scope: 2 }, { expiresAt: NOW }, { operationalKey: new Uint8Array(32) }]) {
    const grant = { ...sensible, ...change };
    const signed = { ...grant, signature: master.sign(delegationSigningInput(grant)) };
    assert.throws(() => verifyDelegationSignature(signed), failsWith('bad_delegation'));
    await assert.rejects(new DelegationVerifier().verifyAsync(signed, NOW), failsWith('bad_delegation'));
  }
});

test('on another thread the same proofs are good', async () => {
  for (const v of vectors.valid) {
    const proof = decodeDelegation(hex(v.proof_hex));
    const verifier = new DelegationVerifier();
    await verifier.verifyAsync(proof, proof.issuedAt);
    const forged = { ...proof, signature: proof.signature.map((byte, i) => (i === 3 ? byte ^ 1 : byte)) };
    await assert.rejects(verifier.verifyAsync(forged, proof.issuedAt), failsWith('bad_delegation'), v.name);
  }
});

test('a proof has a largest size', () => {
  assert.equal(MAX_DELEGATION_BYTES, 1024);
  assert.throws(() => decodeDelegation(new Uint8Array(MAX_DELEGATION_BYTES + 1)), failsWith('bad_delegation'));
});

test('a parsed proof does not change with its bytes or members', () => {
  const master = KeyPair.generate();
  const issued = issueDelegation(master, KeyPair.generate().publicKey, NOW);
  const bytes = Uint8Array.from(encodeDelegation(issued));
  const read = decodeDelegation(bytes);
  assert.equal(decodeDelegation(Uint8Array.from(bytes)), read, 'read once');
  const other = { ...read, issuedAt: read.issuedAt + 1 };
  assert.notDeepEqual(encodeDelegation(other), encodeDelegation(read));
  const damaged = Uint8Array.from(bytes);
  damaged[damaged.length - 1] = 0xff;
  assert.throws(() => decodeDelegation(damaged));
  bytes.fill(0);
  assert.deepEqual(encodeDelegation(read), encodeDelegation(issued), 'it shares no memory with the sender');
  verifyDelegation(read, NOW);
});
