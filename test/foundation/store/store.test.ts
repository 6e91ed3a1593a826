import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import fs, { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { SvcError } from '../../../src/foundation/errors.ts';
import { MetaStore } from '../../../src/foundation/store/meta.ts';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { slowDisk } from '../../support/slow-disk.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';
import { ROWS } from './rows.ts';

const NOTES = "ALTER TABLE rows ADD COLUMN note TEXT NOT NULL DEFAULT 'n'";

function memory(): Store {
  return Store.open(':memory:', [ROWS]);
}

function pairs(store: Store): number[] {
  return store.all('SELECT pair FROM rows ORDER BY id').map((row) => Number(row['pair']));
}

function add(store: Store, pair: number): void {
  store.run('INSERT INTO rows (pair) VALUES (?)', pair);
}

function fails(code: string, message: RegExp) {
  return (error: unknown) => {
    assert.ok(error instanceof SvcError);
    assert.equal(error.code, code);
    assert.match(error.message, message);
    return true;
  };
}

test('runs new migrations once and keeps the data', (t) => {
  const file = join(temporaryDirectory(t), 'a.db');
  let store = Store.open(file, [ROWS]);
  add(store, 7);
  store.close();
  for (let round = 0; round < 2; round += 1) {
    store = Store.open(file, [ROWS, NOTES]);
    assert.deepEqual({ ...store.one('SELECT pair, note FROM rows') }, { pair: 7, note: 'n' });
    assert.equal(store.one('PRAGMA user_version')?.['user_version'], 2);
    store.close();
  }
});

test('a failed migration undoes earlier ones', (t) => {
  const file = join(temporaryDirectory(t), 'a.db');
  const broken = 'CREATE TABLE more (x); CREATE TABLE rows (x)';
  assert.throws(() => Store.open(file, [ROWS, broken]), fails('store_corrupt', /a\.db cannot be opened/));
  const store = Store.open(file, []);
  assert.equal(store.one('PRAGMA user_version')?.['user_version'], 0);
  assert.deepEqual(store.all('SELECT name FROM sqlite_schema'), []);
  store.close();
});

test('rejects a newer schema without changes', (t) => {
  const file = join(temporaryDirectory(t), 'a.db');
  Store.open(file, [ROWS, NOTES]).close();
  assert.throws(
    () => Store.open(file, [ROWS]),
    fails('store_corrupt', /has schema version 2; this svcd supports up to 1\. Update svcd/),
  );
  const store = Store.open(file, [ROWS, NOTES]);
  assert.deepEqual(pairs(store), []);
  store.close();
});

test('rejects a damaged file without changes', (t) => {
  const file = join(temporaryDirectory(t), 'a.db');
  const good = Store.open(file, [ROWS]);
  for (let i = 0; i < 100; i += 1) good.run('INSERT INTO rows (data) VALUES (?)', new Uint8Array(1000).fill(i));
  good.close();
  const bytes = readFileSync(file);
  for (const damaged of [Buffer.from('not a database'.repeat(100)), bytes.subarray(0, 4096 + 100)]) {
    writeFileSync(file, damaged);
    assert.throws(() => Store.open(file, [ROWS]).all('SELECT * FROM rows'), fails('store_corrupt', /damaged/));
    assert.deepEqual(readFileSync(file), damaged);
  }
});

test('reports damage that is found later', (t) => {
  const file = join(temporaryDirectory(t), 'a.db');
  const good = Store.open(file, [ROWS]);
  for (let i = 0; i < 100; i += 1) good.run('INSERT INTO rows (data) VALUES (?)', new Uint8Array(1000).fill(i));
  good.close();
  const bytes = readFileSync(file);
  writeFileSync(file, bytes.fill(0xff, 4096));
  const store = Store.open(file, [ROWS]);
  t.after(() => store.close());
  assert.throws(() => pairs(store), fails('store_corrupt', /^The database is damaged/));
  assert.throws(() => store.transaction(() => pairs(store)), fails('store_corrupt', /^The database is damaged/));
});

test('reports an unusable file', (t) => {
  const directory = temporaryDirectory(t);
  assert.throws(
    () => Store.open(join(directory, 'absent', 'a.db'), [ROWS]),
    fails('not_writable', /cannot be written/),
  );
  assert.throws(() => Store.open(directory, [ROWS]), fails('not_writable', /cannot be written/));
});

test('a file on a read-only disk is not reported as damaged', (t) => {
  const file = join(temporaryDirectory(t), 'a.db');
  Store.open(file, [ROWS]).close();
  t.mock.method(fs, 'chmodSync', () => {
    throw Object.assign(new Error('no'), { code: 'EROFS', syscall: 'chmod' });
  });
  syncBuiltinESMExports();
  t.after(() => {
    t.mock.restoreAll();
    syncBuiltinESMExports();
  });
  assert.throws(
    () => Store.open(file, [ROWS]),
    fails('not_writable', /a\.db cannot be written \(EROFS\): the disk is mounted read-only/),
  );
});

test('a full disk rolls back, and the store continues to work', () => {
  const store = memory();
  add(store, 1);
  store.run('PRAGMA max_page_count = 8');
  const fill = () => {
    for (let i = 0; i < 100; i += 1) store.run('INSERT INTO rows (pair, data) VALUES (2, ?)', new Uint8Array(4096));
  };
  assert.throws(() => store.transaction(fill), fails('not_writable', /free space/));
  assert.deepEqual(pairs(store), [1]);
  store.transaction(() => add(store, 3));
  assert.deepEqual(pairs(store), [1, 3]);
});

test('only the owner can access it and its journal', (t) => {
  const directory = temporaryDirectory(t);
  const store = Store.open(join(directory, 'a.db'), [ROWS]);
  t.after(() => store.close());
  const files = readdirSync(directory).sort();
  assert.deepEqual(files, ['a.db', 'a.db-shm', 'a.db-wal']);
  for (const name of files) assert.equal(statSync(join(directory, name)).mode & 0o777, 0o600, name);
});

test('has the requested durability', (t) => {
  const directory = temporaryDirectory(t);
  for (const [durability, level] of [
    ['full', 2],
    ['normal', 1],
  ] as const) {
    const store = Store.open(join(directory, `${durability}.db`), [], durability);
    assert.equal(store.one('PRAGMA synchronous')?.['synchronous'], level);
    assert.equal(store.one('PRAGMA journal_mode')?.['journal_mode'], 'wal');
    assert.equal(store.one('PRAGMA foreign_keys')?.['foreign_keys'], 1);
    store.close();
  }
});

test('only a commit that is flushed separately is less durable than the store', async (t) => {
  const store = Store.open(join(temporaryDirectory(t), 'a.db'), [ROWS]);
  t.after(() => store.close());
  const level = () => store.one('PRAGMA synchronous')?.['synchronous'];
  assert.equal(store.commit(level, 'soon'), 1);
  assert.equal(level(), 2);
  const boom = () => {
    throw new Error('no');
  };
  assert.throws(() => store.commit(boom, 'soon'), /no/);
  assert.equal(level(), 2);
  assert.equal(await store.commit(level, 'now'), 2, 'nothing else flushes it');
  store.reserveJournal();
  assert.equal(await store.commit(level, 'now'), 1);
  await assert.rejects(store.commit(boom, 'now'), /no/);
  assert.equal(store.transaction(level), 2);
  assert.equal(
    store.transaction(() => store.commit(level, 'soon')),
    2,
  );
  assert.equal(
    store.commit(() => store.transaction(level), 'soon'),
    1,
  );
});

test('the repair after a failed flush is reported before any later commit', async (t) => {
  const disk = slowDisk(t);
  const store = Store.open(join(temporaryDirectory(t), 'a.db'), [ROWS]);
  t.after(() => store.close());
  store.reserveJournal();
  disk.complete();
  let repairs = 0;
  store.onRepair(() => repairs++);
  const failed = store.commit(() => {}, 'now');
  disk.complete(Object.assign(new Error('EIO'), { code: 'EIO', syscall: 'fdatasync' }));
  await assert.rejects(failed, { code: 'not_writable' });
  assert.equal(repairs, 0);
  store.transaction(() => {});
  assert.equal(repairs, 1);
  store.transaction(() => {});
  assert.equal(repairs, 1);
});

test('a statement returns the number of changed rows', () => {
  const store = memory();
  for (const pair of [1, 2, 2]) add(store, pair);
  assert.equal(store.run('UPDATE rows SET pair = 3 WHERE pair = 2'), 2);
  assert.equal(store.run('DELETE FROM rows WHERE pair = 2'), 0);
  assert.equal(store.one('SELECT * FROM rows WHERE pair = 2'), undefined);
});

test('a transaction is committed, or rolled back by an error', () => {
  const store = memory();
  assert.equal(
    store.transaction(() => (add(store, 1), 'result')),
    'result',
  );
  const cause = new Error('no');
  assert.throws(
    () =>
      store.transaction(() => {
        add(store, 2);
        throw cause;
      }),
    cause,
  );
  assert.deepEqual(pairs(store), [1]);
});

test('a nested transaction is rolled back alone if its error is caught, and always with the outer one', () => {
  const store = memory();
  const boom = () => {
    throw new Error('no');
  };
  store.transaction(() => {
    add(store, 1);
    assert.throws(() =>
      store.transaction(() => {
        add(store, 2);
        store.transaction(() => add(store, 3));
        boom();
      }),
    );
    store.transaction(() => add(store, 4));
  });
  assert.deepEqual(pairs(store), [1, 4]);
  assert.throws(() =>
    store.transaction(() => {
      store.transaction(() => add(store, 5));
      boom();
    }),
  );
  assert.deepEqual(pairs(store), [1, 4]);
});

test('an asynchronous transaction is rolled back', () => {
  const store = memory();
  assert.throws(() => store.transaction(async () => add(store, 1)), TypeError);
  assert.deepEqual(pairs(store), []);
});

test('a constraint error reaches the caller unchanged', () => {
  const store = memory();
  store.run('INSERT INTO rows (id) VALUES (1)');
  assert.throws(() => store.run('INSERT INTO rows (id) VALUES (1)'), { code: 'ERR_SQLITE_ERROR', message: /UNIQUE/ });
});

test('meta stores JSON values under keys across restarts', (t) => {
  const file = join(temporaryDirectory(t), 'a.db');
  let store = Store.open(file, MIGRATIONS);
  const meta = new MetaStore(store);
  assert.equal(meta.get('a'), undefined);
  for (const value of [null, false, 0, '', 'x', [1, 'y'], { z: { deep: [true] } }]) {
    meta.set('a', value);
    assert.deepEqual(meta.get('a'), value);
  }
  store.close();
  store = Store.open(file, MIGRATIONS);
  assert.deepEqual(new MetaStore(store).get('a'), { z: { deep: [true] } });
  store.close();
});

/** Starts the writer. Resolves when it prints `line`. */
async function writer(
  t: TestContext,
  file: string,
  what: string,
  line: string,
): Promise<{ child: ChildProcess; output: string[] }> {
  const child = spawn(process.execPath, [fileURLToPath(new URL('./write-forever.ts', import.meta.url)), file, what], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => child.kill('SIGKILL'));
  const output: string[] = [];
  const lines = createInterface({ input: child.stdout });
  await new Promise<void>((resolve, reject) => {
    lines.on('line', (text) => {
      output.push(text);
      if (text === line) resolve();
    });
    child.once('exit', () => reject(new Error('the writer exited')));
  });
  return { child, output };
}

async function kill(child: ChildProcess): Promise<void> {
  const gone = once(child, 'close');
  child.kill('SIGKILL');
  await gone;
}

function reopen(t: TestContext, file: string): Store {
  const store = Store.open(file, [ROWS]);
  t.after(() => store.close());
  assert.equal(store.one('PRAGMA integrity_check')?.['integrity_check'], 'ok');
  return store;
}

test('SIGKILL during a transaction leaves none of its rows', async (t) => {
  const file = join(temporaryDirectory(t), 'a.db');
  const first = Store.open(file, [ROWS]);
  add(first, 1);
  first.close();
  const { child } = await writer(t, file, 'half', 'half');
  assert.ok(statSync(`${file}-wal`).size > 1_000_000, 'uncommitted rows are on disk');
  await kill(child);
  assert.deepEqual(pairs(reopen(t, file)), [1]);
});

test('SIGKILL among many commits loses no acknowledged commit and keeps no partial one', async (t) => {
  const directory = temporaryDirectory(t);
  for (const line of ['3', '20', '60']) {
    const file = join(directory, `${line}.db`);
    const { child, output } = await writer(t, file, 'pairs', line);
    await kill(child);
    const kept = pairs(reopen(t, file));
    const acknowledged = Number(output.at(-1));
    assert.ok(acknowledged >= Number(line));
    assert.ok([acknowledged, acknowledged + 1].includes(kept.length / 2), `${kept.length} rows, ${acknowledged} pairs`);
    assert.deepEqual(
      kept,
      Array.from({ length: kept.length }, (_, i) => Math.floor(i / 2) + 1),
    );
  }
});
