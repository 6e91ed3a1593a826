/** Encrypts bytes to an X25519 key, so that only its owner can read them: HPKE (RFC 9180), base mode. */
import {
  createHmac,
  createPrivateKey,
  createPublicKey,
  createSecretKey,
  diffieHellman,
  generateKeyPairSync,
  hkdfSync,
  type KeyObject,
} from 'node:crypto';
import { PUBLIC_KEY_BYTES } from '../identity/ed25519.ts';
import { rawPublicKey } from '../identity/keys.ts';
import { CIPHER_KEY_BYTES, decrypt, encrypt, NONCE_BYTES } from './cipher.ts';

// HPKE (RFC 9180) in base mode with one message per key: DHKEM(X25519, HKDF-SHA256), HKDF-SHA256 and AES-256-GCM. The
// steps are short. On this thread they take a quarter of the time that a dozen calls to the thread pool would.

const VERSION = Buffer.from('HPKE-v1');
/** The suite IDs of the key encapsulation and of HPKE: the name, then the algorithm numbers. */
const KEM_SUITE = Buffer.from('KEM\x00\x20', 'latin1');
const SUITE = Buffer.from('HPKE\x00\x20\x00\x01\x00\x02', 'latin1');
const BASE_MODE = Buffer.of(0);
/** Length of a hash and of a shared secret. */
const SECRET_BYTES = 32;
const NOTHING = Buffer.alloc(0);

/** The purpose of a message. The recipient must use the same. */
interface SealingContext {
  readonly info: Uint8Array;
  /** Additional data, not encrypted. */
  readonly aad: Uint8Array;
}

/** One side of the key exchange. */
interface KeyExchange {
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
  /** The raw public keys: the sender's ephemeral key, and the recipient's key. */
  readonly encapsulated: Uint8Array;
  readonly recipient: Uint8Array;
}

/** Input of `LabeledExtract` before the hash. */
function labeled(suite: Uint8Array, label: string, material: Uint8Array): Buffer {
  return Buffer.concat([VERSION, suite, Buffer.from(label), material]);
}

/** `LabeledExtract`. */
function extract(suite: Uint8Array, salt: Uint8Array, label: string, material: Uint8Array): Buffer {
  return createHmac('sha256', salt)
    .update(labeled(suite, label, material))
    .digest();
}

/** The label of `LabeledExpand`. */
function labeledInfo(suite: Uint8Array, label: string, info: Uint8Array, length: number): Buffer {
  return Buffer.concat([Buffer.of(0, length), labeled(suite, label, info)]);
}

const PSK_ID_HASH = extract(SUITE, NOTHING, 'psk_id_hash', NOTHING);
const MAIN = labeled(SUITE, 'secret', NOTHING);

/**
 * The key and the nonce of the message. `LabeledExtract` and the following `LabeledExpand` are one HKDF call each.
 * Throws if the public key is invalid.
 */
function schedule({ privateKey, publicKey, encapsulated, recipient }: KeyExchange, info: Uint8Array) {
  const shared = labeled(KEM_SUITE, 'eae_prk', diffieHellman({ privateKey, publicKey }));
  const both = Buffer.concat([encapsulated, recipient]);
  const ofBoth = labeledInfo(KEM_SUITE, 'shared_secret', both, SECRET_BYTES);
  const secret = new Uint8Array(hkdfSync('sha256', shared, NOTHING, ofBoth, SECRET_BYTES));
  const context = Buffer.concat([BASE_MODE, PSK_ID_HASH, extract(SUITE, NOTHING, 'info_hash', info)]);
  const derive = (label: string, length: number): Uint8Array =>
    new Uint8Array(hkdfSync('sha256', MAIN, secret, labeledInfo(SUITE, label, context, length), length));
  return { key: createSecretKey(derive('key', CIPHER_KEY_BYTES)), nonce: derive('base_nonce', NONCE_BYTES) };
}

/** Encrypts the message of an exchange. Throws if the recipient's key is invalid. */
function sealOver(exchange: KeyExchange, plain: Uint8Array, { info, aad }: SealingContext): Uint8Array {
  const { key, nonce } = schedule(exchange, info);
  return new Uint8Array(encrypt(key, nonce, aad, plain));
}

/** Decrypts the message of an exchange. Throws if it does not match the exchange. */
function openOver(exchange: KeyExchange, ciphertext: Uint8Array, { info, aad }: SealingContext): Uint8Array {
  const { key, nonce } = schedule(exchange, info);
  const plain = decrypt(key, nonce, aad, ciphertext);
  if (plain === null) throw new RangeError('it was sealed to another key or for another purpose, or was changed');
  return new Uint8Array(plain);
}

/** DER headers of RFC 8410, as in identity/keys.ts. */
const PKCS8_HEADER = Buffer.from('302e020100300506032b656e04220420', 'hex');
const SPKI_HEADER = Buffer.from('302a300506032b656e032100', 'hex');

/** A key pair that opens boxes sealed to it. */
export interface SealingKey {
  readonly privateKey: Uint8Array;
  readonly publicKey: Uint8Array;
}

export interface SealedBox {
  /** The HPKE encapsulated key. */
  readonly encapsulated: Uint8Array;
  readonly ciphertext: Uint8Array;
}

function privateKeyOf(privateKey: Uint8Array): KeyObject {
  return createPrivateKey({ key: Buffer.concat([PKCS8_HEADER, privateKey]), format: 'der', type: 'pkcs8' });
}

/** Throws if it is not a valid key. */
function publicKeyOf(publicKey: Uint8Array): KeyObject {
  if (publicKey.length !== PUBLIC_KEY_BYTES) throw new RangeError('an X25519 key has 32 bytes');
  return createPublicKey({ key: Buffer.concat([SPKI_HEADER, publicKey]), format: 'der', type: 'spki' });
}

/** The key pair of an X25519 private key. */
export function sealingKeyOf(privateKey: Uint8Array): SealingKey {
  return { privateKey, publicKey: rawPublicKey(createPublicKey(privateKeyOf(privateKey))) };
}

/** The ephemeral key pair of one box. */
export interface BoxKey {
  readonly privateKey: KeyObject;
  readonly encapsulated: Uint8Array;
}

/** Creates the key for one box. This is half of the work of sealing and can be done in advance. */
export function newBoxKey(): BoxKey {
  const { privateKey, publicKey } = generateKeyPairSync('x25519');
  return { privateKey, encapsulated: rawPublicKey(publicKey) };
}

/**
 * Seals bytes to a key. Throws if the key is invalid.
 * @param own an ephemeral key that no other box uses
 */
export function sealTo(
  recipient: Uint8Array,
  plain: Uint8Array,
  context: SealingContext,
  own = newBoxKey(),
): SealedBox {
  const ciphertext = sealOver({ ...own, publicKey: publicKeyOf(recipient), recipient }, plain, context);
  return { encapsulated: own.encapsulated, ciphertext };
}

/** Opens boxes with one key, which is parsed once. */
export class BoxOpener {
  readonly publicKey: Uint8Array;
  readonly #key: SealingKey;
  #privateKey: KeyObject | null = null;

  constructor(key: SealingKey) {
    this.publicKey = key.publicKey;
    this.#key = key;
  }

  /** Throws if the box was sealed to another key or context, or was changed. */
  open({ encapsulated, ciphertext }: SealedBox, context: SealingContext): Uint8Array {
    const privateKey = (this.#privateKey ??= privateKeyOf(this.#key.privateKey));
    const exchange = { privateKey, publicKey: publicKeyOf(encapsulated), encapsulated, recipient: this.publicKey };
    return openOver(exchange, ciphertext, context);
  }
}
