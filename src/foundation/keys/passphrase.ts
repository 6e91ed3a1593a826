/** Keys from passphrases. */
import { createSecretKey, type KeyObject, scrypt } from 'node:crypto';

/**
 * The cost of one guess: N × r × 128 bytes of memory, and p times the work. Stored data can only be opened with the
 * same cost.
 */
export interface ScryptCost {
  readonly N: number;
  readonly r: number;
  readonly p: number;
}

const SCRYPT_BYTES = 32;

/** Derives 32 bytes from a text and a salt. */
export function scryptHash(text: string, salt: Uint8Array, cost: ScryptCost): Promise<Buffer> {
  // More than one hash needs, because the default limit of node:crypto is too low.
  const maxmem = 2 * 128 * cost.r * (cost.N + cost.p);
  return new Promise((resolve, reject) => {
    scrypt(text, salt, SCRYPT_BYTES, { ...cost, maxmem }, (error, hash) =>
      error === null ? resolve(hash) : reject(error),
    );
  });
}

/** Length of the salt of a passphrase, in bytes. */
export const PASSPHRASE_SALT_BYTES = 32;
/** Each guess at the passphrase of a key store or a sealed file costs 128 MiB and a few tenths of a second. */
export const PASSPHRASE_COST: ScryptCost = { N: 2 ** 17, r: 8, p: 1 };

/** A passphrase, and the cost of each guess at it. */
export interface Passphrase {
  readonly text: string;
  readonly cost: ScryptCost;
}

/** Derives a 256-bit key from a passphrase. */
export async function deriveKey({ text, cost }: Passphrase, salt: Uint8Array): Promise<KeyObject> {
  // Another system may type the same passphrase in another normal form.
  return createSecretKey(await scryptHash(text.normalize('NFKC'), salt, cost));
}
