/** Creates native identities. Nothing is stored here. */
import { type Aid, nativeAid } from './aid.ts';
import { type Delegation, issueDelegation } from './delegation.ts';
import { KeyPair } from './keys.ts';

export interface NativeIdentity {
  readonly aid: Aid;
  readonly master: KeyPair;
  readonly operational: KeyPair;
  readonly delegation: Delegation;
}

/**
 * Creates an operational key and the delegation that allows it to act for a master key.
 * @param issuedAt Unix seconds
 * @param master default: a new key
 * @param expiresAt Unix seconds; 0 means never
 * @throws SvcError `bad_delegation` if the times are invalid
 */
export function makeNativeIdentity(issuedAt: number, master = KeyPair.generate(), expiresAt = 0): NativeIdentity {
  const operational = KeyPair.generate();
  const delegation = issueDelegation(master, operational.publicKey, issuedAt, expiresAt);
  return { aid: nativeAid(master.publicKey), master, operational, delegation };
}
