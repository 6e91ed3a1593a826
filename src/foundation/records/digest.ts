/** Short digests of records and of sets of records. */
import { hash } from 'node:crypto';
import { RECORD_DIGEST_BYTES } from './types.ts';

/** A digest that identifies a record: the first bytes of the SHA-256 of the encoded record. */
export function recordDigest(encoded: Uint8Array): Uint8Array {
  return new Uint8Array(hash('sha256', encoded, 'buffer').subarray(0, RECORD_DIGEST_BYTES));
}

/** Adds a record's digest to the digest of a set by XOR. */
export function addDigest(sum: Uint8Array, digest: Uint8Array): void {
  for (let i = 0; i < sum.length; i++) sum[i] = (sum[i] ?? 0) ^ (digest[i] ?? 0);
}
