import assert from 'node:assert/strict';
import fs, { copyFileSync, statSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { SvcError } from '../../../src/foundation/errors.ts';
import { JOURNAL_BYTES, SYNC_SOON_MS } from '../../../src/foundation/store/journal.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

const TABLE = 'CREATE TABLE things (n INTEGER PRIMARY KEY, body BLOB)';

function open(t: TestContext): { file: string; store: Store } {
  const file = join(temporaryDirectory(t), 'a.db');
  const store = Store.open(file, [TABLE]);
  store.reserveJournal();
  t.after(() => store.close());
  return { file, store };
}

function add(store: Store, n: number, bytes = 10): void {
  store.run`INSERT INTO things (n, body) VALUES (${n}, ${new Uint8Array(bytes)})`;
}

function numbers(store: Store): number[] {
  return store.all('SELECT n FROM things ORDER BY n').map((row) => Number(row['n']));
}

/** The current content of a database on disk, opened from a copy. */
function copyOf(t: TestContext, file: string): Store {
  const copy = join(temporaryDirectory(t), 'copy.db');
  for (const suffix of ['', '-wal']) copyFileSync(`${file}${suffix}`, `${copy}${suffix}`);
  const store = Store.open(copy, [TABLE]);
  t.after(() => store.close());
  assert.equal(store.one('PRAGMA integrity_check')?.['integrity_check'], 'ok');
  return store;
}

/** Replaces a function of `node:fs` for the rest of the test. */
function instead(t: TestContext, name: 'statfsSync' | 'fdatasync', other: (...args: never[]) => unknown): void {
  t.mock.method(fs, name, other);
  syncBuiltinESMExports();
  t.after(() => {
    t.mock.restoreAll();
    syncBuiltinESMExports();
  });
}

test('the journal has its full size from the start and keeps it', (t) => {
  const { file, store } = open(t);
  const size = (): number => statSync(`${file}-wal`).size;
  assert.equal(size(), JOURNAL_BYTES);
  for (let n = 1; n <= 1500; n++) add(store, n, 3000);
  assert.equal(size(), JOURNAL_BYTES);
  assert.deepEqual(numbers(copyOf(t, file)).length, 1500);
});

test('bytes after the last commit in the journal are ignored at every moment', (t) => {
  const { file, store } = open(t);
  assert.deepEqual(numbers(copyOf(t, file)), []);
  for (const n of [1, 2, 3]) {
    add(store, n);
    assert.deepEqual(
      numbers(copyOf(t, file)),
      Array.from({ length: n }, (_, i) => i + 1),
    );
  }
});

test('a full disk rejects writes although the journal has space, and accepts them after space is freed', (t) => {
  const { file, store } = open(t);
  add(store, 1);
  let free = 0;
  instead(t, 'statfsSync', () => ({ bsize: 1024, blocks: 100, bfree: free }));
  const refused = { code: 'not_writable', message: /free space on the disk/ };
  assert.throws(() => add(store, 2), refused);
  assert.throws(() => store.transaction(() => add(store, 3)), refused);
  assert.throws(() => store.transaction(() => add(store, 4), 'normal'), refused);
  assert.throws(() => store.one`INSERT INTO things (n) VALUES (${7}) RETURNING n`, refused);
  assert.deepEqual([numbers(store), numbers(copyOf(t, file))], [[1], [1]]);
  free = 63;
  assert.throws(() => add(store, 5), refused);
  free = 64;
  store.transaction(() => add(store, 6));
  assert.deepEqual(numbers(store), [1, 6]);
});

test('a database without a reserved journal does not check the disk', (t) => {
  instead(t, 'statfsSync', () => assert.fail('asked'));
  const memory = Store.open(':memory:', [TABLE]);
  memory.reserveJournal();
  add(memory, 1);
  const store = Store.open(join(temporaryDirectory(t), 'a.db'), [TABLE]);
  add(store, 1);
  assert.deepEqual([numbers(memory), numbers(store)], [[1], [1]]);
  memory.close();
  store.close();
});

test('one flush covers several background commits', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const waiting: ((error: Error | null) => void)[] = [];
  instead(t, 'fdatasync', (_: number, done: (error: Error | null) => void) => void waiting.push(done));
  const { store } = open(t);
  assert.equal(waiting.length, 1, 'the new size');
  for (let i = 0; i < 3; i++) store.syncSoon();
  t.mock.timers.tick(SYNC_SOON_MS);
  assert.equal(waiting.length, 1);
  waiting.shift()?.(null);
  assert.equal(waiting.length, 1, 'once more for later commits');
  waiting.shift()?.(null);
  assert.equal(waiting.length, 0);
  for (let i = 0; i < 3; i++) {
    store.syncSoon();
    t.mock.timers.tick(SYNC_SOON_MS / 2 - 1);
  }
  assert.equal(waiting.length, 1, 'the first commit reached the maximum delay');
  waiting.shift()?.(null);
  t.mock.timers.tick(SYNC_SOON_MS);
  assert.equal(waiting.length, 0);
  // A caller that waits for the disk flushes all earlier commits.
  store.syncSoon();
  const { flushed } = store.deferredTransaction(() => add(store, 1));
  assert.equal(waiting.length, 0, 'no flush requested');
  const onDisk = flushed();
  assert.equal(waiting.length, 1);
  waiting.shift()?.(null);
  await onDisk;
  t.mock.timers.tick(SYNC_SOON_MS);
  assert.equal(waiting.length, 0);
});

test('a deferred commit is visible immediately and flushed later', async (t) => {
  const waiting: ((error: Error | null) => void)[] = [];
  instead(t, 'fdatasync', (_: number, done: (error: Error | null) => void) => void waiting.push(done));
  const { store } = open(t);
  waiting.shift()?.(null);
  const told: string[] = [];
  const write = (n: number): Promise<number> => {
    const { result, flushed } = store.deferredTransaction(() => {
      add(store, n);
      return n;
    });
    assert.equal(result, n);
    return flushed().then(
      () => told.push(`${n}`),
      (error: unknown) => told.push(`${n} ${error instanceof SvcError ? error.code : 'another error'}`),
    );
  };
  const first = write(1);
  const others = [write(2), write(3)];
  assert.deepEqual(numbers(store), [1, 2, 3]);
  assert.equal(waiting.length, 1);
  waiting.shift()?.(null);
  await first;
  assert.deepEqual(told, ['1'], 'a later commit waits for the next flush');
  assert.equal(waiting.length, 1, 'one flush for both');
  waiting.shift()?.(Object.assign(new Error('disk failure'), { syscall: 'fdatasync' }));
  await Promise.all(others);
  assert.deepEqual(told, ['1', '2 not_writable', '3 not_writable']);
});

test('without a journal or in another transaction, a deferred commit is flushed with it', async (t) => {
  const plain = Store.open(join(temporaryDirectory(t), 'a.db'), [TABLE]);
  await plain.deferredTransaction(() => add(plain, 1)).flushed();
  assert.deepEqual(numbers(plain), [1]);
  plain.close();
  const { store } = open(t);
  assert.throws(
    () =>
      store.transaction(() => {
        store.deferredTransaction(() => add(store, 2));
        throw new RangeError('rollback');
      }),
    RangeError,
  );
  assert.deepEqual(numbers(store), []);
});
