import assert from 'node:assert/strict';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import { DatabaseSnapshot } from '../../../src/daemon/service/snapshot.ts';
import { LOCK_FILE_NAME } from '../../../src/foundation/data-dir/lock.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

/** Runs a script on a database and closes it. */
function change(file: string, script: string): void {
  const database = new DatabaseSync(file);
  database.exec(script);
  database.close();
}

function namesIn(file: string): unknown[] {
  const database = new DatabaseSync(file);
  const rows = database.prepare('SELECT name FROM things ORDER BY name').all();
  database.close();
  return rows.map(({ name }) => name);
}

function setUp(t: TestContext) {
  const dataDir = temporaryDirectory(t);
  const directory = join(dataDir, 'releases', '.before');
  const [main, records] = ['svcd.db', 'records.db'].map((name) => join(dataDir, name));
  assert.ok(main !== undefined && records !== undefined);
  for (const file of [main, records])
    change(file, "PRAGMA user_version = 3; CREATE TABLE things (name TEXT); INSERT INTO things VALUES ('mine')");
  return { dataDir, directory, main, records, snapshot: new DatabaseSnapshot(dataDir, directory) };
}

test('a database with a changed schema is restored, others keep their new content', (t) => {
  const { snapshot, main, records } = setUp(t);
  snapshot.take();
  change(main, "PRAGMA user_version = 4; DELETE FROM things; INSERT INTO things VALUES ('ruined')");
  change(records, "INSERT INTO things VALUES ('new')");
  writeFileSync(`${main}-wal`, 'of the newer release');
  snapshot.restore();
  assert.deepEqual(namesIn(main), ['mine']);
  assert.deepEqual(namesIn(records), ['mine', 'new']);
  assert.ok(!existsSync(`${main}-wal`));
  snapshot.restore();
  assert.deepEqual(namesIn(main), ['mine'], 'restore can be repeated');
});

test('an incomplete copy after a power failure does not replace a database', (t) => {
  const { snapshot, directory, main } = setUp(t);
  change(main, `INSERT INTO things SELECT hex(zeroblob(3000)) FROM (VALUES (1), (2), (3), (4), (5))`);
  for (const size of [0, 100, 4096]) {
    snapshot.take();
    truncateSync(join(directory, 'svcd.db'), size);
    change(main, 'PRAGMA user_version = 4');
    snapshot.restore();
    assert.ok(namesIn(main).includes('mine'), `${size} bytes`);
  }
});

test('a database that the newer release removed is restored', (t) => {
  const { snapshot, main } = setUp(t);
  snapshot.take();
  rmSync(main);
  snapshot.restore();
  assert.deepEqual(namesIn(main), ['mine']);
});

test('databases are copied with their logs, for the owner only, and nothing else is copied', (t) => {
  const { dataDir, snapshot, directory, main } = setUp(t);
  const open = new DatabaseSync(main);
  open.exec("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; INSERT INTO things VALUES ('in the log')");
  writeFileSync(join(dataDir, LOCK_FILE_NAME), '');
  writeFileSync(join(dataDir, 'config.toml'), '');
  // As after a killed daemon: the log is next to the database.
  const copies = ['svcd.db', 'svcd.db-wal'].map((name) => [name, readFileSync(join(dataDir, name))] as const);
  open.close();
  for (const [name, bytes] of copies) writeFileSync(join(dataDir, name), bytes);
  snapshot.take();
  assert.deepEqual(readdirSync(directory).sort(), ['records.db', 'svcd.db']);
  assert.equal(statSync(directory).mode & 0o777, 0o700);
  assert.deepEqual(namesIn(join(directory, 'svcd.db')), ['in the log', 'mine']);
});

test('a failed copy leaves nothing behind, and the newest copy replaces the previous one', (t) => {
  const { dataDir, snapshot, directory } = setUp(t);
  snapshot.take();
  mkdirSync(join(dataDir, 'folder.db'));
  assert.throws(() => snapshot.take());
  assert.ok(!existsSync(directory), 'no partial copy that could be restored');
  rmSync(join(dataDir, 'folder.db'), { recursive: true });
  snapshot.take();
  rmSync(join(dataDir, 'records.db'));
  snapshot.take();
  assert.deepEqual(readdirSync(directory), ['svcd.db']);
});

test('without copies there is nothing to restore', (t) => {
  const { snapshot, main, directory } = setUp(t);
  snapshot.restore();
  snapshot.take();
  snapshot.remove();
  snapshot.remove();
  assert.ok(!existsSync(directory));
  change(main, 'PRAGMA user_version = 4; DELETE FROM things');
  snapshot.restore();
  assert.deepEqual(namesIn(main), []);
});
