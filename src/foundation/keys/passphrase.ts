/** Keys from passphrases. */
import { createSecretKey, type KeyObject } from 'node:crypto';
import { type ScryptCost, scryptHash } from './scrypt.ts';

/** The salt that goes with a passphrase, bytes. */
export const PASSPHRASE_SALT_BYTES = 32;
/** 128 MiB and a few tenths of a second for each guess at the passphrase of a key store or of a sealed file. */
export const PASSPHRASE_COST: ScryptCost = { N: 2 ** 17, r: 8, p: 1 };

/** A passphrase, and what each guess at it costs. */
export interface Passphrase {
  readonly text: string;
  readonly cost: ScryptCost;
}

/** The 256-bit key of a passphrase. */
export async function deriveKey({ text, cost }: Passphrase, salt: Uint8Array): Promise<KeyObject> {
  // The same passphrase typed on another system may come in another normal form.
  return createSecretKey(await scryptHash(text.normalize('NFKC'), salt, cost));
}
