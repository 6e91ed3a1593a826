/** Seals bytes to an X25519 key, so that only its owner reads them: HPKE (RFC 9180), base mode. */
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { PUBLIC_KEY_BYTES } from '../identity/ed25519.ts';
import { openOver, type SealingContext, sealOver } from './hpke.ts';

/** DER headers of RFC 8410, as in identity/keys.ts. */
const PKCS8_HEADER = Buffer.from('302e020100300506032b656e04220420', 'hex');
const SPKI_HEADER = Buffer.from('302a300506032b656e032100', 'hex');

/** A key pair that opens what was sealed to it. */
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

/** Throws where it is no key. */
function publicKeyOf(publicKey: Uint8Array): KeyObject {
  if (publicKey.length !== PUBLIC_KEY_BYTES) throw new RangeError('an X25519 key has 32 bytes');
  return createPublicKey({ key: Buffer.concat([SPKI_HEADER, publicKey]), format: 'der', type: 'spki' });
}

function rawKeyOf(key: KeyObject): Uint8Array {
  return new Uint8Array(key.export({ format: 'der', type: 'spki' }).subarray(SPKI_HEADER.length));
}

/** The key pair of an X25519 private key. */
export function sealingKeyOf(privateKey: Uint8Array): SealingKey {
  return { privateKey, publicKey: rawKeyOf(createPublicKey(privateKeyOf(privateKey))) };
}

/** Rejects where the key is no usable one. */
export function sealTo(recipient: Uint8Array, plain: Uint8Array, context: SealingContext): Promise<SealedBox> {
  return Promise.try(() => {
    const own = generateKeyPairSync('x25519');
    const encapsulated = rawKeyOf(own.publicKey);
    const exchange = { privateKey: own.privateKey, publicKey: publicKeyOf(recipient), encapsulated, recipient };
    return { encapsulated, ciphertext: sealOver(exchange, plain, context) };
  });
}

/** Opens boxes with one key, which is read once. */
export class BoxOpener {
  readonly publicKey: Uint8Array;
  readonly #key: SealingKey;
  #privateKey: KeyObject | null = null;

  constructor(key: SealingKey) {
    this.publicKey = key.publicKey;
    this.#key = key;
  }

  /** Rejects where it was not sealed to this key in this context, or was changed. */
  open({ encapsulated, ciphertext }: SealedBox, context: SealingContext): Promise<Uint8Array> {
    return Promise.try(() => {
      const privateKey = (this.#privateKey ??= privateKeyOf(this.#key.privateKey));
      const exchange = { privateKey, publicKey: publicKeyOf(encapsulated), encapsulated, recipient: this.publicKey };
      return openOver(exchange, ciphertext, context);
    });
  }
}
