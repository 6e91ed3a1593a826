import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openRecords } from '../../../src/network/records/record-store.ts';
import { Tombstones } from '../../../src/network/records/replication-queue.ts';

const TOKEN = new Uint8Array(16);

const LIMIT = 100_000;
/** The maximum number of tombstones. The first one expires last. */
const FILL = `
  INSERT INTO removed_notes (digest, token, until)
  WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${LIMIT - 1})
  SELECT CAST(printf('%08d', n) AS BLOB), zeroblob(16), ${2 * LIMIT} - n FROM numbers`;

function digest(n: number): Uint8Array {
  return Buffer.from(String(n).padStart(8, '0'));
}

test('a tombstone is stored as long as a copy may exist. Above the limit, the last to expire are kept', () => {
  const { store } = openRecords(':memory:', assert.fail);
  const tombstones = new Tombstones(() => store);
  store.run(FILL);
  tombstones.purge(LIMIT);
  const isKnown = (n: number): boolean => tombstones.tokenOf(digest(n)) !== null;
  assert.deepEqual([0, LIMIT - 1].map(isKnown), [true, true]);
  tombstones.add(digest(LIMIT), TOKEN, 3 * LIMIT);
  tombstones.purge(LIMIT);
  assert.deepEqual([0, LIMIT - 2, LIMIT - 1, LIMIT].map(isKnown), [true, true, false, true]);
  tombstones.purge(2 * LIMIT);
  assert.deepEqual([0, 1, LIMIT].map(isKnown), [true, false, true]);
  store.close();
});
