import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { readForeignFile, writeForeignFile } from '../../src/foundation/foreign-file.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const MAX = 1000;

function change(file: string, text: string): void {
  writeForeignFile(readForeignFile(file, MAX), text);
}

describe('a file of another program', { skip: process.platform === 'win32' }, () => {
  test('links are followed, also to a file that does not exist yet', (t) => {
    const dir = temporaryDirectory(t);
    const [link, middle, real] = [join(dir, 'link'), join(dir, 'middle'), join(dir, 'new', 'real')];
    symlinkSync('middle', link);
    symlinkSync(real, middle);
    change(link, 'one');
    change(link, 'two');
    assert.ok(lstatSync(link).isSymbolicLink() && lstatSync(middle).isSymbolicLink());
    assert.equal(readFileSync(real, 'utf8'), 'two');
    assert.equal(statSync(real).mode & 0o777, 0o600);
    symlinkSync('circle', join(dir, 'circle'));
    assert.throws(() => change(join(dir, 'circle'), 'x'), { code: 'config_invalid', message: /ELOOP/ });
  });

  test('mode, owner, hard links and byte order mark stay', (t) => {
    const dir = temporaryDirectory(t);
    const [file, other] = [join(dir, 'file'), join(dir, 'other')];
    writeFileSync(file, '\uFEFFold');
    chmodSync(file, 0o644);
    assert.equal(readForeignFile(file, MAX).text, '\uFEFFold');
    change(file, 'new');
    assert.equal(statSync(file).mode & 0o777, 0o644);
    linkSync(file, other);
    change(file, 'newer');
    assert.equal(readFileSync(other, 'utf8'), 'newer');
    assert.equal(statSync(file).ino, statSync(other).ino);
  });

  test('root changes and creates files for their owner', { skip: process.getuid?.() !== 0 && 'needs root' }, (t) => {
    const home = join(temporaryDirectory(t), 'home');
    mkdirSync(home);
    chownSync(home, 4321, 4322);
    const file = join(home, 'a', 'b', 'file');
    change(file, 'new');
    for (const path of [file, join(home, 'a'), join(home, 'a', 'b')]) {
      const { uid, gid } = statSync(path);
      assert.deepEqual([uid, gid], [4321, 4322], path);
    }
    chownSync(file, 5, 6);
    chmodSync(file, 0o640);
    change(file, 'newer');
    const { uid, gid, mode } = statSync(file);
    assert.deepEqual([uid, gid, mode & 0o7777], [5, 6, 0o640]);
  });

  test('a pipe, a directory, a large file and text in another encoding are refused without waiting', (t) => {
    const dir = temporaryDirectory(t);
    const [pipe, large, latin] = [join(dir, 'pipe'), join(dir, 'large'), join(dir, 'latin')];
    execFileSync('mkfifo', [pipe]);
    writeFileSync(large, 'x'.repeat(MAX + 1));
    writeFileSync(latin, Buffer.from('caf\xe9', 'latin1'));
    for (const [file, message] of [
      [pipe, /is not a regular file/],
      [dir, /is not a regular file|EISDIR/],
      [large, /is larger than 1000 bytes/],
      [latin, /cannot be read as UTF-8/],
    ] as const)
      assert.throws(() => readForeignFile(file, MAX), { code: 'config_invalid', message });
  });

  test('a file that changed meanwhile is not overwritten', (t) => {
    const dir = temporaryDirectory(t);
    const [file, fresh] = [join(dir, 'file'), join(dir, 'fresh')];
    writeFileSync(file, 'old');
    const before = [readForeignFile(file, MAX), readForeignFile(fresh, MAX)];
    writeFileSync(file, 'of another program');
    writeFileSync(fresh, 'of another program');
    for (const one of before) assert.throws(() => writeForeignFile(one, 'mine'), { code: 'wrong_state' });
    for (const one of [file, fresh]) assert.equal(readFileSync(one, 'utf8'), 'of another program');
  });
});
