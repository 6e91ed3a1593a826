/**
 * What `dht-rpc` takes from libsodium, without its 18 MB of native code: the bundle has this in the place of
 * `sodium-universal`. Both functions write into `out`, which may be the input itself.
 */
import { randomFillSync } from 'node:crypto';
import { blake2b } from '@noble/hashes/blake2.js';
import { toHex } from '../../foundation/bytes.ts';
import { LruCache } from '../../foundation/lru-cache.ts';

/** Digests with a key that are remembered: of each datagram is asked whether its token is that of its sender's address. */
const MAX_REMEMBERED = 1024;
const MAX_REMEMBERED_INPUT_BYTES = 64;
const remembered = new LruCache<string, Uint8Array>({ maxEntries: MAX_REMEMBERED });

/** Random bytes. */
export function randombytes_buf(out: Uint8Array): void {
  randomFillSync(out);
}

/** BLAKE2b with as long a digest as `out`, 16 to 64 bytes; with a key, 16 to 64 bytes, where one is given. */
export function crypto_generichash(out: Uint8Array, input: Uint8Array, key?: Uint8Array): void {
  const dkLen = out.byteLength;
  if (key === undefined) return out.set(blake2b(input, { dkLen }));
  if (input.length > MAX_REMEMBERED_INPUT_BYTES) return out.set(blake2b(input, { dkLen, key }));
  const name = `${dkLen} ${key.length} ${toHex(key)}${toHex(input)}`;
  const digest = remembered.get(name) ?? blake2b(input, { dkLen, key });
  remembered.set(name, digest);
  out.set(digest);
}
