/**
 * Multikey encoding of public keys, as used in did:key and DID documents: `z`, then multicodec and key bytes in
 * base58btc (W3C CCG, "The did:key Method v0.9"; W3C, "Controlled Identifiers 1.0", section 2.2.2).
 */
import { base58 } from '@scure/base';
import { equalBytes } from '../bytes.ts';
import { PUBLIC_KEY_BYTES } from './ed25519.ts';

/** Multicodecs of public keys, as unsigned varints. */
const CODEC = { ed25519: Uint8Array.of(0xed, 0x01), x25519: Uint8Array.of(0xec, 0x01) } as const;
/** Multibase prefix of base58btc. */
const BASE58BTC = 'z';
/** Maximum length of an encoded 32-byte key, in characters. */
const MAX_CHARS = 49;

/** Encodes a 32-byte public key. */
export function encodeMultikey(kind: keyof typeof CODEC, publicKey: Uint8Array): string {
  return BASE58BTC + base58.encode(Uint8Array.of(...CODEC[kind], ...publicKey));
}

/** Decodes an Ed25519 public key; null for any other text. Does not check that the key is usable. */
export function decodeEd25519Multikey(text: string): Uint8Array | null {
  if (!text.startsWith(BASE58BTC) || text.length > MAX_CHARS) return null;
  let bytes: Uint8Array;
  try {
    bytes = base58.decode(text.slice(BASE58BTC.length));
  } catch {
    return null;
  }
  const codec = CODEC.ed25519;
  if (bytes.length !== codec.length + PUBLIC_KEY_BYTES || !equalBytes(bytes.subarray(0, codec.length), codec))
    return null;
  return bytes.slice(codec.length);
}
