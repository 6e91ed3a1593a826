import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { finishRestore, READY, REPLACES_FILE, STAGING } from '../../../src/foundation/data-dir/finish-restore.ts';
import { recordFileSteps } from '../../support/file-steps.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

/** Makes files with their own names as texts, below a directory. */
function files(directory: string, ...names: readonly string[]): void {
  for (const name of names) {
    mkdirSync(join(directory, name, '..'), { recursive: true });
    writeFileSync(join(directory, name), name);
  }
}

test('changes nothing without a complete restore', (t) => {
  const directory = temporaryDirectory(t);
  files(directory, 'svcd.db', `${STAGING}/svcd.db`);
  finishRestore(directory);
  assert.deepEqual(readdirSync(directory), ['svcd.db']);
});

test('replaces the old files with the staged ones, step by step', (t) => {
  const directory = temporaryDirectory(t);
  const old = ['svcd.db', 'svcd.db-wal', 'svcd.db-shm', 'config.toml', 'config.toml.bak', 'keys/node.key'];
  files(directory, ...old, 'records.db', `${READY}/svcd.db`, `${READY}/keys/new.key`);
  writeFileSync(join(directory, READY, REPLACES_FILE), 'aside');
  const recorded = recordFileSteps(t, directory);
  finishRestore(directory);
  const moved = ['svcd.db', 'svcd.db-wal', 'svcd.db-shm', 'config.toml', 'config.toml.bak', 'keys'];
  const steps = [...recorded.steps];
  // A directory is read in any order.
  const placed = steps.splice(-3, 2);
  assert.deepEqual(steps, [
    ...moved.flatMap((name) => [`rename ${name} aside/${name}`, 'sync aside']),
    'sync .',
    `rename ${READY} restore.placing`,
    'sync .',
    'sync .',
  ]);
  assert.deepEqual(
    new Set(placed),
    new Set(['rename restore.placing/keys keys', 'rename restore.placing/svcd.db svcd.db']),
  );
  assert.deepEqual(recorded.open(), []);
  assert.deepEqual(readdirSync(directory).sort(), ['aside', 'keys', 'records.db', 'svcd.db']);
  assert.equal(readFileSync(join(directory, 'svcd.db'), 'utf8'), `${READY}/svcd.db`);
  assert.deepEqual(readdirSync(join(directory, 'aside')).sort(), [...moved].sort());
  assert.equal(statSync(join(directory, 'aside')).mode & 0o777, 0o700);
});

test('creates no backup directory if nothing was replaced', (t) => {
  const directory = temporaryDirectory(t);
  files(directory, `${READY}/svcd.db`);
  writeFileSync(join(directory, READY, REPLACES_FILE), 'aside');
  finishRestore(directory);
  assert.deepEqual(readdirSync(directory), ['svcd.db']);
});

test('explains why a restore cannot continue, and continues after a fix', (t) => {
  const directory = temporaryDirectory(t);
  files(directory, `${READY}/svcd.db`, 'svcd.db', 'aside');
  writeFileSync(join(directory, READY, REPLACES_FILE), 'aside');
  assert.throws(() => finishRestore(directory), { code: 'not_writable', message: /could not be finished \(EEXIST\)/ });
  assert.ok(existsSync(join(directory, 'svcd.db')));
  rmSync(join(directory, 'aside'));
  finishRestore(directory);
  assert.deepEqual(readdirSync(directory).sort(), ['aside', 'svcd.db']);
});
