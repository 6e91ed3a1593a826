/** Keys from passphrases. */
import { createSecretKey, type KeyObject, scrypt } from 'node:crypto';

const KEY_BYTES = 32;
/** scrypt's cost: 128 MiB and a few tenths of a second for each guess. */
export const SCRYPT_N: number = 2 ** 17;
export const SCRYPT_R = 8;
export const SCRYPT_P = 1;
/** More than one guess needs, bytes: the limit of node:crypto is lower. */
const SCRYPT_MAX_MEMORY_BYTES: number = 2 * 128 * SCRYPT_N * SCRYPT_R;

/** The 256-bit key of a passphrase: scrypt, in a thread of its own. */
export function deriveKey(passphrase: string, salt: Uint8Array): Promise<KeyObject> {
  const options = { N: SCRYPT_N, r: SCRYPT_R, p: SCRYPT_P, maxmem: SCRYPT_MAX_MEMORY_BYTES };
  return new Promise((resolve, reject) => {
    // The same passphrase typed on another system may come in another normal form.
    scrypt(passphrase.normalize('NFKC'), salt, KEY_BYTES, options, (error, key) => {
      if (error === null) resolve(createSecretKey(key));
      else reject(error);
    });
  });
}
