/** Encrypts bytes to an X25519 key, so that only its owner can read them: HPKE (RFC 9180), base mode. */
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { PUBLIC_KEY_BYTES } from '../identity/ed25519.ts';
import { rawPublicKey } from '../identity/keys.ts';
import { openOver, type SealingContext, sealOver } from './hpke.ts';

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
