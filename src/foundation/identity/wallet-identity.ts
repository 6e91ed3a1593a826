/** Creates identities with a wallet as master key. Nothing is stored here. */
import type { Aid } from './aid.ts';
import { KeyPair } from './keys.ts';
import { issueWalletDelegation, type WalletDelegation } from './wallet.ts';
import { generateWalletKey, type WalletScheme } from './wallet-keys.ts';

export interface WalletIdentity {
  readonly aid: Aid;
  /** The wallet's private key, 32 bytes: the master key of the AID. */
  readonly walletKey: Uint8Array;
  readonly operational: KeyPair;
  readonly delegation: WalletDelegation;
}

/**
 * Creates an operational key and the delegation that allows it to act for a wallet.
 * @param issuedAt Unix seconds
 * @param walletKey private key, 32 bytes; default: a new key
 * @param expiresAt Unix seconds; 0 means never
 * @throws SvcError `bad_key`, or `bad_delegation` if the times are invalid
 */
export function makeWalletIdentity(
  scheme: WalletScheme,
  issuedAt: number,
  walletKey: Uint8Array = generateWalletKey(),
  expiresAt = 0,
): WalletIdentity {
  const operational = KeyPair.generate();
  const delegation = issueWalletDelegation(scheme, walletKey, operational.publicKey, issuedAt, expiresAt);
  return { aid: delegation.agent, walletKey, operational, delegation };
}
