import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { findProgram, shellCommand, startable } from '../../src/foundation/programs.ts';

describe('on Windows', () => {
  const find = (name: string, files: readonly string[], environment = {}): string | null =>
    findProgram(name, { Path: 'C:\\one;"C:\\two words";relative', ...environment }, 'win32', (file) =>
      files.includes(file.toLowerCase()),
    );

  test('a name is found in Path with the extensions of PATHEXT', () => {
    assert.equal(find('node', ['c:\\two words\\node.exe']), 'C:\\two words\\node.exe');
    assert.equal(find('npx', ['c:\\one\\npx', 'c:\\one\\npx.cmd', 'c:\\one\\npx.ps1']), 'C:\\one\\npx.cmd');
    assert.equal(find('npx', ['c:\\one\\npx', 'c:\\one\\npx.ps1']), 'C:\\one\\npx.ps1');
    const both = ['c:\\one\\a.exe', 'c:\\one\\a.bat'];
    assert.equal(find('a', both), 'C:\\one\\a.exe');
    assert.equal(find('a', both, { PathExt: '.BAT;.EXE' }), 'C:\\one\\a.bat');
  });

  test('folders are searched in their order, and relative ones are not', () => {
    assert.equal(find('a', ['c:\\two words\\a.exe', 'c:\\one\\a.cmd']), 'C:\\one\\a.cmd');
    assert.equal(find('a', ['relative\\a.exe']), null);
  });

  test('files that Windows cannot start are no programs', () => {
    assert.equal(find('a', ['c:\\one\\a', 'c:\\one\\a.js', 'c:\\one\\a.vbs'], { PATHEXT: '.JS;.VBS' }), null);
    assert.equal(find('a.py', ['c:\\one\\a.py']), null);
    assert.equal(find('a.py', ['c:\\one\\a.py.exe']), 'C:\\one\\a.py.exe');
  });

  test('a path may have either separator, a drive, or the name of a server', () => {
    assert.equal(find('D:/x/a.EXE', ['d:\\x\\a.exe']), 'D:\\x\\a.EXE');
    assert.equal(find('C:\\Program Files\\a', ['c:\\program files\\a.exe']), 'C:\\Program Files\\a.exe');
    assert.equal(find('\\\\host\\share\\a', ['\\\\host\\share\\a.com']), '\\\\host\\share\\a.com');
    assert.equal(find('\\\\?\\C:\\x\\a.exe', ['\\\\?\\c:\\x\\a.exe']), '\\\\?\\C:\\x\\a.exe');
  });

  const environment = { ComSpec: 'C:\\Windows\\System32\\cmd.exe' };

  test('programs start as they are', () => {
    const command = ['C:\\a.exe', 'two words', '%PATH%'];
    assert.deepEqual(startable(command, environment, 'win32'), { file: 'C:\\a.exe', args: ['two words', '%PATH%'] });
  });

  test('arguments of batch files are no text for cmd', () => {
    const words = ['plain', 'two words', 'a"b', '\\"', '%PATH%', 'a&b', '^', '', 'C:\\dir\\', 'ü', 'x\\'];
    assert.deepEqual(startable(['C:\\a b\\c.CMD', ...words], environment, 'win32'), {
      file: environment.ComSpec,
      args: [
        '/e:ON',
        '/v:OFF',
        '/d',
        '/c',
        '""C:\\a b\\c.CMD" plain "two words" "a""b" "\\\\""" "%%cd:~,%PATH%%cd:~,%" "a&b" "^" "" "C:\\dir\\\\" ü "x\\\\""',
      ],
      windowsVerbatimArguments: true,
    });
    for (const text of ['a\nb', 'a\rb'])
      assert.throws(() => startable(['C:\\c.bat', text], environment, 'win32'), { code: 'invalid_request' });
  });

  test('PowerShell runs its scripts', () => {
    const { file, args } = startable(['C:\\a.ps1', '$x', 'b c'], environment, 'win32');
    assert.equal(file, 'powershell.exe');
    assert.deepEqual(args.slice(-4), ['-File', 'C:\\a.ps1', '$x', 'b c']);
  });

  test('a text for the shell is passed as it is', () => {
    assert.deepEqual(shellCommand('more > "a b"', environment, 'win32'), {
      file: environment.ComSpec,
      args: ['/d', '/s', '/c', '"more > "a b""'],
      windowsVerbatimArguments: true,
    });
    assert.equal(shellCommand('dir', {}, 'win32').file, 'cmd.exe');
  });
});

describe('on other systems', () => {
  test('a name is found in the absolute folders of PATH, with its exact case', () => {
    const find = (name: string): string | null =>
      findProgram(name, { PATH: '/one:relative:/two', Path: '/three' }, 'linux', (file) =>
        ['/two/a', '/three/b'].includes(file),
      );
    assert.equal(find('a'), '/two/a');
    assert.equal(find('b'), null);
    assert.equal(find('/two/../two/a'), '/two/a');
    assert.equal(find('C:\\a'), null);
  });

  test('scripts start as they are', () => {
    assert.deepEqual(startable(['/a.cmd', '%x%'], {}, 'linux'), { file: '/a.cmd', args: ['%x%'] });
    assert.deepEqual(shellCommand('echo "a b"', {}, 'linux'), { file: '/bin/sh', args: ['-c', 'echo "a b"'] });
  });
});
