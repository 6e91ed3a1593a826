/** AES-256-GCM (NIST SP 800-38D), as all that we seal at rest uses it. */
import { createCipheriv, createDecipheriv, type KeyObject } from 'node:crypto';

export const CIPHER = 'aes-256-gcm';
export const CIPHER_KEY_BYTES = 32;
export const NONCE_BYTES = 12;
export const TAG_BYTES = 16;

/**
 * The ciphertext and its tag.
 * @param nonce never the same twice under one key
 * @param context what is authenticated with the text
 */
export function encrypt(key: KeyObject, nonce: Uint8Array, context: Uint8Array, text: Uint8Array): Buffer {
  const cipher = createCipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES }).setAAD(context);
  return Buffer.concat([cipher.update(text), cipher.final(), cipher.getAuthTag()]);
}

/** Null where key, nonce, context or bytes are not those of `encrypt`. */
export function decrypt(key: KeyObject, nonce: Uint8Array, context: Uint8Array, sealed: Uint8Array): Buffer | null {
  if (sealed.length < TAG_BYTES) return null;
  const decipher = createDecipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES }).setAAD(context);
  decipher.setAuthTag(sealed.subarray(-TAG_BYTES));
  try {
    return Buffer.concat([decipher.update(sealed.subarray(0, -TAG_BYTES)), decipher.final()]);
  } catch {
    return null;
  }
}
