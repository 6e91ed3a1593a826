import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { addDigest, recordDigest } from '../../../src/foundation/records/digest.ts';
import { RECORD_DIGEST_BYTES } from '../../../src/foundation/records/types.ts';

test('a digest is a prefix of the SHA-256 in its own memory', () => {
  const encoded = Buffer.from('a record');
  const digest = recordDigest(encoded);
  assert.equal(RECORD_DIGEST_BYTES, 8);
  assert.deepEqual(digest, new Uint8Array(createHash('sha256').update(encoded).digest().subarray(0, 8)));
  assert.equal(digest.buffer.byteLength, 8, 'nothing else is kept alive by it');
});

test('digests of a set add up in any order, and one added twice takes itself out', () => {
  const [a, b] = [recordDigest(Uint8Array.of(1)), recordDigest(Uint8Array.of(2))];
  const sum = new Uint8Array(RECORD_DIGEST_BYTES);
  addDigest(sum, a);
  assert.deepEqual(sum, a);
  addDigest(sum, b);
  assert.deepEqual(
    sum,
    a.map((byte, i) => byte ^ (b[i] ?? 0)),
  );
  const other = new Uint8Array(RECORD_DIGEST_BYTES);
  for (const digest of [b, a]) addDigest(other, digest);
  assert.deepEqual(other, sum);
  addDigest(sum, a);
  assert.deepEqual(sum, b);
});
