/**
 * Identities that commands make, and new operational keys for those that are there. They are made
 * here, in `svc` itself: a master key goes to no daemon, on whatever machine that runs.
 */
import { toHex } from '../../foundation/bytes.ts';
import { systemClock, unixSeconds } from '../../foundation/clock.ts';
import { encodeDelegation } from '../../foundation/identity/delegation.ts';
import { parsePrivateKey } from '../../foundation/identity/keys.ts';
import { makeNativeIdentity, type NativeIdentity } from '../../foundation/identity/native-identity.ts';
import { makeWalletIdentity } from '../../foundation/identity/wallet-identity.ts';
import { generateWalletKey, parseWalletKey } from '../../foundation/identity/wallet-keys.ts';
import { expiry } from './allow-options.ts';
import type { CliContext } from './context.ts';
import { KEY_FORMS, readKey } from './key-input.ts';
import type { Taken, Typed } from './takes.ts';
import { type WALLET, type WalletKind, walletOf } from './wallet-options.ts';

/** How long the operational key may act. */
export const EXPIRES = {
  '--expires <time>': expiry('until when the operational key may act: 30m, 12h, 7d, or a date; for good if left out'),
} as const;

const masterKey: Taken<string | undefined> = {
  about: `the master key of a native identity that is there: ${KEY_FORMS}`,
  conflicts: ['ethereum', 'ethKey', 'paralism', 'paralismKey'],
};

/** The master key of an identity that is there. */
export const MASTER = { '--master-key <key>': masterKey } as const;

export type IdentityOptions = Partial<Typed<'', typeof WALLET & typeof MASTER & typeof EXPIRES>>;

/** An identity with a new operational key, and what is to be done about its master key. */
export interface NewIdentity {
  readonly aid: string;
  readonly master_private_key_hex: string;
  readonly operational_private_key_hex: string;
  readonly delegation_proof_hex: string;
  /** The master key was here before: it is not shown again. */
  readonly ownMaster: boolean;
}

/** Unix seconds; 0 means never. */
export function expiryOf(time: string | undefined): number {
  return time === undefined ? 0 : Math.floor(Date.parse(time) / 1000);
}

/**
 * Makes the identity that options ask for: a new one, or a new operational key of one whose master
 * key they give.
 * @throws SvcError `bad_key`, `bad_delegation`
 */
export async function newIdentity(
  context: CliContext,
  options: IdentityOptions,
  kind?: WalletKind,
): Promise<NewIdentity> {
  const [issuedAt, expiresAt] = [unixSeconds(systemClock), expiryOf(options.expires)];
  const wallet = walletOf(options, kind);
  const given = wallet === null ? options.master_key : wallet.key;
  const ask = `private key of the ${wallet === null ? 'identity' : 'wallet'}: `;
  const text = given === undefined ? undefined : await readKey(context, given, ask);
  const hexOf = (
    { aid, operational, delegation }: Pick<NativeIdentity, 'aid' | 'operational' | 'delegation'>,
    master: Uint8Array,
  ): NewIdentity => ({
    aid,
    ownMaster: given !== undefined,
    master_private_key_hex: toHex(master),
    operational_private_key_hex: toHex(operational.seed),
    delegation_proof_hex: toHex(encodeDelegation(delegation)),
  });
  if (wallet === null) {
    const made = makeNativeIdentity(issuedAt, text === undefined ? undefined : parsePrivateKey(text), expiresAt);
    return hexOf(made, made.master.seed);
  }
  const key = text === undefined ? generateWalletKey() : parseWalletKey(text);
  return hexOf(makeWalletIdentity(wallet.scheme, issuedAt, key, expiresAt), key);
}
