/** Options of commands that create an identity with a wallet as its master. */
import type { WalletScheme } from '../../foundation/identity/wallet-keys.ts';
import { KEY_FORMS } from './key-input.ts';
import type { ParsedOptions, ValueOption } from './options.ts';

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
export function selectedWallet({ ethereum, eth_key, paralism, paralism_key }: WalletOptions, kind?: WalletKind) {
  const scheme = kind?.scheme ?? (ethereum ? 'ethereum' : paralism ? 'paralism' : null);
  return scheme && { scheme, key: scheme === 'ethereum' ? eth_key : paralism_key };
}
