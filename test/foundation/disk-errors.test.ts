import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { describeDiskError } from '../../src/foundation/files.ts';
import { run } from '../support/programs.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

test('disk errors have advice, or the code if they are unknown', () => {
  const output = (code: string): string => describeDiskError(Object.assign(new Error('no'), { code }));
  assert.equal(output('ENOSPC'), ' (ENOSPC): the disk is full, free some space.');
  assert.equal(output('EROFS'), ' (EROFS): the disk is mounted read-only.');
  assert.equal(output('EACCES'), ' (EACCES): permission denied, check its permissions.');
  assert.equal(output('EIO'), ' (EIO).');
});

/** Opens files until the system refuses, then a lock, a database, a key, a configuration and a backup, and prints why they cannot be opened. */
const EXHAUSTED = `
  const [, lock, store, keys, config, backup, directory] = process.argv;
  const { acquireLock } = await import(lock);
  const { Store } = await import(store);
  const { PrivateDirectory } = await import(keys);
  const { readConfigFile } = await import(config);
  const { takeSnapshot } = await import(backup);
  const { mkdirSync, openSync, writeFileSync } = process.getBuiltinModule('node:fs');
  for (const name of ['/a.key', '/config.toml']) writeFileSync(directory + name, '', { mode: 0o600 });
  const privateDirectory = PrivateDirectory.open(directory, {});
  mkdirSync(directory + '/backup');
  writeFileSync(directory + '/backup/svcd.db', '');
  try { for (;;) openSync(directory, 'r'); } catch {}
  for (const open of [
    () => acquireLock(directory),
    () => Store.open(directory + '/a.db', []),
    () => privateDirectory.read('a.key'),
    () => readConfigFile(directory + '/config.toml'),
    () => takeSnapshot({ dataDir: directory + '/backup', keyDir: directory, pid: process.pid }),
  ])
    try { open(); } catch (error) { process.stderr.write(error.message + '\\n'); }
`;

test('does not confuse too many open files with missing permission', async (t) => {
  const modules = [
    'data-dir/lock.ts',
    'store/store.ts',
    'keys/private-directory.ts',
    'config/file.ts',
    'moving/node-backup.ts',
  ].map((name) => join(import.meta.dirname, '../../src/foundation', name));
  const command = 'ulimit -n 60; exec "$0" --disable-warning=ExperimentalWarning --input-type=module --eval "$@"';
  const args = ['-c', command, process.execPath, EXHAUSTED, ...modules, temporaryDirectory(t)];
  const { code, stderr } = await run('sh', args);
  assert.equal(code, 0, stderr);
  assert.match(stderr, /^The lock .* cannot be used \(EMFILE\): this process has too many files open, raise its limit/);
  assert.match(stderr, /The database .*a\.db cannot be written \(EMFILE\): this process has too many files open/);
  assert.match(stderr, /a\.key cannot be read \(EMFILE\): this process has too many files open/);
  assert.match(stderr, /config\.toml cannot be read \(EMFILE\): this process has too many files open/);
  assert.match(stderr, /Backing up .* failed: .* \(EMFILE\): this process has too many files open/);
});
