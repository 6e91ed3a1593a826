import assert from 'node:assert/strict';
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { keptFile } from '../../src/foundation/native-addon.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const CONTENT = Buffer.from('content shipped with the program');

test('an addon is written once per content, private to its owner, and rewritten if it was changed', (t) => {
  const directory = join(temporaryDirectory(t), 'a', 'b');
  const file = keptFile(directory, 'part', CONTENT);
  assert.ok(readFileSync(file).equals(CONTENT));
  assert.deepEqual([statSync(directory).mode & 0o777, statSync(file).mode & 0o777], [0o700, 0o600]);
  const { ino } = statSync(file);
  assert.equal(keptFile(directory, 'part', CONTENT), file);
  assert.equal(statSync(file).ino, ino, 'left as it is');

  writeFileSync(file, 'content of someone else!!!');
  assert.equal(keptFile(directory, 'part', CONTENT), file);
  assert.ok(readFileSync(file).equals(CONTENT));
  assert.notEqual(keptFile(directory, 'part', Buffer.from('the next release')), file);
  assert.equal(readdirSync(directory).length, 2, 'no temporary file is left');
});

test('a link in the place of a part is replaced, not followed', (t) => {
  const directory = temporaryDirectory(t);
  const file = keptFile(directory, 'part', CONTENT);
  const other = join(directory, 'other');
  writeFileSync(other, CONTENT);
  rmSync(file);
  symlinkSync(other, file);
  assert.equal(keptFile(directory, 'part', CONTENT), file);
  assert.ok(lstatSync(file).isFile());
});

test('no addon is written to a folder that others can write, or through a link', (t) => {
  const directory = temporaryDirectory(t);
  const [open, link] = [join(directory, 'open'), join(directory, 'link')];
  mkdirSync(open);
  chmodSync(open, 0o770);
  assert.throws(() => keptFile(open, 'part', CONTENT), /not a private folder/);
  symlinkSync(directory, link);
  assert.throws(() => keptFile(link, 'part', CONTENT), /not a private folder/);
});
