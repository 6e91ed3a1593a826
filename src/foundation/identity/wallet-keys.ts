/** secp256k1 keys of wallets, and their AIDs. */
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { ripemd160 } from '@noble/hashes/legacy.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { keccak_256 } from '@noble/hashes/sha3.js';
import { fromHex } from '../bytes.ts';
import { SvcError } from '../errors.ts';
import { type Aid, aidOf } from './aid.ts';

const ADDRESS_BYTES = 20;

/** The AID schemes of wallets. */
export type WalletScheme = 'ethereum' | 'paralism';

function compressed(publicKey: Uint8Array, yes: boolean): Uint8Array {
  try {
    return secp256k1.Point.fromBytes(publicKey).toBytes(yes);
  } catch (error) {
    throw new SvcError('bad_key', { message: 'This is not a secp256k1 public key.', cause: error });
  }
}

/**
 * The AID of a wallet's key. Ethereum: the last 20 bytes of Keccak-256 over x and y; Paralism: RIPEMD-160
 * of SHA-256 over the compressed form.
 * @param publicKey SEC 1 form, compressed (33 bytes) or not (65 bytes)
 * @throws SvcError `bad_key`
 */
export function walletAid(scheme: WalletScheme, publicKey: Uint8Array): Aid {
  return scheme === 'ethereum'
    ? aidOf(scheme, keccak_256(compressed(publicKey, false).subarray(1)).slice(-ADDRESS_BYTES))
    : aidOf(scheme, ripemd160(sha256(compressed(publicKey, true))));
}

/** Generates a secp256k1 private key, 32 bytes. */
export function generateWalletKey(): Uint8Array {
  return secp256k1.utils.randomSecretKey();
}

/**
 * The compressed public key (33 bytes) of a wallet's private key.
 * @throws SvcError `bad_key`
 */
export function walletPublicKey(privateKey: Uint8Array): Uint8Array {
  if (!secp256k1.utils.isValidSecretKey(privateKey))
    throw new SvcError('bad_key', { message: 'This is not a secp256k1 private key.' });
  return secp256k1.getPublicKey(privateKey, true);
}

/**
 * Parses a wallet's private key of 64 hex characters, optionally with a `0x` prefix.
 * @throws SvcError `bad_key`; the error never contains the text
 */
export function parseWalletKey(hex: string): Uint8Array {
  const bytes = fromHex(hex.trim());
  if (bytes === null || !secp256k1.utils.isValidSecretKey(bytes))
    throw new SvcError('bad_key', {
      message: 'A wallet key is a secp256k1 private key of 32 bytes, 64 hex characters.',
    });
  return bytes;
}
