import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { PrivateDirectory } from '../../../src/foundation/keys/private-directory.ts';
import { type Log, silentLog } from '../../../src/foundation/log.ts';
import { recordFileSteps } from '../../support/file-steps.ts';
import { beUser, ignoreModes } from '../../support/other-system.ts';
import { run } from '../../support/programs.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';
import { failsWith } from '../../support/vectors.ts';

function world(t: TestContext, mode = 0o700) {
  const path = join(temporaryDirectory(t), 'keys');
  mkdirSync(path);
  chmodSync(path, mode);
  const warnings: string[] = [];
  const log: Log = { ...silentLog, warn: (_fields, message) => void warnings.push(message) };
  const put = (name: string, content: string, fileMode = 0o600): void => {
    writeFileSync(join(path, name), content);
    chmodSync(join(path, name), fileMode);
  };
  return { path, warnings, put, open: () => PrivateDirectory.open(path, { log }) };
}

test('private files are not changed or logged', (t) => {
  const { open, put, warnings } = world(t);
  put('a', 'text');
  assert.equal(open().read('a'), 'text');
  assert.deepEqual(warnings, []);
});

test('removes any access of other users', (t) => {
  for (const mode of [0o701, 0o710, 0o740, 0o777]) {
    const { open, path, put, warnings } = world(t, mode);
    put('a', 'text', mode);
    assert.equal(open().read('a'), 'text');
    assert.deepEqual([statSync(path).mode & 0o777, statSync(join(path, 'a')).mode & 0o777], [0o700, 0o600]);
    assert.equal(warnings.length, 2);
  }
});

test('reads nothing if the access cannot be removed', (t) => {
  const [exposed, { path, put, open }] = [world(t, 0o755), world(t)];
  put('a', 'text', 0o644);
  const directory = open();
  ignoreModes(t);
  const message = /^Other users can read .*, and this file system does not allow svcd to change that/;
  assert.throws(exposed.open, { code: 'key_exposed', message });
  assert.throws(() => directory.read('a'), { code: 'key_exposed', message });
  assert.equal(statSync(join(path, 'a')).mode & 0o777, 0o644);
});

test("another user's directory, and another user's file, are refused", (t) => {
  const { path, put, open } = world(t);
  put('a', 'text');
  const directory = open();
  beUser(t, statSync(path).uid + 1);
  for (const work of [open, () => directory.read('a')])
    assert.throws(work, { code: 'key_exposed', message: /belongs to another user/ });
});

test('a file is read up to 16 KiB', (t) => {
  const { open, put } = world(t);
  put('most', 'x'.repeat(16_384));
  put('more', 'x'.repeat(16_385));
  assert.equal(open().read('most')?.length, 16_384);
  assert.throws(() => open().read('more'), failsWith('key_damaged'));
});

test('a file that the system does not let us read is not called damaged, and a missing one is nothing', (t) => {
  const { open } = world(t);
  assert.throws(() => open().read('x'.repeat(300)), {
    code: 'not_writable',
    message: /cannot be read \(ENAMETOOLONG\)\.$/,
  });
  assert.equal(open().read('absent'), null);
});

test('no file stays open, and a deletion is on the disk', (t) => {
  const { open, path, put } = world(t);
  put('a', 'text');
  mkdirSync(join(path, 'folder'));
  const directory = open();
  const recorded = recordFileSteps(t, path);
  directory.read('a');
  assert.throws(() => directory.read('folder'), failsWith('key_damaged'));
  directory.delete('a');
  assert.deepEqual([recorded.steps, recorded.open()], [['sync .'], []]);
  assert.throws(() => directory.delete('folder'), {
    code: 'not_writable',
    message: /folder cannot be deleted \(ERR_FS_EISDIR\)/,
  });
});

test('the error for an unreadable directory has advice', async (t) => {
  const { path } = world(t, 0);
  const program = `
    const { PrivateDirectory } = await import(process.argv[1]);
    try { PrivateDirectory.open(process.argv[2], {}); } catch (error) { console.log(error.code, error.message); }`;
  const module = join(import.meta.dirname, '../../../src/foundation/keys/private-directory.ts');
  // Not as root, which can read everything.
  const user = ['-U', '--map-user=12345', process.execPath, '--input-type=module', '--eval'];
  const { code, stdout, stderr } = await run('unshare', [...user, program, module, path]);
  // Without root, only a readable directory can be removed.
  chmodSync(path, 0o700);
  if (code !== 0) return t.skip(`needs user namespaces (unshare): ${stderr}`);
  assert.match(stdout, /^not_writable The directory .*keys cannot be created or read \(EACCES\).* "chmod 700 .*keys"/);
});
