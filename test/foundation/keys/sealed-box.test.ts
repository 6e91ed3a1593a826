/** Sealed boxes, judged by another implementation of HPKE. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { AEAD_AES_256_GCM, CipherSuite, KDF_HKDF_SHA256, KEM_DHKEM_X25519_HKDF_SHA256 } from 'hpke';
import { BoxOpener, sealingKeyOf, sealTo } from '../../../src/foundation/keys/sealed-box.ts';

const judge = new CipherSuite(KEM_DHKEM_X25519_HKDF_SHA256, KDF_HKDF_SHA256, AEAD_AES_256_GCM);
const CONTEXT = { info: new TextEncoder().encode('what for'), aad: new Uint8Array(50).fill(3) };
const LENGTHS = [0, 1, 255, 256, 35_000];

test("each implementation decrypts the other's boxes", async () => {
  const key = sealingKeyOf(new Uint8Array(randomBytes(32)));
  const opener = new BoxOpener(key);
  const publicKey = await judge.DeserializePublicKey(key.publicKey);
  const pair = { publicKey, privateKey: await judge.DeserializePrivateKey(key.privateKey) };
  for (const length of LENGTHS) {
    const plain = new Uint8Array(randomBytes(length));
    const ours = sealTo(key.publicKey, plain, CONTEXT);
    assert.deepEqual(new Uint8Array(await judge.Open(pair, ours.encapsulated, ours.ciphertext, CONTEXT)), plain);
    const theirs = await judge.Seal(publicKey, plain, CONTEXT);
    const box = { encapsulated: theirs.encapsulatedSecret, ciphertext: theirs.ciphertext };
    assert.deepEqual(opener.open(box, CONTEXT), plain);
  }
});

test('a box opens for its key and its context only, and unchanged', async () => {
  const opener = new BoxOpener(sealingKeyOf(new Uint8Array(32).fill(1)));
  const other = new BoxOpener(sealingKeyOf(new Uint8Array(32).fill(2)));
  const box = sealTo(opener.publicKey, new Uint8Array(100), CONTEXT);
  const changed = (bytes: Uint8Array, at: number): Uint8Array => bytes.with(at, (bytes[at] ?? 0) ^ 1);
  assert.throws(() => other.open(box, CONTEXT));
  assert.throws(() => opener.open(box, { ...CONTEXT, info: new Uint8Array() }));
  assert.throws(() => opener.open(box, { ...CONTEXT, aad: new Uint8Array() }));
  for (const at of [0, 99, 100, 115])
    assert.throws(() => opener.open({ ...box, ciphertext: changed(box.ciphertext, at) }, CONTEXT));
  assert.throws(() => opener.open({ ...box, encapsulated: changed(box.encapsulated, 0) }, CONTEXT));
  assert.throws(() => opener.open({ ...box, ciphertext: box.ciphertext.subarray(0, 15) }, CONTEXT));
});

test('keys of small order, and of another length, are none', async () => {
  for (const key of [new Uint8Array(32), new Uint8Array(32).fill(1, 0, 1), new Uint8Array(31), new Uint8Array(33)]) {
    assert.throws(() => sealTo(key, new Uint8Array(1), CONTEXT));
    const opener = new BoxOpener(sealingKeyOf(new Uint8Array(32).fill(1)));
    assert.throws(() => opener.open({ encapsulated: key, ciphertext: new Uint8Array(16) }, CONTEXT));
  }
});
