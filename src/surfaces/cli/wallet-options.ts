/** Options of the commands that make an identity whose master is a wallet. */
import { type Command, Option } from 'commander';
import type { WalletScheme } from '../../foundation/identity/wallet-keys.ts';
import { KEY_FORMS } from './key-input.ts';

const KEY_HELP = `the wallet's private key: ${KEY_FORMS}`;

/** A kind of wallet as commands know it. */
export interface WalletKind {
  readonly scheme: WalletScheme;
  readonly title: string;
  /** Name of the commands that make identities of this kind. */
  readonly command: string;
}

export const WALLETS: readonly WalletKind[] = [
  { scheme: 'ethereum', title: 'an Ethereum wallet', command: 'new-eth' },
  { scheme: 'paralism', title: 'a Paralism wallet', command: 'new-paralism' },
];

export interface WalletOptions {
  readonly ethereum?: boolean;
  readonly ethKey?: string;
  readonly paralism?: boolean;
  readonly paralismKey?: string;
}

function keyOption(scheme: WalletScheme): Option {
  return new Option(scheme === 'ethereum' ? '--eth-key <key>' : '--paralism-key <key>', KEY_HELP);
}

/** Adds `--ethereum`, `--paralism` and their keys. */
export function addWalletOptions(command: Command): Command {
  return command
    .addOption(new Option('--ethereum', 'an Ethereum wallet is its master: a new one, or that of --eth-key'))
    .addOption(keyOption('ethereum').implies({ ethereum: true }))
    .addOption(
      new Option('--paralism', 'a Paralism wallet is its master: a new one, or that of --paralism-key').conflicts([
        'ethereum',
        'ethKey',
      ]),
    )
    .addOption(keyOption('paralism').implies({ paralism: true }).conflicts(['ethereum', 'ethKey']));
}

/** Adds the option of a command that is for one kind of wallet. */
export function addWalletKeyOption(command: Command, kind: WalletKind): Command {
  return command.addOption(keyOption(kind.scheme));
}

/** The wallet that a command is for, or its options name, and how its key is given; null where it is none. */
export function walletOf(
  { ethereum, ethKey, paralism, paralismKey }: WalletOptions,
  kind?: WalletKind,
): { readonly scheme: WalletScheme; readonly key: string | undefined } | null {
  if (kind?.scheme === 'ethereum' || ethereum === true) return { scheme: 'ethereum', key: ethKey };
  return kind?.scheme === 'paralism' || paralism === true ? { scheme: 'paralism', key: paralismKey } : null;
}
