import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MAX_FILE_NAME_BYTES } from '../../src/foundation/domain/objects.ts';
import { numberedName, receivedName } from '../../src/foundation/file-name.ts';

test('a name of a stranger leads nowhere, hides nothing and is no device', () => {
  const names: readonly (readonly [string, string])[] = [
    ['plan.pdf', 'plan.pdf'],
    ['Pläne für Mai.pdf', 'Pläne für Mai.pdf'],
    ['../../etc/passwd', 'passwd'],
    ['/etc/passwd', 'passwd'],
    ['C:\\Windows\\system32\\cmd.exe', 'cmd.exe'],
    ['.ssh', 'ssh'],
    ['...bashrc', 'bashrc'],
    ['. . .hidden', 'hidden'],
    ['..', 'file'],
    ['.', 'file'],
    ['', 'file'],
    ['   ', 'file'],
    ['a/', 'file'],
    ['\u0000\u001b[2J.txt', '[2J.txt'],
    ['gpj.exe\u202e', 'gpj.exe'],
    ['a\nb', 'ab'],
    ['NUL', '_NUL'],
    ['con.txt', '_con.txt'],
    ['console.txt', 'console.txt'],
    ['what?*.txt', 'what__.txt'],
    ['file.txt:stream', 'file.txt_stream'],
    ['name. . ', 'name'],
    ['-rf', '-rf'],
    ['\ud800.txt', '\ufffd.txt'],
  ];
  for (const [offered, wanted] of names) assert.equal(receivedName(offered), wanted, JSON.stringify(offered));
});

test('a name of any length fits, with a number behind it', () => {
  for (const name of ['a'.repeat(1000), '😀'.repeat(300), `${'b'.repeat(300)}.tar.gz`]) {
    const received = receivedName(name);
    assert.ok(received.isWellFormed());
    assert.ok(Buffer.byteLength(numberedName(received, 999)) <= MAX_FILE_NAME_BYTES, received);
  }
});

test('the number precedes the extension', () => {
  assert.equal(numberedName('plan.pdf', 0), 'plan.pdf');
  assert.equal(numberedName('plan.pdf', 1), 'plan (1).pdf');
  assert.equal(numberedName('plan', 2), 'plan (2)');
  assert.equal(numberedName('a.tar.gz', 3), 'a.tar (3).gz');
});
