/** Passphrases and secrets with a low cost. */
import { secretDerivation } from '../../src/capabilities/access/derivations.ts';
import type { Passphrase, ScryptCost } from '../../src/foundation/keys/passphrase.ts';

export const CHEAP_COST: ScryptCost = { N: 2, r: 1, p: 1 };

export const cheapDerivation = secretDerivation(CHEAP_COST);

export function cheapPassphrase(text: string): Passphrase {
  return { text, cost: CHEAP_COST };
}
