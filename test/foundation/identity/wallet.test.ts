import assert from 'node:assert/strict';
import { test } from 'node:test';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import * as fc from 'fast-check';
import { toHex } from '../../../src/foundation/bytes.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import { type Aid, nativeAid, parseAid } from '../../../src/foundation/identity/aid.ts';
import { decodeDelegation, encodeDelegation } from '../../../src/foundation/identity/delegation.ts';
import { verifyDelegation } from '../../../src/foundation/identity/delegation-verifier.ts';
import type { Grant } from '../../../src/foundation/identity/grant.ts';
import { KeyPair } from '../../../src/foundation/identity/keys.ts';
import {
  parseWalletText,
  signDelegation,
  verifyWalletDelegation,
  type WalletDelegation,
  walletDelegation,
  walletText,
} from '../../../src/foundation/identity/wallet.ts';
import { generateWalletKey, walletAid, walletPublicKey } from '../../../src/foundation/identity/wallet-keys.ts';
import { failsWith, hex, readVectors } from '../../support/vectors.ts';

interface WalletVectors {
  readonly signatures: readonly {
    scheme: 'ethereum' | 'paralism';
    made_by: string;
    private_key_hex: string;
    public_key_hex: string;
    operational_public_key_hex: string;
    agent: string;
    issued_at: number;
    expires_at: number;
    message: string;
    signature_hex: string;
  }[];
}
const { signatures } = readVectors('wallet') as WalletVectors;
const NOW = 1_760_000_000;

function grantFor(agent: Aid, changes: Partial<Grant> = {}): Grant {
  const operationalKey = KeyPair.fromSeed(new Uint8Array(32).fill(7)).publicKey;
  return { agent, operationalKey, scope: 1, issuedAt: NOW, expiresAt: 0, ...changes };
}

test('signatures of independent wallet libraries make proofs', () => {
  for (const s of signatures) {
    const grant: Grant = {
      agent: parseAid(s.agent),
      operationalKey: hex(s.operational_public_key_hex),
      scope: 1,
      issuedAt: s.issued_at,
      expiresAt: s.expires_at,
    };
    assert.equal(walletText(grant), s.message, s.made_by);
    assert.equal(walletAid(s.scheme, hex(s.public_key_hex)), s.agent);
    const proof = walletDelegation(grant, hex(s.signature_hex));
    verifyDelegation(decodeDelegation(encodeDelegation(proof)), s.issued_at);
    assert.deepEqual(signDelegation(s.scheme, hex(s.private_key_hex), grant), proof, s.made_by);
  }
  assert.equal(new Set(signatures.map((s) => s.made_by)).size, 4);
});

test('every spelling of a signature gives the same proof', () => {
  const key = generateWalletKey();
  const publicKey = walletPublicKey(key);
  const ethereum = signDelegation('ethereum', key, grantFor(walletAid('ethereum', publicKey)));
  const v = ethereum.signature[64] ?? 0;
  for (const other of [v, v - 27])
    assert.deepEqual(
      walletDelegation(ethereum, Uint8Array.from([...ethereum.signature.subarray(0, 64), other])),
      ethereum,
    );
  const paralism = signDelegation('paralism', key, grantFor(walletAid('paralism', publicKey)));
  const header = paralism.signature[0] ?? 0;
  for (const other of [header, header + 4, header + 8])
    assert.deepEqual(walletDelegation(paralism, Uint8Array.from([other, ...paralism.signature.subarray(1)])), paralism);
});

test('other recovery bytes and lengths are refused', () => {
  const key = generateWalletKey();
  const publicKey = walletPublicKey(key);
  const ethereum = signDelegation('ethereum', key, grantFor(walletAid('ethereum', publicKey)));
  const paralism = signDelegation('paralism', key, grantFor(walletAid('paralism', publicKey)));
  const rs = [...ethereum.signature.subarray(0, 64)];
  const refused = failsWith('bad_delegation');
  for (let byte = 0; byte < 256; byte++) {
    const v = ethereum.signature[64] ?? 0;
    if (byte !== v && byte !== v - 27)
      assert.throws(() => walletDelegation(ethereum, Uint8Array.from([...rs, byte])), refused, `v ${byte}`);
    const h = paralism.signature[0] ?? 0;
    if (byte !== h && byte !== h + 4 && byte !== h + 8)
      assert.throws(
        () => walletDelegation(paralism, Uint8Array.from([byte, ...paralism.signature.subarray(1)])),
        refused,
      );
  }
  for (const length of [0, 64, 66])
    assert.throws(() => walletDelegation(ethereum, new Uint8Array(length)), refused, `${length} bytes`);
});

