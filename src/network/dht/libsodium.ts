/**
 * What `dht-rpc` takes from libsodium, without its 18 MB of native code: the bundle has this in the place of
 * `sodium-universal`. Both functions write into `out`, which may be the input itself.
 */
import { randomFillSync } from 'node:crypto';
import { blake2b } from '@noble/hashes/blake2.js';

/** Random bytes. */
export function randombytes_buf(out: Uint8Array): void {
  randomFillSync(out);
}

/** BLAKE2b with as long a digest as `out`, 16 to 64 bytes; with a key, 16 to 64 bytes, where one is given. */
export function crypto_generichash(out: Uint8Array, input: Uint8Array, key?: Uint8Array): void {
  out.set(blake2b(input, { dkLen: out.byteLength, ...(key === undefined ? {} : { key }) }));
}
