import assert from 'node:assert/strict';
import fs, { existsSync, readFileSync, statSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { test } from 'node:test';
import { saveSecret } from '../../../src/surfaces/cli/master-file.ts';
import { recordFileSteps } from '../../support/file-steps.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

test('a secret is on the disk under its name, for its owner only, and is never overwritten', (t) => {
  const directory = temporaryDirectory(t);
  const file = join(directory, 'secret');
  const steps = recordFileSteps(t, directory);
  saveSecret(file, 'first', 'secret');
  assert.deepEqual(steps.steps, ['sync secret', 'sync .']);
  assert.deepEqual(steps.open(), []);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.throws(() => saveSecret(file, 'second', 'secret'), { code: 'not_writable', message: /exists already/ });
  assert.equal(readFileSync(file, 'utf8'), 'first');
});

test('where the disk is full nothing is left that would be in the way of the next try', (t) => {
  const file = join(temporaryDirectory(t), 'secret');
  t.mock.method(fs, 'fsyncSync', () => {
    throw Object.assign(new Error('no'), { code: 'ENOSPC' });
  });
  syncBuiltinESMExports();
  t.after(() => {
    t.mock.restoreAll();
    syncBuiltinESMExports();
  });
  const message = `The secret cannot be written to ${file} (ENOSPC): the disk is full, free some room. Nothing was registered.`;
  assert.throws(() => saveSecret(file, 'all of it', 'secret'), { code: 'not_writable', message });
  assert.ok(!existsSync(file));
});
