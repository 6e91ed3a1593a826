/** Signatures of wallets for the API, made with other libraries. */
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
  /** The same agent with the older address format. */
  readonly p2pkh_address: string;
  readonly compressed_signature_hex: string;
  /** With different headers, as wallets produce them. */
  readonly signature_base64: string;
}

interface WalletVectors {
  readonly ethereum: readonly [EthereumSigned, EthereumSigned, ...EthereumSigned[]];
  /** Invalid signatures for the first message, with the signer if known. */
  readonly refused_for_the_first: readonly { name: string; eth_signature_hex: string; signer?: string }[];
  readonly paralism: readonly [ParalismSigned, ParalismSigned, ...ParalismSigned[]];
}

export const walletVectors = readVectors('wallet-api') as WalletVectors;