/** The reason of a rejection, or null. */
function refusalOf(work: () => unknown): unknown {
  try {
    work();
    return null;
  } catch (error) {
    assert.ok(error instanceof SvcError && error.code === 'bad_delegation');
    return error.details?.['reason'];
  }
}

/** An Ethereum proof and a Paralism proof of one key. */
function bothProofs(): readonly WalletDelegation[] {
  const key = generateWalletKey();
  const publicKey = walletPublicKey(key);
  return [
    signDelegation('ethereum', key, grantFor(walletAid('ethereum', publicKey))),
    signDelegation('paralism', key, grantFor(walletAid('paralism', publicKey))),
  ];
}

test('the recovery bytes that wallets use are known, and no others', () => {
  const [ethereum, paralism] = bothProofs();
  assert.ok(ethereum !== undefined && paralism !== undefined);
  const unknown = 'the signature has an unknown recovery byte';
  const known: [number[], number[]] = [[], []];
  for (let byte = 0; byte < 256; byte++) {
    const atEnd = Uint8Array.from([...ethereum.signature.subarray(0, 64), byte]);
    if (refusalOf(() => walletDelegation(ethereum, atEnd)) !== unknown) known[0].push(byte);
    const before = Uint8Array.from([byte, ...paralism.signature.subarray(1)]);
    if (refusalOf(() => walletDelegation(paralism, before)) !== unknown) known[1].push(byte);
  }
  assert.deepEqual(known, [
    [0, 1, 27, 28],
    [31, 32, 35, 36, 39, 40],
  ]);
});

test('a proof has one signature: not that with n − s, not another length, and none of zeros', () => {
  const order = secp256k1.Point.Fn.ORDER;
  for (const proof of bothProofs()) {
    const atEnd = proof.agent.startsWith('0x');
    const rs = atEnd ? proof.signature.subarray(0, -1) : proof.signature.subarray(1);
    const byte = (atEnd ? proof.signature.at(-1) : proof.signature[0]) ?? 0;
    const spelled = (text: Uint8Array, recovery: number) =>
      Uint8Array.from(atEnd ? [...text, recovery] : [recovery, ...text]);
    assert.equal(
      refusalOf(() => verifyWalletDelegation(proof)),
      null,
    );
    const s = BigInt(`0x${toHex(rs.subarray(32))}`);
    const high = Uint8Array.from([...rs.subarray(0, 32), ...hex((order - s).toString(16).padStart(64, '0'))]);
    const [even, odd] = atEnd ? [27, 28] : [31, 32];
    const other = byte === even ? odd : even;
    for (const [signature, reason] of [
      [spelled(high, other), 'the signature has a high s'],
      [spelled(new Uint8Array(64), byte), 'no key can be recovered from the signature'],
      [proof.signature.subarray(1), 'a wallet signature has 65 bytes'],
      [Uint8Array.from([...proof.signature, 0]), 'a wallet signature has 65 bytes'],
      [spelled(rs, byte - (atEnd ? 27 : -4)), 'the signature is not in canonical form'],
    ] as const)
      assert.equal(
        refusalOf(() => verifyWalletDelegation({ ...proof, signature })),
        reason,
      );
  }
});

