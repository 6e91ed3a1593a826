import assert from 'node:assert/strict';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setKeys } from '../../src/foundation/config/toml-edit.ts';
import { readText, replaceFile } from '../../src/foundation/files.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

function failing(times: number, code: string): { readonly rename: typeof renameSync; readonly calls: () => number } {
  let calls = 0;
  const rename: typeof renameSync = (from, to) => {
    calls++;
    if (calls <= times) throw Object.assign(new Error(code), { code });
    renameSync(from, to);
  };
  return { rename, calls: () => calls };
}

test('on Windows, a file that a reader has open for a moment is replaced', (t) => {
  const [from, to] = ['new', 'old'].map((name) => join(temporaryDirectory(t), name)) as [string, string];
  for (const code of ['EPERM', 'EACCES', 'EBUSY']) {
    writeFileSync(from, code);
    writeFileSync(to, 'old');
    replaceFile(from, to, failing(2, code).rename, 'win32');
    assert.equal(readFileSync(to, 'utf8'), code);
  }
  writeFileSync(from, 'more');
  const stubborn = failing(100, 'EPERM');
  assert.throws(() => replaceFile(from, to, stubborn.rename, 'win32'), { code: 'EPERM' });
  assert.equal(stubborn.calls(), 7);
  assert.equal(readFileSync(to, 'utf8'), 'EBUSY');
  for (const [code, platform] of [['ENOSPC', 'win32'] as const, ['EPERM', 'linux'] as const]) {
    const once = failing(1, code);
    assert.throws(() => replaceFile(from, to, once.rename, platform), { code });
    assert.equal(once.calls(), 1);
  }
});

test('text from programs of Windows is read', (t) => {
  const file = join(temporaryDirectory(t), 'text');
  const cases: readonly Buffer[] = [
    Buffer.from('ü\r\nb'),
    Buffer.from('\ufeffü\r\nb'),
    Buffer.from('\ufeffü\r\nb', 'utf16le'),
  ];
  for (const bytes of cases) {
    writeFileSync(file, bytes);
    assert.equal(readText(file), 'ü\r\nb');
  }
});

test('a configuration with a byte order mark keeps it, and its line ends', () => {
  const values = new Map([['network', 'b']]);
  assert.equal(setKeys('\ufeffnetwork = "a"\r\n', values), '\ufeffnetwork = "b"\r\n');
  assert.equal(setKeys('\ufeffmdns = true\r\n', values), '\ufeffmdns = true\r\nnetwork = "b"\r\n');
  assert.equal(setKeys('\ufeff[a]\r\nb = 1\r\n', values), '\ufeffnetwork = "b"\r\n[a]\r\nb = 1\r\n');
});
