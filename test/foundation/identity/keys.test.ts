import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inspect } from 'node:util';
import * as fc from 'fast-check';
import { toHex } from '../../../src/foundation/bytes.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import { aidOf } from '../../../src/foundation/identity/aid.ts';
import { isUsablePublicKey } from '../../../src/foundation/identity/ed25519.ts';
import {
  KeyPair,
  parsePrivateKey,
  parsePublicKey,
  parseSeed,
  VerifierKeys,
  verifySignature,
  verifySignatureAsync,
} from '../../../src/foundation/identity/keys.ts';
import {
  generateWalletKey,
  parseWalletKey,
  walletAid,
  walletPublicKey,
} from '../../../src/foundation/identity/wallet-keys.ts';
import { encryptionKeyId } from '../../../src/foundation/records/payloads.ts';
import { keyVectors } from '../../../tools/vectors/keys.ts';
import { countCrypto } from '../../support/count-calls.ts';
import { failsWith, hex, readVectors } from '../../support/vectors.ts';

interface Refused {
  readonly text: string;
  readonly why: string;
}
interface KeyVectors {
  readonly ed25519_signatures: readonly {
    seed_hex: string;
    public_key_hex: string;
    message_hex: string;
    signature_hex: string;
  }[];
  readonly private_keys: {
    readonly public_key_hex: string;
    readonly valid: readonly string[];
    readonly invalid: readonly Refused[];
  };
  readonly unusable_public_keys: readonly { hex: string; why: string }[];
  readonly wallet_keys: {
    readonly valid: readonly {
      private_key_hex: string;
      public_key_hex: string;
      ethereum_aid: string;
      paralism_aid: string;
    }[];
    readonly invalid: readonly Refused[];
  };
  readonly encryption_key_ids: readonly { public_key_hex: string; key_id_hex: string }[];
}
const vectors = readVectors('keys') as KeyVectors;

test('the vectors match the output of tools/make-vectors.ts', () => {
  assert.deepEqual(vectors, keyVectors());
});

