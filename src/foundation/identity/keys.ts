/** Ed25519 keys (RFC 8032) with node:crypto, in the raw format of our protocols. */
import { createPrivateKey, createPublicKey, type KeyObject, randomBytes, sign, verify } from 'node:crypto';
import { equalBytes, fromHex, toHex } from '../bytes.ts';
import { SvcError } from '../errors.ts';
import { LruCache } from '../lru-cache.ts';
import { isUsablePublicKey, PUBLIC_KEY_BYTES, SEED_BYTES, SIGNATURE_BYTES, type Signer } from './ed25519.ts';

/** DER headers (RFC 8410). Followed by the raw key they form PKCS #8 and SPKI documents. */
const PKCS8_HEADER = Buffer.from('302e020100300506032b657004220420', 'hex');
const SPKI_HEADER = Buffer.from('302a300506032b6570032100', 'hex');

/** The raw 32 bytes of a Curve25519 public key. The JWK export (RFC 8037) is four times as fast as the DER export. */
export function rawPublicKey(key: KeyObject): Uint8Array {
  const { x = '' } = key.export({ format: 'jwk' });
  return new Uint8Array(Buffer.from(x, 'base64url'));
}

/** A key pair for signing. The seed is available only through `seed`, for export and storage. */
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

  /** @throws SvcError `bad_key` if the seed does not have 32 bytes */
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

  /** Hides the seed in logs and errors that print this object. */
  toJSON(): string {
    return '[KeyPair]';
  }
}

/** Creates the key object to verify a signature of this length; null if the key or the length is invalid. */
function toVerifierKey(publicKey: Uint8Array, signature: Uint8Array): KeyObject | null {
  if (signature.length !== SIGNATURE_BYTES || !isUsablePublicKey(publicKey)) return null;
  return createPublicKey({ key: Buffer.concat([SPKI_HEADER, publicKey]), format: 'der', type: 'spki' });
}

/** True if `signature` over `message` by `publicKey` is valid; false also for malformed input. */
export function verifySignature(publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
  const key = toVerifierKey(publicKey, signature);
  return key !== null && verify(null, message, key, signature);
}

/** Like `verifySignature`, but on a thread of the pool. */
export function verifySignatureAsync(
  publicKey: Uint8Array,
  message: Uint8Array,
  signature: Uint8Array,
): Promise<boolean> {
  const key = toVerifierKey(publicKey, signature);
  return key === null ? Promise.resolve(false) : verifyWith(key, message, signature);
}

/**
 * Maximum number of record or note signatures that the main thread verifies per turn of the event loop. Passing one to
 * another thread takes longer than one verification.
 */
export const MAX_VERIFICATIONS_PER_TURN = 2;

/** Maximum number of key objects cached by `VerifierKeys`. */
const MAX_KEPT_KEYS = 1024;

/**
 * Like `verifySignatureAsync`, but caches key objects for callers that see the same few keys repeatedly. Parsing a key
 * costs half as much as using it.
 */
export class VerifierKeys {
  readonly #keys = new LruCache<string, KeyObject>({ maxEntries: MAX_KEPT_KEYS });

  verify(publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): Promise<boolean> {
    const key = this.#key(publicKey, signature);
    return key === null ? Promise.resolve(false) : verifyWith(key, message, signature);
  }

  /** Like `verify`, on this thread. Using another thread costs nearly as much as the verification. */
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
 * Parses a private key from the API: a seed of 64 hex characters, or seed and matching public key of 128, optionally
 * with a `0x` prefix.
 * @throws SvcError `bad_key`; the error never contains the text
 */
export function parsePrivateKey(hex: string): KeyPair {
  const bytes = fromHex(hex.trim());
  if (bytes === null || (bytes.length !== SEED_BYTES && bytes.length !== SEED_BYTES + PUBLIC_KEY_BYTES))
    throw new SvcError('bad_key');
  const pair = KeyPair.fromSeed(bytes.subarray(0, SEED_BYTES));
  if (bytes.length > SEED_BYTES && !equalBytes(pair.publicKey, bytes.subarray(SEED_BYTES)))
    throw new SvcError('bad_key', { message: 'The public half of this key does not match its private half.' });
  return pair;
}

/**
 * Parses a 32-byte seed of 64 hex characters (`*_seed_hex`), optionally with a `0x` prefix.
 * @throws SvcError `bad_key`; the error never contains the text
 */
export function parseSeed(hex: string): KeyPair {
  const bytes = fromHex(hex.trim());
  if (bytes === null || bytes.length !== SEED_BYTES)
    throw new SvcError('bad_key', { message: 'A seed has 32 bytes, 64 hex characters.' });
  return KeyPair.fromSeed(bytes);
}

/**
 * Parses a 32-byte Ed25519 public key of 64 hex characters, optionally with a `0x` prefix.
 * @throws SvcError `bad_key`
 */
export function parsePublicKey(hex: string): Uint8Array {
  const bytes = fromHex(hex.trim());
  if (bytes === null || !isUsablePublicKey(bytes))
    throw new SvcError('bad_key', { message: 'A public key is a valid Ed25519 key of 32 bytes, 64 hex characters.' });
  return bytes;
}
