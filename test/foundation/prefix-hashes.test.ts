/** Hashes of the ranges of a file that arrives. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { OBJECT_ID_BYTES, RANGE_BYTES, rangeCount } from '../../src/foundation/domain/objects.ts';
import { PrefixHash, PrefixHashes } from '../../src/foundation/prefix-hashes.ts';
import { someBytes } from '../support/object-world.ts';

const BYTES = someBytes(2 * RANGE_BYTES + 1000);

function hashOf(bytes: Uint8Array): PrefixHash {
  const hash = new PrefixHash();
  // Chunks that cross the ends of ranges.
  for (let at = 0; at < bytes.length; at += 700_000) hash.update(bytes.subarray(at, at + 700_000));
  return hash;
}

function sha256(bytes: Uint8Array): Buffer {
  return createHash('sha256').update(bytes).digest();
}

function served(list: Uint8Array, size: number, asked: number[] = []): PrefixHashes {
  return new PrefixHashes(async (from) => {
    asked.push(from);
    return (async function* () {
      yield list.subarray(from * OBJECT_ID_BYTES);
    })();
  }, size);
}

test('the prefix hashes belong to the first range, the first two ranges, and the file', () => {
  const ends = [RANGE_BYTES, 2 * RANGE_BYTES, BYTES.length].map((end) => sha256(BYTES.subarray(0, end)));
  assert.ok(hashOf(BYTES).list().equals(Buffer.concat(ends)));
  const even = BYTES.subarray(0, RANGE_BYTES);
  assert.ok(hashOf(even).list().equals(sha256(even)));
  assert.ok(new PrefixHash().list().equals(sha256(Buffer.alloc(0))));
  assert.deepEqual([0, 1, RANGE_BYTES, RANGE_BYTES + 1].map(rangeCount), [1, 1, 1, 2]);
});

test('each range is compared when it is complete, the last one when the file is', async () => {
  const size = BYTES.length;
  const hashes = served(hashOf(BYTES).list(), size);
  const hash = new PrefixHash();
  for (let at = 0; at < size; at += 1_000_000) {
    hash.update(BYTES.subarray(at, at + 1_000_000));
    assert.equal(await hash.check(hashes, size), null);
    assert.equal(hash.isConfirmed(size), at + 1_000_000 >= size);
  }
  assert.equal(await hashes.whole(), sha256(BYTES).toString('hex'));
});

test('from a wrong range on, the bytes are removed and can be replaced', async () => {
  const size = BYTES.length;
  const hashes = served(hashOf(BYTES).list(), size);
  const wrong = Buffer.from(BYTES);
  wrong[RANGE_BYTES + 5] = (wrong[RANGE_BYTES + 5] ?? 0) ^ 1;
  const hash = hashOf(wrong.subarray(0, RANGE_BYTES + 10));
  assert.equal(await hash.check(hashes, size), null, 'the second range is incomplete');
  hash.update(wrong.subarray(RANGE_BYTES + 10, 2 * RANGE_BYTES));
  assert.equal(await hash.check(hashes, size), RANGE_BYTES);
  const cut = hash.cut(RANGE_BYTES);
  assert.ok(cut !== null && cut.length === RANGE_BYTES);
  cut.update(BYTES.subarray(RANGE_BYTES));
  assert.equal(await cut.check(hashes, size), null);
  assert.ok(cut.isConfirmed(size));
  assert.ok(cut.list().equals(hashOf(BYTES).list()));
});

test('a range before the last two is hashed again', async () => {
  const large = someBytes(4 * RANGE_BYTES);
  const wrong = Buffer.from(large);
  wrong[RANGE_BYTES] = (wrong[RANGE_BYTES] ?? 0) ^ 1;
  const hash = hashOf(wrong);
  assert.equal(await hash.check(served(hashOf(large).list(), large.length), large.length), RANGE_BYTES);
  assert.equal(hash.cut(RANGE_BYTES), null);
  assert.equal(hash.cut(0)?.length, 0);
});

test('hashes are requested again from the first missing one', async () => {
  const list = hashOf(BYTES).list();
  const asked: number[] = [];
  const hashes = new PrefixHashes(async (from) => {
    asked.push(from);
    const start = from * OBJECT_ID_BYTES;
    return (async function* () {
      yield list.subarray(start, start + 10);
      yield list.subarray(start + 10, start + 40);
    })();
  }, BYTES.length);
  assert.ok((await hashes.at(0)).equals(list.subarray(0, 32)));
  await assert.rejects(hashes.at(1), { code: 'connect_failed' });
  assert.ok((await hashes.at(1)).equals(list.subarray(32, 64)));
  assert.deepEqual(asked, [0, 1]);
});

test('a sender that sends too many hashes is interrupted, and a closed request ends', async () => {
  const tooMany = served(Buffer.alloc(5 * OBJECT_ID_BYTES), BYTES.length);
  await assert.rejects(tooMany.at(2), { code: 'connect_failed' });
  const silent = new PrefixHashes(
    (_from, signal) => new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
    1,
  );
  const waiting = assert.rejects(silent.at(0), { code: 'connect_failed' });
  silent.close();
  await waiting;
});
