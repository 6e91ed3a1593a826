/** What an Ed25519 key (RFC 8032) is in our formats; node:crypto works with them in keys.ts. */
import { toHex } from '../bytes.ts';

export const SEED_BYTES = 32;
export const PUBLIC_KEY_BYTES = 32;
export const SIGNATURE_BYTES = 64;

/** Who holds a private key: a pair of keys.ts, or whatever signs where there is no Node. */
export interface Signer {
  readonly publicKey: Uint8Array;
  /** The 64-byte signature of a message. */
  sign(message: Uint8Array): Uint8Array;
}

/** The y coordinates, sign bit cleared, of the points of small order: anyone can sign for those "keys". */
const SMALL_ORDER: ReadonlySet<string> = new Set([
  '0000000000000000000000000000000000000000000000000000000000000000',
  '0100000000000000000000000000000000000000000000000000000000000000',
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
  'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
]);

/** True where y is below the field's prime 2^255 − 19, so that the key has this spelling only. */
function isReduced(y: Uint8Array): boolean {
  return (y[0] ?? 0) < 0xed || y[PUBLIC_KEY_BYTES - 1] !== 0x7f || y.subarray(1, -1).some((byte) => byte !== 0xff);
}

/**
 * True for 32 bytes that may stand for one holder of a private key. Small-order points and unreduced
 * spellings are none: a signature "of" the former fits any message. Whether the bytes are a point of
 * the curve shows when a signature is verified.
 */
export function isUsablePublicKey(key: Uint8Array): boolean {
  if (key.length !== PUBLIC_KEY_BYTES) return false;
  const y = Uint8Array.from(key);
  y[PUBLIC_KEY_BYTES - 1] = (y[PUBLIC_KEY_BYTES - 1] ?? 0) & 0x7f;
  return isReduced(y) && !SMALL_ORDER.has(toHex(y));
}
