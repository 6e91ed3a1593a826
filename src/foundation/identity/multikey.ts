/**
 * Multikey texts of public keys, as did:key and DID documents write them: a multicodec and the key's bytes in base58btc
 * behind a `z` (W3C CCG, "The did:key Method v0.9"; W3C, "Controlled Identifiers 1.0", section 2.2.2).
 */
import { base58 } from '@scure/base';
import { equalBytes } from '../bytes.ts';
import { PUBLIC_KEY_BYTES } from './ed25519.ts';

/** Multicodecs of public keys, as unsigned varints. */
const CODEC = { ed25519: Uint8Array.of(0xed, 0x01), x25519: Uint8Array.of(0xec, 0x01) } as const;
/** Multibase prefix of base58btc. */
const BASE58BTC = 'z';
/** Longest text of a 32-byte key, characters. */
const MAX_CHARS = 49;

/** The text of a 32-byte public key. */
export function encodeMultikey(kind: keyof typeof CODEC, publicKey: Uint8Array): string {
  return BASE58BTC + base58.encode(Uint8Array.of(...CODEC[kind], ...publicKey));
}

/** The Ed25519 public key of a text; null where it is none. The key is not checked to be usable. */
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