test('a proof states what its wallet signed', () => {
  const [proof, other] = bothProofs();
  assert.ok(proof !== undefined && other !== undefined);
  const { text: _, ...without } = proof;
  assert.equal(
    refusalOf(() => verifyWalletDelegation(without)),
    'the signed text is not a delegation',
  );
  for (const [change, reason] of [
    [{ text: 'anything' }, 'the signed text is not a delegation'],
    [{ text: other.text }, 'the signed text contains another agent'],
    [{ operationalKey: KeyPair.generate().publicKey }, 'the signed text contains another key'],
    [{ scope: 2 }, 'the signed text contains another scope or time'],
    [{ issuedAt: NOW + 1 }, 'the signed text contains another scope or time'],
    [{ expiresAt: NOW + 1 }, 'the signed text contains another scope or time'],
    [{ agent: nativeAid(KeyPair.generate().publicKey) }, 'the agent is not a wallet'],
  ] as const)
    assert.equal(
      refusalOf(() => verifyWalletDelegation({ ...proof, ...change })),
      reason,
    );
});

test('a wallet signs for its own agent only, and native agents have none', () => {
  const key = generateWalletKey();
  const others = walletAid('ethereum', walletPublicKey(generateWalletKey()));
  const native = nativeAid(KeyPair.generate().publicKey);
  assert.throws(() => signDelegation('ethereum', key, grantFor(others)), failsWith('bad_delegation'));
  assert.throws(
    () => signDelegation('paralism', key, grantFor(walletAid('ethereum', walletPublicKey(key)))),
    failsWith('bad_delegation'),
  );
  assert.throws(() => signDelegation('ethereum', new Uint8Array(32), grantFor(others)), failsWith('bad_key'));
  assert.throws(() => walletDelegation(grantFor(native), new Uint8Array(65)), failsWith('bad_delegation'));
  assert.throws(
    () => verifyWalletDelegation({ ...grantFor(others), signature: new Uint8Array(65) }),
    failsWith('bad_delegation'),
  );
});

test('a signature of one wallet fits no other grant', () => {
  const key = generateWalletKey();
  const agent = walletAid('ethereum', walletPublicKey(key));
  const { signature } = signDelegation('ethereum', key, grantFor(agent));
  for (const changes of [
    { issuedAt: NOW + 1 },
    { expiresAt: NOW + 9 },
    { operationalKey: KeyPair.generate().publicKey },
  ])
    assert.throws(() => walletDelegation(grantFor(agent, changes), signature), failsWith('bad_delegation'));
  assert.throws(() => walletText(grantFor(agent, { scope: 0 })), failsWith('bad_delegation'));
});

test('a wallet text reads back as its grant, and no other text reads as one', () => {
  const key = fc.uint8Array({ minLength: 32, maxLength: 32 }).map((seed) => KeyPair.fromSeed(seed).publicKey);
  const time = fc.nat(4_000_000_000);
  const agents = signatures.map((s) => parseAid(s.agent));
  const grant = fc
    .record({ agent: fc.constantFrom(...agents), operationalKey: key, issuedAt: time, life: fc.nat(1_000_000) })
    .map(({ life, ...g }) => ({ ...g, scope: 1, expiresAt: life === 0 ? 0 : g.issuedAt + life }));
  fc.assert(
    fc.property(grant, fc.nat(), fc.string({ unit: 'binary', maxLength: 2 }), fc.nat(2), (g, position, put, cut) => {
      const text = walletText(g);
      assert.deepEqual(parseWalletText(text), g);
      const at = position % (text.length + 1);
      const other = text.slice(0, at) + put + text.slice(at + cut);
      const read = parseWalletText(other);
      assert.equal(read === null ? null : walletText(read), read === null ? null : other);
    }),
    { seed: 41, numRuns: 300 },
  );
});

test('describes the permission in plain words', () => {
  const agent = walletAid('ethereum', walletPublicKey(new Uint8Array(32).fill(1)));
  const grant = grantFor(agent);
  const lines = walletText(grant).split('\n');
  assert.deepEqual(lines, [
    'svcd delegation v1',
    'Allow the key below to act for my agent.',
    '',
    `op_key: ${toHex(grant.operationalKey)}`,
    'agent: 0x1a642f0E3c3aF545E7AcBD38b07251B3990914F1',
    'scope: 1',
    'issued_at: 1760000000',
    'expires_at: 0',
  ]);
});
