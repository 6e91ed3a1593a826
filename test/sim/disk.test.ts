import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { Disk, takeDatabases } from '../../sim/disk.ts';
import { Random } from '../support/random.ts';

const flushes: (() => void)[] = [];
takeDatabases((task) => void flushes.push(task));
syncBuiltinESMExports();
const { Store } = await import('../../src/foundation/store/store.ts');
type TestStore = ReturnType<typeof Store.open>;

const directory = mkdtempSync(join(tmpdir(), 'svcd-disk-'));
after(() => rmSync(directory, { recursive: true }));

let disks = 0;
let cuts = 0;

function newDisk(): { disk: Disk; store: TestStore } {
  const disk = new Disk(join(directory, `disk${disks++}`), new Random(disks));
  const store = Store.open(join(disk.directory, 'a.db'), ['CREATE TABLE t (n INTEGER)']);
  store.reserveJournal();
  flush();
  return { disk, store };
}

function flush(): void {
  for (const task of flushes.splice(0)) task();
}

function add(store: TestStore, n: number): void {
  store.run`INSERT INTO t (n) VALUES (${n})`;
}

/** The rows after a power cut. */
function afterPowerCut(disk: Disk): unknown[] {
  const copy = join(directory, `cut${cuts++}`);
  disk.copyAfterPowerCut(copy);
  const store = Store.open(join(copy, 'a.db'), ['CREATE TABLE t (n INTEGER)']);
  assert.equal(store.one('PRAGMA integrity_check')?.['integrity_check'], 'ok');
  const rows = store.all('SELECT n FROM t ORDER BY n').map(({ n }) => n);
  store.close();
  return rows;
}

test('transactions and flushed commits survive a power cut', async () => {
  const { disk, store } = newDisk();
  store.transaction(() => add(store, 1));
  const commit = store.commit(() => add(store, 2), 'now');
  flush();
  await commit;
  assert.deepEqual(afterPowerCut(disk), [1, 2]);
  store.close();
});

test('transactions after a database was closed and opened again survive a power cut', () => {
  const { disk, store: first } = newDisk();
  first.transaction(() => add(first, 1));
  first.close();
  const store = Store.open(join(disk.directory, 'a.db'), ['CREATE TABLE t (n INTEGER)']);
  const rows = Array.from({ length: 20 }, (_, index) => index + 2);
  for (const n of rows) store.transaction(() => add(store, n));
  assert.deepEqual(afterPowerCut(disk), [1, ...rows]);
  store.close();
});

test('a flush that ends after the journal was started again does not undo later flushes', () => {
  const { disk, store } = newDisk();
  store.commit(() => add(store, 1), 'now').catch(() => {});
  store.durableTransaction(() => add(store, 2));
  store.transaction(() => add(store, 3));
  flush();
  assert.deepEqual(afterPowerCut(disk), [1, 2, 3]);
  store.close();
});

test('commits that were not flushed may be lost in a power cut, in their order', () => {
  const { disk, store } = newDisk();
  add(store, 0);
  for (let n = 1; n <= 20; n++) store.commit(() => add(store, n), 'soon');
  const lengths = new Set<number>();
  for (let i = 0; i < 20; i++) {
    const rows = afterPowerCut(disk);
    lengths.add(rows.length);
    assert.deepEqual(
      rows,
      rows.map((_, n) => n),
    );
  }
  assert.ok([...lengths].every((length) => length >= 1));
  assert.ok([...lengths].some((length) => length < 21));
  store.close();
});

test('a later flush does not save what a failed one has lost', async () => {
  const { disk, store } = newDisk();
  disk.faults.failingFlushes = 1;
  const lost = store.commit(() => add(store, 1), 'now');
  const commit = store.commit(() => add(store, 2), 'now');
  flush();
  await assert.rejects(lost, { code: 'not_writable' });
  disk.faults.failingFlushes = 0;
  flush();
  await commit;
  // Frames that were not flushed may be on the disk nevertheless.
  for (let i = 0; i < 10; i++) assert.ok(afterPowerCut(disk).includes(2));
  store.close();
});

test('a full disk and read errors fail statements', () => {
  const { disk, store } = newDisk();
  disk.faults.isFull = true;
  assert.throws(() => add(store, 1), { code: 'not_writable' });
  disk.faults.isFull = false;
  disk.faults.failingReads = 1;
  assert.throws(() => store.all('SELECT n FROM t'), { code: 'not_writable' });
  disk.faults.failingReads = 0;
  assert.deepEqual(store.all('SELECT n FROM t'), []);
  store.close();
});
