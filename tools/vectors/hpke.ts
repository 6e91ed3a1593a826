/**
 * HPKE (RFC 9180), base mode, one message, with a chosen ephemeral key: written from the RFC for the
 * test vectors, so that the library of the product is judged by something else.
 */
import { createCipheriv, createHmac, createPrivateKey, createPublicKey, diffieHellman } from 'node:crypto';

const VERSION = Buffer.from('HPKE-v1');
/** DHKEM(X25519, HKDF-SHA256), and with HKDF-SHA256 and AES-256-GCM. */
const KEM_SUITE = Buffer.from('KEM\x00\x20', 'latin1');
const SUITE = Buffer.from('HPKE\x00\x20\x00\x01\x00\x02', 'latin1');
const HASH_BYTES = 32;
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const PKCS8_HEADER = Buffer.from('302e020100300506032b656e04220420', 'hex');
const SPKI_HEADER = Buffer.from('302a300506032b656e032100', 'hex');
const NOTHING = Buffer.alloc(0);

function privateKeyOf(key: Uint8Array) {
  return createPrivateKey({ key: Buffer.concat([PKCS8_HEADER, key]), format: 'der', type: 'pkcs8' });
}

function publicKeyOf(key: Uint8Array) {
  return createPublicKey({ key: Buffer.concat([SPKI_HEADER, key]), format: 'der', type: 'spki' });
}

/** The public key of an X25519 private key. */
export function x25519Public(privateKey: Uint8Array): Uint8Array {
  const spki = createPublicKey(privateKeyOf(privateKey)).export({ format: 'der', type: 'spki' });
  return new Uint8Array(spki.subarray(SPKI_HEADER.length));
}

function hmac(key: Uint8Array, ...parts: readonly Uint8Array[]): Buffer {
  const mac = createHmac('sha256', key);
  for (const part of parts) mac.update(part);
  return mac.digest();
}

function extract(suite: Uint8Array, salt: Uint8Array, label: string, ikm: Uint8Array): Buffer {
  return hmac(salt.length === 0 ? Buffer.alloc(HASH_BYTES) : salt, VERSION, suite, Buffer.from(label), ikm);
}

/** At most one block of the hash: nothing here needs more. */
function expand(suite: Uint8Array, key: Uint8Array, label: string, info: Uint8Array, length: number): Buffer {
  const labelled = Buffer.concat([Buffer.of(0, length), VERSION, suite, Buffer.from(label), info]);
  return hmac(key, labelled, Buffer.of(1)).subarray(0, length);
}

export interface Sealing {
  readonly recipient: Uint8Array;
  readonly ephemeral: Uint8Array;
  readonly info: Uint8Array;
  readonly aad: Uint8Array;
  readonly text: Uint8Array;
}

/** Seals a text to an X25519 public key. */
export function hpkeSeal({ recipient, ephemeral, info, aad, text }: Sealing) {
  const encapsulated = x25519Public(ephemeral);
  const dh = diffieHellman({ privateKey: privateKeyOf(ephemeral), publicKey: publicKeyOf(recipient) });
  const context = Buffer.concat([encapsulated, recipient]);
  const shared = expand(KEM_SUITE, extract(KEM_SUITE, NOTHING, 'eae_prk', dh), 'shared_secret', context, HASH_BYTES);
  const schedule = Buffer.concat([
    Buffer.of(0),
    extract(SUITE, NOTHING, 'psk_id_hash', NOTHING),
    extract(SUITE, NOTHING, 'info_hash', info),
  ]);
  const secret = extract(SUITE, shared, 'secret', NOTHING);
  const key = expand(SUITE, secret, 'key', schedule, KEY_BYTES);
  const nonce = expand(SUITE, secret, 'base_nonce', schedule, NONCE_BYTES);
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(aad);
  const ciphertext = Buffer.concat([cipher.update(text), cipher.final(), cipher.getAuthTag()]);
  return { encapsulated, ciphertext: new Uint8Array(ciphertext) };
}
