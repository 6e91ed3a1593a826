/** Keys from passphrases. */
import { createSecretKey, type KeyObject } from 'node:crypto';
import { type ScryptCost, scryptHash } from './scrypt.ts';

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
