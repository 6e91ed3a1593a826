import assert from 'node:assert/strict';
import { copyFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { SvcError } from '../../../src/foundation/errors.ts';
import { JOURNAL_BYTES, SYNC_SOON_MS } from '../../../src/foundation/store/journal.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { replaceInFs, slowDisk } from '../../support/slow-disk.ts';
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

test('a full disk rejects writes although the journal has space, and accepts them after space is freed', async (t) => {
  const { file, store } = open(t);
  add(store, 1);
  let free = 0;
  replaceInFs(t, 'statfsSync', () => ({ bsize: 1024, blocks: 100, bfree: free }));
  const refused = { code: 'not_writable', message: /free space on the disk/ };
  assert.throws(() => add(store, 2), refused);
  assert.throws(() => store.transaction(() => add(store, 3)), refused);
  assert.throws(() => store.commit(() => add(store, 4), 'soon'), refused);
  await assert.rejects(
    store.commit(() => add(store, 8), 'now'),
    refused,
  );
  assert.throws(() => store.one`INSERT INTO things (n) VALUES (${7}) RETURNING n`, refused);
  assert.deepEqual([numbers(store), numbers(copyOf(t, file))], [[1], [1]]);
  free = 63;
  assert.throws(() => add(store, 5), refused);
  free = 64;
  store.transaction(() => add(store, 6));
  assert.deepEqual(numbers(store), [1, 6]);
});

test('a database without a reserved journal does not check the disk', (t) => {
  replaceInFs(t, 'statfsSync', () => assert.fail('asked'));
  const memory = Store.open(':memory:', [TABLE]);
  memory.reserveJournal();
  add(memory, 1);
  const store = Store.open(join(temporaryDirectory(t), 'a.db'), [TABLE]);
  add(store, 1);
  assert.deepEqual([numbers(memory), numbers(store)], [[1], [1]]);
  memory.close();
  store.close();
});

test('a commit for soon is flushed within the documented time, with all commits until then', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const disk = slowDisk(t);
  const { store } = open(t);
  assert.equal(disk.pending.length, 1, 'the new size');
  for (const n of [1, 2, 3]) store.commit(() => add(store, n), 'soon');
  t.mock.timers.tick(SYNC_SOON_MS);
  assert.equal(disk.pending.length, 1);
  disk.complete();
  assert.equal(disk.pending.length, 1, 'once more for later commits');
  disk.complete();
  assert.equal(disk.pending.length, 0);
  for (const n of [4, 5, 6]) {
    store.commit(() => add(store, n), 'soon');
    t.mock.timers.tick(SYNC_SOON_MS / 2 - 1);
  }
  assert.equal(disk.pending.length, 1, 'the first commit reached the maximum delay');
  disk.complete();
  t.mock.timers.tick(SYNC_SOON_MS);
  assert.equal(disk.pending.length, 0);
  assert.deepEqual(numbers(store), [1, 2, 3, 4, 5, 6]);
});

test('a commit for now also flushes earlier commits for soon', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const disk = slowDisk(t);
  const { store } = open(t);
  disk.complete();
  store.commit(() => add(store, 1), 'soon');
  const onDisk = store.commit(() => add(store, 2), 'now');
  assert.equal(disk.pending.length, 1);
  disk.complete();
  await onDisk;
  t.mock.timers.tick(SYNC_SOON_MS);
  assert.equal(disk.pending.length, 0);
});

test('a commit for now is visible immediately and resolves after its flush', async (t) => {
  const disk = slowDisk(t);
  const { store } = open(t);
  disk.complete();
  const reported: string[] = [];
  const write = (n: number): Promise<unknown> =>
    store
      .commit(() => {
        add(store, n);
        return n;
      }, 'now')
      .then(
        (result) => reported.push(`${result}`),
        (error: unknown) => reported.push(`${n} ${error instanceof SvcError ? error.code : 'another error'}`),
      );
  const first = write(1);
  const others = [write(2), write(3), write(2)];
  assert.deepEqual(numbers(store), [1, 2, 3]);
  assert.equal(disk.pending.length, 1);
  disk.complete();
  await first;
  await others[2];
  assert.deepEqual(reported.toSorted(), ['1', '2 another error'], 'a later commit waits for the next flush');
  assert.equal(disk.pending.length, 1, 'one flush for both');
  disk.complete(Object.assign(new Error('disk failure'), { syscall: 'fdatasync' }));
  await Promise.all(others);
  assert.deepEqual(reported.slice(2), ['2 not_writable', '3 not_writable']);
});

test('after a failed flush, the next commit copies everything to the database', async (t) => {
  const disk = slowDisk(t);
  const { file, store } = open(t);
  disk.complete();
  const lost = store.commit(() => add(store, 1), 'now');
  disk.complete(Object.assign(new Error('disk failure'), { syscall: 'fdatasync' }));
  await assert.rejects(lost, { code: 'not_writable' });
  const next = store.commit(() => add(store, 2), 'now');
  disk.complete();
  await next;
  // The journal of the copy is missing, as if the system had never written it.
  const copy = join(temporaryDirectory(t), 'copy.db');
  copyFileSync(file, copy);
  const again = Store.open(copy, [TABLE]);
  t.after(() => again.close());
  assert.deepEqual(numbers(again), [1, 2]);
});

test('a commit that waited during a failed flush is in the database when it resolves', async (t) => {
  const disk = slowDisk(t);
  const { file, store } = open(t);
  disk.complete();
  const lost = store.commit(() => add(store, 1), 'now');
  // It is behind the first commit in the journal: without that one, it is lost too.
  const next = store.commit(() => add(store, 2), 'now');
  disk.complete(Object.assign(new Error('disk failure'), { syscall: 'fdatasync' }));
  await assert.rejects(lost, { code: 'not_writable' });
  disk.complete();
  await next;
  const copy = join(temporaryDirectory(t), 'copy.db');
  copyFileSync(file, copy);
  const again = Store.open(copy, [TABLE]);
  t.after(() => again.close());
  assert.deepEqual(numbers(again), [1, 2]);
});

test('without a journal, a commit for now is on disk immediately', async (t) => {
  const plain = Store.open(join(temporaryDirectory(t), 'a.db'), [TABLE]);
  await plain.commit(() => add(plain, 1), 'now');
  assert.deepEqual(numbers(plain), [1]);
  plain.close();
});

test('in a transaction, a commit for soon belongs to it, and a commit for now is rejected', async (t) => {
  const { store } = open(t);
  assert.throws(
    () =>
      store.transaction(() => {
        store.commit(() => add(store, 2), 'soon');
        throw new RangeError('rollback');
      }),
    RangeError,
  );
  const inside = store.transaction(() => ({ commit: store.commit(() => add(store, 3), 'now') }));
  await assert.rejects(inside.commit, /cannot wait for the disk/);
  assert.deepEqual(numbers(store), []);
});
