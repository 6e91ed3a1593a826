/**
 * HPKE (RFC 9180) in base mode, one message for each key, with DHKEM(X25519, HKDF-SHA256), HKDF-SHA256 and AES-256-GCM.
 * The steps are few and short: on this thread they take a quarter of what a dozen ways to another one and back do.
 */
import { createHmac, createSecretKey, diffieHellman, type KeyObject } from 'node:crypto';
import { CIPHER_KEY_BYTES, decrypt, encrypt, NONCE_BYTES } from './cipher.ts';

const VERSION = Buffer.from('HPKE-v1');
/** The suites of the key encapsulation and of the whole: their names, then the numbers of the algorithms. */
const KEM_SUITE = Buffer.from('KEM\x00\x20', 'latin1');
const SUITE = Buffer.from('HPKE\x00\x20\x00\x01\x00\x02', 'latin1');
const BASE_MODE = Buffer.of(0);
/** Of a hash, and of a shared secret. */
const SECRET_BYTES = 32;
const NOTHING = Buffer.alloc(0);

/** What a message is for; who opens it has to name the same. */
export interface SealingContext {
  readonly info: Uint8Array;
  /** What goes beside it in clear. */
  readonly aad: Uint8Array;
}

/** One side of the exchange of keys. */
export interface KeyExchange {
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
  /** The raw public keys of the sender, made for this message, and of the recipient. */
  readonly encapsulated: Uint8Array;
  readonly recipient: Uint8Array;
}

function hmac(key: Uint8Array, ...parts: readonly Uint8Array[]): Buffer {
  const mac = createHmac('sha256', key);
  for (const part of parts) mac.update(part);
  return mac.digest();
}

/** `LabeledExtract`. */
function extract(suite: Uint8Array, salt: Uint8Array, label: string, material: Uint8Array): Buffer {
  return hmac(salt, VERSION, suite, Buffer.from(label), material);
}

/** `LabeledExpand`, of one block of the hash at most: nothing here needs more. */
function expand(suite: Uint8Array, secret: Uint8Array, label: string, info: Uint8Array, length: number): Buffer {
  const block = hmac(secret, Buffer.of(0, length), VERSION, suite, Buffer.from(label), info, Buffer.of(1));
  return block.subarray(0, length);
}

const PSK_ID_HASH = extract(SUITE, NOTHING, 'psk_id_hash', NOTHING);

/** The key and the nonce of the only message. Throws where the public key is no usable one. */
function schedule({ privateKey, publicKey, encapsulated, recipient }: KeyExchange, info: Uint8Array) {
  const shared = extract(KEM_SUITE, NOTHING, 'eae_prk', diffieHellman({ privateKey, publicKey }));
  const secret = expand(KEM_SUITE, shared, 'shared_secret', Buffer.concat([encapsulated, recipient]), SECRET_BYTES);
  const context = Buffer.concat([BASE_MODE, PSK_ID_HASH, extract(SUITE, NOTHING, 'info_hash', info)]);
  const main = extract(SUITE, secret, 'secret', NOTHING);
  return {
    key: createSecretKey(expand(SUITE, main, 'key', context, CIPHER_KEY_BYTES)),
    nonce: expand(SUITE, main, 'base_nonce', context, NONCE_BYTES),
  };
}

/** Encrypts the message of an exchange. Throws where the recipient's key is no usable one. */
export function sealOver(exchange: KeyExchange, plain: Uint8Array, { info, aad }: SealingContext): Uint8Array {
  const { key, nonce } = schedule(exchange, info);
  return new Uint8Array(encrypt(key, nonce, aad, plain));
}

/** Decrypts the message of an exchange. Throws where it is not what was encrypted for it. */
export function openOver(exchange: KeyExchange, ciphertext: Uint8Array, { info, aad }: SealingContext): Uint8Array {
  const { key, nonce } = schedule(exchange, info);
  const plain = decrypt(key, nonce, aad, ciphertext);
  if (plain === null) throw new RangeError('it was sealed to another key, or for something else, or changed');
  return new Uint8Array(plain);
}
