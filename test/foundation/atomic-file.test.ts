import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { SvcError } from '../../src/foundation/errors.ts';
import { writeFileAtomic } from '../../src/foundation/files.ts';
import { recordFileSteps } from '../support/file-steps.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

test('writes a file that only its owner can read, and replaces any existing one', (t) => {
  const file = join(temporaryDirectory(t), 'a');
  writeFileSync(file, 'old', { mode: 0o644 });
  chmodSync(file, 0o666);
  writeFileAtomic(file, 'new');
  assert.equal(readFileSync(file, 'utf8'), 'new');
  assert.equal(statSync(file).mode & 0o777, 0o600);
  writeFileAtomic(file, new Uint8Array([1, 2]));
  assert.deepEqual([...readFileSync(file)], [1, 2]);
});

test('leaves nothing else behind, not even of an interrupted write', (t) => {
  const directory = temporaryDirectory(t);
  writeFileSync(join(directory, 'a.tmp'), 'half');
  writeFileAtomic(join(directory, 'a'), 'whole');
  assert.deepEqual(readdirSync(directory), ['a']);
});

test('does not write through a link', (t) => {
  const directory = temporaryDirectory(t);
  const victim = join(directory, 'victim');
  writeFileSync(victim, 'mine');
  for (const name of ['a', 'a.tmp']) symlinkSync(victim, join(directory, name));
  writeFileAtomic(join(directory, 'a'), 'new');
  assert.equal(readFileSync(victim, 'utf8'), 'mine');
  assert.equal(readFileSync(join(directory, 'a'), 'utf8'), 'new');
});

test('a failure is named and changes nothing', (t) => {
  const directory = temporaryDirectory(t);
  mkdirSync(join(directory, 'a'));
  writeFileSync(join(directory, 'a', 'kept'), '');
  assert.throws(
    () => writeFileAtomic(join(directory, 'a'), 'new'),
    (error) =>
      error instanceof SvcError && error.code === 'not_writable' && /cannot be written \(E[A-Z]+\)/.test(error.message),
  );
  assert.deepEqual(readdirSync(directory), ['a']);
  assert.throws(() => writeFileAtomic(join(directory, 'absent', 'a'), 'new'), { code: 'not_writable' });
});

test('the content is on the disk before it has its name, and the name before it returns', (t) => {
  const directory = temporaryDirectory(t);
  const files = recordFileSteps(t, directory);
  writeFileAtomic(join(directory, 'a'), 'new');
  assert.deepEqual(files.steps, ['sync a.tmp', 'rename a.tmp a', 'sync .']);
  mkdirSync(join(directory, 'b'));
  writeFileSync(join(directory, 'b', 'kept'), '');
  assert.throws(() => writeFileAtomic(join(directory, 'b'), 'new'));
  assert.deepEqual(files.open(), []);
});
