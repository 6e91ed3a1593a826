/** Parses and verifies the credentials of a registration. */
import { fromHex } from '../../foundation/bytes.ts';
import { SvcError } from '../../foundation/errors.ts';
import {
  type Delegation,
  decodeDelegation,
  delegates,
  MAX_DELEGATION_BYTES,
} from '../../foundation/identity/delegation.ts';
import { verifyDelegation } from '../../foundation/identity/delegation-verifier.ts';
import { type KeyPair, parsePrivateKey } from '../../foundation/identity/keys.ts';

/** Maximum length of the hex text, in characters: a proof, `0x` and some whitespace. */
const MAX_PROOF_TEXT = 2 * MAX_DELEGATION_BYTES + 16;

export interface Credentials {
  readonly pair: KeyPair;
  readonly delegation: Delegation;
}

/**
 * Parses an operational key and its delegation proof, and verifies both.
 * @param now Unix seconds
 * @throws SvcError `bad_key`, `bad_delegation`
 */
export function readCredentials(privateKeyHex: string, proofHex: string, now: number): Credentials {
  const pair = parsePrivateKey(privateKeyHex);
  const proof = proofHex.length > MAX_PROOF_TEXT ? null : fromHex(proofHex.trim());
  if (proof === null)
    throw new SvcError('bad_delegation', {
      message: 'The delegation proof is not valid hex or is too long.',
    });
  const delegation = decodeDelegation(proof);
  verifyDelegation(delegation, now);
  if (!delegates(delegation, pair.publicKey))
    throw new SvcError('bad_delegation', { message: 'The delegation proof is for another operational key.' });
  return { pair, delegation };
}
