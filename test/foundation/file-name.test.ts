import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MAX_FILE_NAME_BYTES } from '../../src/foundation/domain/objects.ts';
import { numberedName, receivedName, windowsNameProblem } from '../../src/foundation/file-name.ts';

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
    ['COM\u00b9.txt', '_COM\u00b9.txt'],
    ['nul .tar', '_nul .tar'],
    ['CONIN$', '_CONIN$'],
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

test('names that Windows would store elsewhere are found', () => {
  for (const name of ['NUL', 'C:\\x\\con.txt', 'C:\\x\\aux .key', 'LPT1', 'COM\u00b2'])
    assert.equal(windowsNameProblem(name), 'is the name of a device', name);
  for (const name of ['C:\\x\\a.', 'C:\\x\\a '])
    assert.equal(windowsNameProblem(name), 'ends with a dot or a blank', name);
  for (const name of ['C:\\x\\key:b', 'C:\\x:y\\key', 'C:\\x\\a?', 'C:\\x\\a|b'])
    assert.equal(windowsNameProblem(name), 'contains a character that Windows reserves', name);
  for (const name of ['C:\\x\\a.key', 'C:a.key', '\\\\host\\share\\a', '\\\\?\\C:\\a', 'console.key', 'D:/x/.key'])
    assert.equal(windowsNameProblem(name), null, name);
});
