/** What wallets signed for the API, with libraries that are none of ours. */
import { readVectors } from './vectors.ts';

interface Signed {
  readonly made_by: string;
  readonly operational_private_key_seed_hex: string;
  readonly operational_public_key_hex: string;
  readonly agent: string;
  readonly issued_at: number;
  readonly expires_at: number;
  readonly message: string;
}

export interface EthereumSigned extends Signed {
  readonly ethereum_private_key_hex: string;
  readonly eth_signature_hex: string;
}

export interface ParalismSigned extends Signed {
  readonly paralism_private_key_hex: string;
  /** The same agent in the older form of an address. */
  readonly p2pkh_address: string;
  readonly compressed_signature_hex: string;
  /** With one header or another, as wallets show it. */
  readonly signature_base64: string;
}

interface WalletVectors {
  readonly ethereum: readonly [EthereumSigned, EthereumSigned, ...EthereumSigned[]];
  /** Signatures that are none over the message of the first, and who signed where that is known. */
  readonly refused_for_the_first: readonly { name: string; eth_signature_hex: string; signer?: string }[];
  readonly paralism: readonly [ParalismSigned, ParalismSigned, ...ParalismSigned[]];
}

export const walletVectors = readVectors('wallet-api') as WalletVectors;
