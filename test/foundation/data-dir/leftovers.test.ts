import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { backupDirectory, removeStaleBackups } from '../../../src/foundation/data-dir/finish-restore.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

/** No system has processes with such a number. */
const NOBODY = 99_999_999;

test('removes abandoned copies with their content, and nothing else', (t) => {
  const directory = temporaryDirectory(t);
  const kept = ['backup-0.tmp', 'backup-x.tmp', `backup-${NOBODY}.tmp2`, `xbackup-${NOBODY}.tmp`];
  for (const name of kept) mkdirSync(join(directory, name));
  for (const pid of [process.pid, NOBODY]) mkdirSync(backupDirectory(directory, pid));
  writeFileSync(join(backupDirectory(directory, NOBODY), '1.db'), '');
  removeStaleBackups(directory);
  assert.deepEqual(new Set(readdirSync(directory)), new Set([...kept, `backup-${process.pid}.tmp`]));
});

test("another user's process looks after its copy", (t) => {
  const directory = temporaryDirectory(t);
  mkdirSync(backupDirectory(directory, 5));
  const errors = [Object.assign(new Error('no'), { code: 'EPERM' }), Object.assign(new Error('no'), { code: 'ESRCH' })];
  const left = errors.map((error) => {
    const { mock } = t.mock.method(process, 'kill', () => {
      throw error;
    });
    removeStaleBackups(directory);
    mock.restore();
    return readdirSync(directory).length;
  });
  assert.deepEqual(left, [1, 0]);
});
