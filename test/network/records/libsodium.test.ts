import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { test } from 'node:test';
import * as ours from '../../../src/network/records/libsodium.ts';

type Libsodium = typeof ours;
const theirs: Libsodium = createRequire(import.meta.url)('sodium-universal');

function hashBy(library: Libsodium, length: number, input: Uint8Array, key?: Uint8Array): string {
  const out = Buffer.alloc(length);
  library.crypto_generichash(out, input, key);
  return out.toString('hex');
}

test('hashes as libsodium does, with a key and without, of every length of text', () => {
  for (const length of [16, 32, 64]) {
    for (const size of [0, 1, 6, 127, 128, 129, 300]) {
      const input = Buffer.alloc(size, size);
      const key = Buffer.alloc(32, length);
      assert.equal(hashBy(ours, length, input), hashBy(theirs, length, input));
      assert.equal(hashBy(ours, length, input, key), hashBy(theirs, length, input, key));
    }
  }
});

test('writes over its own input as libsodium does', () => {
  const [mine, whole, part] = [Buffer.alloc(32, 7), Buffer.alloc(32, 7), Buffer.alloc(32, 9)];
  ours.crypto_generichash(mine, mine);
  theirs.crypto_generichash(whole, whole);
  assert.deepEqual(mine, whole);
  const expected = hashBy(theirs, 32, Buffer.alloc(6, 9));
  ours.crypto_generichash(part, part.subarray(0, 6));
  assert.equal(part.toString('hex'), expected);
});

test('random bytes fill all of what is given', () => {
  const [first, second] = [Buffer.alloc(32), Buffer.alloc(32)];
  ours.randombytes_buf(first);
  ours.randombytes_buf(second);
  assert.notDeepEqual(first, second);
  assert.notDeepEqual(first.subarray(16), Buffer.alloc(16));
});
