import assert from 'node:assert/strict';
import fs, { existsSync, readFileSync, statSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { test } from 'node:test';
import { saveSecret } from '../../../src/surfaces/cli/master-file.ts';
import { recordFileSteps } from '../../support/file-steps.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

test('saves a secret to disk for its owner only, without overwriting', (t) => {
  const directory = temporaryDirectory(t);
  const file = join(directory, 'secret');
  const steps = recordFileSteps(t, directory);
  saveSecret(file, 'first', 'secret');
  assert.deepEqual(steps.steps, ['sync secret', 'sync .']);
  assert.deepEqual(steps.open(), []);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.throws(() => saveSecret(file, 'second', 'secret'), {
    code: 'not_writable',
    message: /exists and is never overwritten/,
  });
  assert.equal(readFileSync(file, 'utf8'), 'first');
});

test('leaves nothing behind on a full disk', (t) => {
  const file = join(temporaryDirectory(t), 'secret');
  t.mock.method(fs, 'fsyncSync', () => {
    throw Object.assign(new Error('no'), { code: 'ENOSPC' });
  });
  syncBuiltinESMExports();
  t.after(() => {
    t.mock.restoreAll();
    syncBuiltinESMExports();
  });
  const message = `The secret cannot be written to ${file} (ENOSPC): the disk is full, free some space. Nothing was registered.`;
  assert.throws(() => saveSecret(file, 'everything', 'secret'), { code: 'not_writable', message });
  assert.ok(!existsSync(file));
});
