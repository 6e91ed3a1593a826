/**
 * Creates identities, and new operational keys for existing ones. This happens in `svc` itself, so that no daemon on
 * any machine sees a master key.
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
import type { ParsedOptions, ValueOption } from './options.ts';
import { selectedWallet, type WALLET_OPTIONS, type WalletKind } from './wallet-options.ts';

/** Lifetime of the operational key. */
export const EXPIRES_OPTION = {
  '--expires <time>': expiry('expiry of the operational key: 30m, 12h, 7d, or a date; default: never'),
} as const;

const masterKey: ValueOption<string | undefined> = {
  about: `the master key of an existing native identity: ${KEY_FORMS}`,
  conflicts: ['ethereum', 'ethKey', 'paralism', 'paralismKey'],
};

/** The master key of an existing identity. */
export const MASTER_OPTION = { '--master-key <key>': masterKey } as const;

export type IdentityOptions = Partial<
  ParsedOptions<'', typeof WALLET_OPTIONS & typeof MASTER_OPTION & typeof EXPIRES_OPTION>
>;

/** An identity with a new operational key, and its master key if that is new. */
export interface NewIdentity {
  readonly aid: string;
  readonly master_private_key_hex: string;
  readonly operational_private_key_hex: string;
  readonly delegation_proof_hex: string;
  /** The master key existed before, so it is not shown. */
  readonly ownMaster: boolean;
}

/** Unix seconds; 0 means never. */
export function expiryOf(time: string | undefined): number {
  return time === undefined ? 0 : Math.floor(Date.parse(time) / 1000);
}

/**
 * Creates the identity that the options describe: a new one, or a new operational key for an existing master key.
 * @throws SvcError `bad_key`, `bad_delegation`
 */
export async function newIdentity(
  context: CliContext,
  options: IdentityOptions,
  kind?: WalletKind,
): Promise<NewIdentity> {
  const [issuedAt, expiresAt] = [unixSeconds(systemClock), expiryOf(options.expires)];
  const wallet = selectedWallet(options, kind);
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
