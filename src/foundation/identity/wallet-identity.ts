/** New identities whose master is a wallet. Nothing of them is kept here. */
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
 * A new operational key and the proof by which a wallet lets it act.
 * @param issuedAt Unix seconds
 * @param walletKey private key, 32 bytes; a new one where it is left out
 * @param expiresAt Unix seconds; 0 means never
 * @throws SvcError `bad_key`, `bad_delegation` where the times make no sense
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
