/** scrypt on a thread of the pool. */
import { scrypt } from 'node:crypto';

/**
 * The cost of one guess: N × r × 128 bytes of memory, and p times the work. Stored data can only be opened with the
 * same cost.
 */
export interface ScryptCost {
  readonly N: number;
  readonly r: number;
  readonly p: number;
}

const SCRYPT_BYTES = 32;

/** Derives 32 bytes from a text and a salt. */
export function scryptHash(text: string, salt: Uint8Array, cost: ScryptCost): Promise<Buffer> {
  // More than one hash needs, because the default limit of node:crypto is too low.
  const maxmem = 2 * 128 * cost.r * (cost.N + cost.p);
  return new Promise((resolve, reject) => {
    scrypt(text, salt, SCRYPT_BYTES, { ...cost, maxmem }, (error, hash) =>
      error === null ? resolve(hash) : reject(error),
    );
  });
}
