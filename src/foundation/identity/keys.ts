/** Ed25519 keys (RFC 8032) on node:crypto, in the raw forms that our formats hold. */
import { createPrivateKey, createPublicKey, type KeyObject, randomBytes, sign, verify } from 'node:crypto';
import { equalBytes, fromHex, toHex } from '../bytes.ts';
import { SvcError } from '../errors.ts';
import { LruCache } from '../lru-cache.ts';
import { isUsablePublicKey, PUBLIC_KEY_BYTES, SEED_BYTES, SIGNATURE_BYTES, type Signer } from './ed25519.ts';

/** DER headers of RFC 8410: with the raw key behind them they are PKCS #8 and SPKI documents. */
const PKCS8_HEADER = Buffer.from('302e020100300506032b657004220420', 'hex');
const SPKI_HEADER = Buffer.from('302a300506032b6570032100', 'hex');

/** The 32 bytes of a public key on Curve25519 (RFC 8037 holds them bare; as DER they take four times as long). */
export function rawPublicKey(key: KeyObject): Uint8Array {
  const { x = '' } = key.export({ format: 'jwk' });
  return new Uint8Array(Buffer.from(x, 'base64url'));
}

/** A key pair that signs. The seed leaves it only through `seed`, for export and storage. */
export class KeyPair implements Signer {
  readonly publicKey: Uint8Array;
  readonly #seed: Uint8Array;
  readonly #privateKey: KeyObject;

  private constructor(seed: Uint8Array) {
    this.#seed = seed;
    this.#privateKey = createPrivateKey({ key: Buffer.concat([PKCS8_HEADER, seed]), format: 'der', type: 'pkcs8' });
    this.publicKey = rawPublicKey(createPublicKey(this.#privateKey));
  }

  static generate(): KeyPair {
    return new KeyPair(new Uint8Array(randomBytes(SEED_BYTES)));
  }

  /** @throws SvcError `bad_key` where the seed is not 32 bytes */
  static fromSeed(seed: Uint8Array): KeyPair {
    if (seed.length !== SEED_BYTES) throw new SvcError('bad_key');
    return new KeyPair(Uint8Array.from(seed));
  }

  /** A copy of the secret seed. */
  get seed(): Uint8Array {
    return Uint8Array.from(this.#seed);
  }

  /** The 64-byte signature of a message. */
  sign(message: Uint8Array): Uint8Array {
    return new Uint8Array(sign(null, message, this.#privateKey));
  }

  /** Keeps the seed out of logs and errors that print this object. */
  toJSON(): string {
    return '[KeyPair]';
  }
}

/** The key object of a raw public key that may verify a signature of this length; null where none can. */
function toVerifierKey(publicKey: Uint8Array, signature: Uint8Array): KeyObject | null {
  if (signature.length !== SIGNATURE_BYTES || !isUsablePublicKey(publicKey)) return null;
  return createPublicKey({ key: Buffer.concat([SPKI_HEADER, publicKey]), format: 'der', type: 'spki' });
}

/** True where `signature` is `publicKey`'s over `message`; false for malformed input too. */
export function verifySignature(publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
  const key = toVerifierKey(publicKey, signature);
  return key !== null && verify(null, message, key, signature);
}

/** As `verifySignature`, on a thread of the pool instead of this one. */
export function verifySignatureAsync(
  publicKey: Uint8Array,
  message: Uint8Array,
  signature: Uint8Array,
): Promise<boolean> {
  const key = toVerifierKey(publicKey, signature);
  return key === null ? Promise.resolve(false) : verifyWith(key, message, signature);
}

/**
 * Records, or letters, whose signatures this thread verifies in one turn of the event loop: the way to another thread takes
 * longer than one signature.
 */
export const MAX_VERIFICATIONS_PER_TURN = 2;

/** Key objects kept by `VerifierKeys`. */
const MAX_KEPT_KEYS = 1024;

/** Verifies as `verifySignatureAsync` does, for those who see the same few keys again and again: reading one costs half as much as using it. */
export class VerifierKeys {
  readonly #keys = new LruCache<string, KeyObject>({ maxEntries: MAX_KEPT_KEYS });

  verify(publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): Promise<boolean> {
    const key = this.#key(publicKey, signature);
    return key === null ? Promise.resolve(false) : verifyWith(key, message, signature);
  }

  /** As `verify`, on this thread: the way to another one and back costs nearly as much as the work. */
  verifySync(publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
    const key = this.#key(publicKey, signature);
    return key !== null && verify(null, message, key, signature);
  }

  #key(publicKey: Uint8Array, signature: Uint8Array): KeyObject | null {
    const name = toHex(publicKey);
    const key = this.#keys.get(name) ?? toVerifierKey(publicKey, signature);
    if (key === null || signature.length !== SIGNATURE_BYTES) return null;
    this.#keys.set(name, key);
    return key;
  }
}

function verifyWith(key: KeyObject, message: Uint8Array, signature: Uint8Array): Promise<boolean> {
  return new Promise((resolve) => {
    verify(null, message, key, signature, (error, valid) => resolve(error === null && valid));
  });
}

/**
 * Reads a private key of the API: a seed of 64 hex characters, or seed and public key of 128 where
 * the public half matches; `0x` may stand before it.
 * @throws SvcError `bad_key`; the text is never part of the error
 */
export function parsePrivateKey(hex: string): KeyPair {
  const bytes = fromHex(hex.trim());
  if (bytes === null || (bytes.length !== SEED_BYTES && bytes.length !== SEED_BYTES + PUBLIC_KEY_BYTES))
    throw new SvcError('bad_key');
  const pair = KeyPair.fromSeed(bytes.subarray(0, SEED_BYTES));
  if (bytes.length > SEED_BYTES && !equalBytes(pair.publicKey, bytes.subarray(SEED_BYTES)))
    throw new SvcError('bad_key', { message: 'The public half of this key does not belong to its private half.' });
  return pair;
}

/**
 * Reads a 32-byte seed of 64 hex characters (`*_seed_hex`); `0x` may stand before it.
 * @throws SvcError `bad_key`; the text is never part of the error
 */
export function parseSeed(hex: string): KeyPair {
  const bytes = fromHex(hex.trim());
  if (bytes === null || bytes.length !== SEED_BYTES)
    throw new SvcError('bad_key', { message: 'A seed has 32 bytes, 64 hex characters.' });
  return KeyPair.fromSeed(bytes);
}

/**
 * Reads a 32-byte Ed25519 public key of 64 hex characters; `0x` may stand before it.
 * @throws SvcError `bad_key`
 */
export function parsePublicKey(hex: string): Uint8Array {
  const bytes = fromHex(hex.trim());
  if (bytes === null || !isUsablePublicKey(bytes))
    throw new SvcError('bad_key', { message: 'A public key is an Ed25519 key of 32 bytes, 64 hex characters.' });
  return bytes;
}
