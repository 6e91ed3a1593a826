/**
 * Creates identities, and new operational keys for existing ones. This happens in `svc` itself, so that no daemon on
 * any machine sees a master key.
 */

import { statSync } from 'node:fs';
import { toHex } from '../../foundation/bytes.ts';
import { systemClock, unixSeconds } from '../../foundation/clock.ts';
import { SvcError } from '../../foundation/errors.ts';
import { readText } from '../../foundation/files.ts';
import { encodeDelegation } from '../../foundation/identity/delegation.ts';
import { parsePrivateKey } from '../../foundation/identity/keys.ts';
import { makeNativeIdentity, type NativeIdentity } from '../../foundation/identity/native-identity.ts';
import { makeWalletIdentity } from '../../foundation/identity/wallet-identity.ts';
import { generateWalletKey, parseWalletKey, type WalletScheme } from '../../foundation/identity/wallet-keys.ts';
import type { CliContext } from './context.ts';
import { expiry, type ParsedOptions, type ValueOption } from './options.ts';

// Reads private keys from a file, a prompt, a pipe, or the command line.

/** Largest key file, bytes. */
const MAX_KEY_FILE_BYTES = 64 * 1024;

/** Help text of options with a key. */
const KEY_FORMS = 'a file with the key, - to be prompted, or 64 hex characters';

/** The content of a key file without its comments. */
function readKeyFile(file: string): string {
  try {
    if (statSync(file).size > MAX_KEY_FILE_BYTES) return '';
    const lines = readText(file).split(/\r?\n/);
    return lines.filter((line) => line.trim() !== '' && !line.startsWith('#')).join('\n');
  } catch (error) {
    // The text is not repeated: it may be a mistyped key.
    throw new SvcError('bad_key', {
      message: 'This is neither a private key of 64 hex characters nor a readable file.',
      cause: error,
    });
  }
}

/**
 * The text of a private key, unchecked.
 * @param given as described by `KEY_FORMS`
 * @throws SvcError `bad_key` if a file cannot be read, `cancelled`, `too_large`
 */
async function readKey(context: CliContext, given: string, prompt: string): Promise<string> {
  if (given === '-') return context.readSecret(prompt);
  if (!/^(0x)?[0-9a-f]{64}$/i.test(given)) return readKeyFile(given);
  context.info('Other programs can see a key on the command line. Use a file, or - to be prompted.');
  return given;
}

// Options of commands that create an identity with a wallet as its master.

const about = `the wallet's private key: ${KEY_FORMS}`;
const conflicts = ['ethereum', 'ethKey'];
const ethKey: ValueOption<string | undefined> = { about, implies: { ethereum: true } };
const paralismKey: ValueOption<string | undefined> = { about, implies: { paralism: true }, conflicts };
const paralism: ValueOption<true | undefined> = {
  about: 'use a Paralism wallet as master: a new one, or the wallet of --paralism-key',
  conflicts,
};

/** Wallets of all kinds and their keys. */
export const WALLET_OPTIONS = {
  '--ethereum': 'use an Ethereum wallet as master: a new one, or the wallet of --eth-key',
  '--eth-key <key>': ethKey,
  '--paralism': paralism,
  '--paralism-key <key>': paralismKey,
} as const;

type WalletOptions = Partial<ParsedOptions<'', typeof WALLET_OPTIONS>>;

/** A kind of wallet in the command line. */
export interface WalletKind {
  readonly scheme: WalletScheme;
  readonly title: string;
  /** Name of the commands that create identities of this kind. */
  readonly command: string;
  /** Their options. */
  readonly takes: Partial<typeof WALLET_OPTIONS>;
}

export const WALLET_KINDS: readonly WalletKind[] = [
  { scheme: 'ethereum', title: 'an Ethereum wallet', command: 'new-eth', takes: { '--eth-key <key>': ethKey } },
  {
    scheme: 'paralism',
    title: 'a Paralism wallet',
    command: 'new-paralism',
    takes: { '--paralism-key <key>': paralismKey },
  },
];

/** The wallet of a command or of its options, and its key. Null for a native identity. */
function selectedWallet({ ethereum, eth_key, paralism, paralism_key }: WalletOptions, kind?: WalletKind) {
  const scheme = kind?.scheme ?? (ethereum ? 'ethereum' : paralism ? 'paralism' : null);
  return scheme && { scheme, key: scheme === 'ethereum' ? eth_key : paralism_key };
}

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
