/** New native identities. Nothing of them is kept here. */
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
 * A new operational key and the proof by which a master key lets it act.
 * @param issuedAt Unix seconds
 * @param master a new one where it is left out
 * @param expiresAt Unix seconds; 0 means never
 * @throws SvcError `bad_delegation` where the times make no sense
 */
export function makeNativeIdentity(issuedAt: number, master = KeyPair.generate(), expiresAt = 0): NativeIdentity {
  const operational = KeyPair.generate();
  const delegation = issueDelegation(master, operational.publicKey, issuedAt, expiresAt);
  return { aid: nativeAid(master.publicKey), master, operational, delegation };
}
