/** scrypt, in a thread of its own. */
import { scrypt } from 'node:crypto';

/** What one guess costs: N × r × 128 bytes of memory, and p times the work. What is kept opens with the same cost only. */
export interface ScryptCost {
  readonly N: number;
  readonly r: number;
  readonly p: number;
}

const SCRYPT_BYTES = 32;

/** The 32 bytes that a text and a salt make. */
export function scryptHash(text: string, salt: Uint8Array, cost: ScryptCost): Promise<Buffer> {
  // More than one guess needs: the limit of node:crypto is lower.
  const maxmem = 2 * 128 * cost.r * (cost.N + cost.p);
  return new Promise((resolve, reject) => {
    scrypt(text, salt, SCRYPT_BYTES, { ...cost, maxmem }, (error, hash) =>
      error === null ? resolve(hash) : reject(error),
    );
  });
}
