import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { serviceKey } from '../../../src/foundation/records/keys.ts';
import { RECORD } from '../../../src/foundation/records/types.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { KeyRows } from '../../../src/network/records/key-rows.ts';
import { RECORD_STORE_MIGRATIONS } from '../../../src/network/records/record-store.ts';

const NOW = 1_700_000_000;

/** Rows without records: `type`, `part` and the expiry. */
function world(t: TestContext) {
  const store = Store.open(':memory:', RECORD_STORE_MIGRATIONS);
  t.after(() => store.close());
  const rows = new KeyRows(() => store);
  let note = 0;
  const insert = (key: Uint8Array, type: number, part: number, expiresAt = NOW + 60): void =>
    void store.run(
      `INSERT INTO records
         (key, type, aid, note, part, issued_at, seq, timestamp, expires_at, publisher, size, digest, encoded, heard_at)
       VALUES (?, ?, 'a', ?, ?, 0, 0, 0, ?, 'p', 300, ?, ?, 0)`,
      key,
      type,
      ++note,
      part,
      expiresAt,
      new Uint8Array(16).fill(note & 255),
      new Uint8Array(1),
    );
  const partsOf = (key: Uint8Array, selection: Parameters<KeyRows['select']>[1], now = NOW): number[] =>
    [...rows.select(key, selection, now)].map(({ part }) => part);
  return { store, rows, insert, partsOf };
}

const KEY = serviceKey('lang.translate');

test('rows are selected by type, part and time, in the order of their parts', (t) => {
  const { insert, partsOf } = world(t);
  for (const part of [7, 3, 5, 4]) insert(KEY, part > 4 ? RECORD.service : RECORD.profile, part);
  insert(KEY, RECORD.service, 9, NOW - 1);
  insert(KEY, RECORD.service, 8, NOW);
  insert(serviceKey('another'), RECORD.service, 1);
  assert.deepEqual(partsOf(KEY, { types: [] }), [3, 4, 5, 7, 8]);
  assert.deepEqual(partsOf(KEY, { types: [] }, NOW + 1), [3, 4, 5, 7]);
  assert.deepEqual(partsOf(KEY, { types: [RECORD.service] }), [5, 7, 8]);
  assert.deepEqual(partsOf(KEY, { types: [RECORD.profile, RECORD.service], part: { index: 1, of: 2 } }), [3, 5, 7]);
});

test('rows are cached until a change is reported, and so is an empty result', (t) => {
  const { rows, insert, partsOf } = world(t);
  assert.deepEqual(partsOf(KEY, { types: [] }), []);
  assert.equal(rows.has(KEY), true);
  insert(KEY, RECORD.service, 1);
  assert.deepEqual(partsOf(KEY, { types: [] }), []);
  rows.forget(KEY);
  assert.equal(rows.has(KEY), false);
  assert.equal(rows.read(KEY), 1);
  assert.equal(rows.summarize(KEY, { types: [] }, NOW).count, 1);
});

test('the cache keeps the most recently used keys within a byte limit', (t) => {
  const { store, rows, insert } = world(t);
  // With 444 bytes per row, 34 of these keys fit.
  const keys = Array.from({ length: 36 }, (_, i) => new Uint8Array(32).fill(i));
  store.transaction(() => {
    for (const key of keys) for (let part = 0; part < 1100; part++) insert(key, RECORD.service, part);
  });
  for (const key of keys.slice(0, 34)) rows.read(key);
  assert.ok(keys.slice(0, 34).every((key) => rows.has(key)));
  rows.read(keys[0] ?? KEY);
  rows.read(keys[34] ?? KEY);
  assert.deepEqual(
    keys.map((key) => rows.has(key)).flatMap((has, i) => (has ? [] : [i])),
    [1, 35],
  );
});

test('keys without rows use cache space too', (t) => {
  const { rows } = world(t);
  const key = (i: number): Uint8Array => new Uint8Array(new Uint32Array(8).fill(i).buffer);
  for (let i = 0; i < 42_000; i++) rows.read(key(i));
  assert.equal(rows.has(key(0)), false);
  assert.equal(rows.has(key(41_999)), true);
});

test('large keys do not evict small ones', (t) => {
  const { store, rows, insert } = world(t);
  insert(KEY, RECORD.service, 1);
  assert.equal(rows.read(KEY), 1);
  const large = Array.from({ length: 40 }, (_, i) => new Uint8Array(32).fill(i));
  store.transaction(() => {
    for (const key of large) for (let part = 0; part < 1100; part++) insert(key, RECORD.service, part);
  });
  for (const key of large) rows.read(key);
  assert.equal(rows.has(large[0] ?? KEY), false, 'large keys evict each other');
  assert.equal(rows.has(KEY), true);
});
