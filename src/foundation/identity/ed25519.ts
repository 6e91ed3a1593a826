/** Ed25519 keys (RFC 8032) without node:crypto; see keys.ts for the rest. */
import { toHex } from '../bytes.ts';

export const SEED_BYTES = 32;
export const PUBLIC_KEY_BYTES = 32;
export const SIGNATURE_BYTES = 64;

/** A holder of a private key: a `KeyPair`, or another signer where Node is not available. */
export interface Signer {
  readonly publicKey: Uint8Array;
  /** The 64-byte signature of a message. */
  sign(message: Uint8Array): Uint8Array;
}

/** The y coordinates, sign bit cleared, of the small-order points. Anyone can sign for these "keys". */
const SMALL_ORDER: ReadonlySet<string> = new Set([
  '0000000000000000000000000000000000000000000000000000000000000000',
  '0100000000000000000000000000000000000000000000000000000000000000',
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
  'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
]);

/** True if y is less than the field prime 2^255 − 19, so that the encoding is unique. */
function isReduced(y: Uint8Array): boolean {
  return (y[0] ?? 0) < 0xed || y[PUBLIC_KEY_BYTES - 1] !== 0x7f || y.subarray(1, -1).some((byte) => byte !== 0xff);
}

/**
 * True for 32 bytes that can be a public key. Rejects small-order points, for which one signature fits any message, and
 * non-canonical encodings. Whether the bytes are a point on the curve only shows when a signature is verified.
 */
export function isUsablePublicKey(key: Uint8Array): boolean {
  if (key.length !== PUBLIC_KEY_BYTES) return false;
  const y = Uint8Array.from(key);
  y[PUBLIC_KEY_BYTES - 1] = (y[PUBLIC_KEY_BYTES - 1] ?? 0) & 0x7f;
  return isReduced(y) && !SMALL_ORDER.has(toHex(y));
}
