/**
 * Secrets in the database: their key follows from the node key, which a passphrase can seal. A copy of the database alone
 * opens nothing. See docs/decisions/0118-secrets-on-disk.md.
 */
import { createHmac, createSecretKey, hkdfSync, type KeyObject, randomBytes } from 'node:crypto';
import { CIPHER_KEY_BYTES, decrypt, encrypt, NONCE_BYTES } from './cipher.ts';

const NOTHING = Buffer.alloc(0);

export class StoredSecrets {
  readonly #sealing: KeyObject;
  readonly #deriving: KeyObject;

  /** @param nodeSeed secret seed of the node key */
  constructor(nodeSeed: Uint8Array) {
    const derive = (purpose: string): KeyObject =>
      createSecretKey(new Uint8Array(hkdfSync('sha256', nodeSeed, NOTHING, purpose, CIPHER_KEY_BYTES)));
    this.#sealing = derive('svcd/stored-secrets/seal/1');
    this.#deriving = derive('svcd/stored-secrets/derive/1');
  }

  /** Encrypts a text for a row: nonce, ciphertext and tag. @param purpose the table and the row, see `open` */
  seal(purpose: string, text: string): Uint8Array {
    const nonce = randomBytes(NONCE_BYTES);
    return Buffer.concat([nonce, encrypt(this.#sealing, nonce, Buffer.from(purpose), Buffer.from(text))]);
  }

  /** The text that was sealed for the same purpose; null if it was sealed for another one or by another node. */
  open(purpose: string, sealed: Uint8Array): string | null {
    const [nonce, text] = [sealed.subarray(0, NONCE_BYTES), sealed.subarray(NONCE_BYTES)];
    return decrypt(this.#sealing, nonce, Buffer.from(purpose), text)?.toString() ?? null;
  }

  /** A secret that can be made again, so that only its hash is stored. @param bytes at most 32 */
  derive(purpose: string, bytes: number): Uint8Array {
    return createHmac('sha256', this.#deriving).update(purpose).digest().subarray(0, bytes);
  }
}
