/** AES-256-GCM (NIST SP 800-38D) for all data that is encrypted at rest. */
import { createCipheriv, createDecipheriv, type KeyObject } from 'node:crypto';

export const CIPHER = 'aes-256-gcm';
export const CIPHER_KEY_BYTES = 32;
export const NONCE_BYTES = 12;
export const TAG_BYTES = 16;

/**
 * Returns ciphertext and tag.
 * @param nonce unique per key
 * @param context additional authenticated data
 */
export function encrypt(key: KeyObject, nonce: Uint8Array, context: Uint8Array, text: Uint8Array): Buffer {
  const cipher = createCipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES }).setAAD(context);
  return Buffer.concat([cipher.update(text), cipher.final(), cipher.getAuthTag()]);
}

/** Null if key, nonce, context or bytes do not match `encrypt`. */
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