test('RFC 8032: the first test of section 7.1', () => {
  const pair = parsePrivateKey('9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60');
  assert.equal(toHex(pair.publicKey), 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a');
  assert.equal(
    toHex(pair.sign(new Uint8Array())),
    'e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b',
  );
});

test('signatures are made and verified as in the vectors', async () => {
  for (const { seed_hex, public_key_hex, message_hex, signature_hex } of vectors.ed25519_signatures) {
    const [key, message, signature] = [hex(public_key_hex), hex(message_hex), hex(signature_hex)];
    assert.equal(toHex(parseSeed(seed_hex).publicKey), public_key_hex);
    assert.deepEqual(parseSeed(seed_hex).sign(message), signature);
    assert.ok(verifySignature(key, message, signature));
    assert.ok(await verifySignatureAsync(key, message, signature));
  }
});

test('a signature by an unusable key fits nothing', async () => {
  const message = Buffer.from('pay me');
  // For the point of order 1 this "signature" satisfies the equation with every message.
  const signature = Uint8Array.from({ length: 64 }, (_, index) => (index === 0 ? 1 : 0));
  for (const { hex: text, why } of vectors.unusable_public_keys) {
    const key = hex(text);
    assert.ok(!isUsablePublicKey(key), why);
    assert.ok(!verifySignature(key, message, signature), why);
    assert.ok(!(await verifySignatureAsync(key, message, signature)), why);
    assert.throws(() => parsePublicKey(text), failsWith('bad_key'), why);
  }
});

test('a key has one spelling: its number is below the prime of the field', () => {
  const key = (first: number, last: number) =>
    Uint8Array.from([first, ...Array.from({ length: 30 }, () => 0xff), last]);
  for (const [first, last, usable] of [
    [0xeb, 0x7f, true],
    [0xed, 0x7f, false],
    [0xee, 0x7f, false],
    [0xee, 0xff, false],
    [0xee, 0x7e, true],
    [0xeb, 0xff, true],
  ] as const)
    assert.equal(isUsablePublicKey(key(first, last)), usable, `${first} ${last}`);
});

test('a signature with s of the order of the curve added is refused', () => {
  const pair = KeyPair.generate();
  const signature = pair.sign(Buffer.from('x'));
  const order = 2n ** 252n + 27742317777372353535851937790883648493n;
  const s = BigInt(`0x${toHex(Uint8Array.from(signature.subarray(32)).reverse())}`) + order;
  const other = Uint8Array.from([
    ...signature.subarray(0, 32),
    ...Buffer.from(s.toString(16).padStart(64, '0'), 'hex').reverse(),
  ]);
  assert.ok(!verifySignature(pair.publicKey, Buffer.from('x'), other));
});

test('kept keys verify as others do, and are read once while there is room', async (t) => {
  const keys = new VerifierKeys();
  const [pair, other] = [KeyPair.generate(), KeyPair.generate()];
  const message = new Uint8Array([1, 2, 3]);
  const signature = pair.sign(message);
  const read = countCrypto(t, 'createPublicKey');
  for (let round = 0; round < 2; round++) {
    assert.equal(await keys.verify(pair.publicKey, message, signature), true);
    assert.equal(await keys.verify(pair.publicKey, new Uint8Array([1]), signature), false);
    assert.equal(await keys.verify(other.publicKey, message, signature), false);
    assert.equal(await keys.verify(pair.publicKey, message, signature.subarray(1)), false);
    assert.equal(await keys.verify(new Uint8Array(32), message, signature), false);
  }
  assert.equal(read(), 2);
});

test('private keys are read in every accepted form and in no other', () => {
  for (const text of vectors.private_keys.valid)
    assert.equal(toHex(parsePrivateKey(text).publicKey), vectors.private_keys.public_key_hex, text);
  for (const { text, why } of vectors.private_keys.invalid)
    assert.throws(
      () => parsePrivateKey(text),
      (error) => failsWith('bad_key')(error) && (text === '' || !inspect(error).includes(text)),
      why,
    );
  assert.throws(() => parseSeed(vectors.private_keys.valid.at(-2) ?? ''), failsWith('bad_key'));
});

test('public keys are read with and without 0x', () => {
  const { publicKey } = KeyPair.generate();
  assert.deepEqual(parsePublicKey(toHex(publicKey)), publicKey);
  assert.deepEqual(parsePublicKey(` 0x${toHex(publicKey).toUpperCase()} `), publicKey);
});

test('printing a key pair does not reveal its seed', () => {
  const pair = KeyPair.generate();
  const seed = toHex(pair.seed);
  assert.ok(!JSON.stringify({ pair }).includes(seed));
  assert.ok(
    !inspect(pair, { depth: 9, showHidden: true }).includes(
      String(pair.seed[0]).concat(', ', String(pair.seed[1]), ', ', String(pair.seed[2])),
    ),
  );
  pair.seed.fill(0);
  assert.equal(toHex(pair.seed), seed);
  assert.throws(() => KeyPair.fromSeed(new Uint8Array(31)), failsWith('bad_key'));
});

test('a key pair in JSON shows only its kind', () => {
  assert.equal(JSON.stringify({ pair: KeyPair.generate() }), '{"pair":"[KeyPair]"}');
});

test('wallet keys give the AIDs that wallets show', () => {
  for (const { private_key_hex, public_key_hex, ethereum_aid, paralism_aid } of vectors.wallet_keys.valid) {
    const key = walletPublicKey(parseWalletKey(`0x${private_key_hex}`));
    assert.equal(toHex(key), public_key_hex);
    assert.equal(walletAid('ethereum', key), ethereum_aid);
    assert.equal(walletAid('paralism', key), paralism_aid);
  }
  // Known to everyone: BIP 173's example, and the addresses of private key 1 and of Hardhat's first account.
  const [one, hardhat] = vectors.wallet_keys.valid;
  assert.equal(one?.paralism_aid, 'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4');
  assert.equal(one?.ethereum_aid, '0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf');
  assert.equal(hardhat?.ethereum_aid, '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266');
  for (const { text, why } of vectors.wallet_keys.invalid)
    assert.throws(() => parseWalletKey(text), failsWith('bad_key'), why);
  assert.throws(() => walletPublicKey(new Uint8Array(32)), failsWith('bad_key'));
  assert.throws(() => walletAid('ethereum', new Uint8Array(33)), failsWith('bad_key'));
  assert.notDeepEqual(generateWalletKey(), generateWalletKey());
});

test('encryption keys have the ids of the vectors', () => {
  for (const { public_key_hex, key_id_hex } of vectors.encryption_key_ids)
    assert.equal(toHex(encryptionKeyId(hex(public_key_hex))), key_id_hex);
});

test('no text does anything but bad_key', () => {
  const digits = fc.string({ unit: fc.constantFrom(...Array.from('0123456789abcdefABCDEFxX g')), maxLength: 140 });
  fc.assert(
    fc.property(fc.oneof(fc.string({ unit: 'binary' }), digits), (text) => {
      for (const parse of [parsePrivateKey, parseSeed, parsePublicKey, parseWalletKey]) {
        try {
          parse(text);
        } catch (error) {
          assert.ok(error instanceof SvcError && error.code === 'bad_key');
        }
      }
    }),
    { seed: 21, numRuns: 500 },
  );
});

test('random keys and signatures never verify, and never throw', async () => {
  const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length });
  await fc.assert(
    fc.asyncProperty(bytes(32), bytes(64), fc.uint8Array(), async (key, signature, message) => {
      assert.equal(verifySignature(key, message, signature), false);
      assert.equal(await verifySignatureAsync(key, message, signature), false);
    }),
    { seed: 22, numRuns: 300 },
  );
  const short = fc.uint8Array({ maxLength: 70 });
  fc.assert(
    fc.property(short, short, (key, signature) => assert.equal(verifySignature(key, key, signature), false)),
    { seed: 23, numRuns: 300 },
  );
});

test('random bytes are no secp256k1 public key, or have an AID in both schemes', () => {
  const bytes = fc
    .tuple(fc.constantFrom(2, 3, 4, 0), fc.uint8Array({ maxLength: 64 }))
    .map(([head, rest]) => Uint8Array.of(head, ...rest));
  fc.assert(
    fc.property(bytes, (key) => {
      try {
        assert.equal(aidOf('ethereum', new Uint8Array(20)).length, walletAid('ethereum', key).length);
        walletAid('paralism', key);
      } catch (error) {
        assert.ok(error instanceof SvcError && error.code === 'bad_key');
      }
    }),
    { seed: 24, numRuns: 300 },
  );
});
