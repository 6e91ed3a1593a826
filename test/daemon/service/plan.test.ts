import assert from 'node:assert/strict';
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import path, { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { checkedPath, describe, execute, launchWords, type Step } from '../../../src/daemon/service/plan.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

/** A step that runs a script and reports by its exit code and by files. */
function script(code: string, mayFail?: boolean): Step {
  const command = [process.execPath, '--eval', code] as const;
  return { kind: 'run', command: [...command], ...(mayFail === undefined ? {} : { mayFail }) };
}

function placeIn(t: TestContext): string {
  return join(temporaryDirectory(t), 'a', 'b');
}

test('files are written with new directories, readable by everyone, and removed', (t) => {
  const place = placeIn(t);
  const file = join(place, 'svcd.service');
  assert.equal(execute([{ kind: 'write', file, content: 'first' }]), 0);
  execute([{ kind: 'write', file, content: Buffer.from('second') }]);
  assert.equal(readFileSync(file, 'utf8'), 'second');
  assert.equal(statSync(file).mode & 0o777, 0o644);
  execute([{ kind: 'remove', file }]);
  assert.ok(!existsSync(file));
  execute([
    { kind: 'remove', file },
    { kind: 'directory', directory: join(place, 'c', 'd') },
    { kind: 'directory', directory: join(place, 'c', 'd') },
  ]);
  assert.ok(statSync(join(place, 'c', 'd')).isDirectory());
});

test('a file that cannot be written is reported with advice', (t) => {
  const file = join(temporaryDirectory(t), 'file');
  writeFileSync(file, '');
  const below = join(file, 'svcd.service');
  for (const step of [
    { kind: 'write', file: below, content: '' },
    { kind: 'directory', directory: below },
  ] as const)
    assert.throws(() => execute([step]), { code: 'not_writable', message: /svcd\.service.*\(\w+\).*--user/s });
  const folder = join(temporaryDirectory(t), 'folder');
  mkdirSync(folder);
  assert.throws(() => execute([{ kind: 'remove', file: folder }]), { code: 'not_writable' });
});

test('programs run in order, and the plan has the exit code of the last one', (t) => {
  const place = temporaryDirectory(t);
  const append = `require('fs').appendFileSync(${JSON.stringify(join(place, 'log'))}, process.argv[1] ?? 'x')`;
  assert.equal(execute([script(append), script(append), script('process.exit(3)', true)]), 3);
  assert.equal(readFileSync(join(place, 'log'), 'utf8'), 'xx');
  assert.equal(execute([script('process.exit(3)', true), script('')]), 0);
  assert.equal(execute([script("process.kill(process.pid, 'SIGKILL')", true)]), 1, 'a killed program has failed');
  assert.equal(execute([]), 0);
});

test('a failing program ends the plan, unless it may fail', (t) => {
  const file = join(temporaryDirectory(t), 'unit');
  const write: Step = { kind: 'write', file, content: 'x' };
  assert.throws(() => execute([script('process.exit(3)'), write]), { code: 'internal', message: /failed with 3\.$/ });
  assert.ok(!existsSync(file));
  execute([script('process.exit(3)', true), write]);
  assert.ok(existsSync(file));
});

test('a missing or invalid program is reported', (t) => {
  const file = join(temporaryDirectory(t), 'systemctl');
  assert.throws(() => execute([{ kind: 'run', command: [file], mayFail: true }]), {
    code: 'not_found',
    message: /Cannot run .*systemctl/,
  });
  writeFileSync(file, 'no program');
  chmodSync(file, 0o644);
  assert.throws(() => execute([{ kind: 'run', command: [file] }]), { code: 'not_found' });
});

test('a dry run is readable', () => {
  const utf16 = Buffer.from('\uFEFF<a>\n  <b/>\n</a>\n', 'utf16le');
  assert.equal(describe({ kind: 'write', file: '/f', content: 'one\ntwo\n' }), 'write /f:\n    one\n    two\n');
  assert.equal(describe({ kind: 'write', file: '/f', content: utf16 }), 'write /f:\n    <a>\n      <b/>\n    </a>\n');
  assert.equal(describe({ kind: 'remove', file: '/f' }), 'remove /f\n');
  assert.equal(describe({ kind: 'directory', directory: '/d' }), 'create the directory /d\n');
  const command = ['systemctl', '--user', 'a b', '', '"', '$HOME'] as const;
  assert.equal(
    describe({ kind: 'run', command: [...command], mayFail: true }),
    'run systemctl --user "a b" "" "\\"" "$HOME"\n',
  );
});

test('paths are absolute on their system, without characters that end a line or a word', () => {
  assert.equal(checkedPath('The path', '/a b/c', path.posix), '/a b/c');
  assert.equal(checkedPath('The path', 'C:\\a b', path.win32), 'C:\\a b');
  for (const [value, rules] of [
    ['a', path.posix],
    ['', path.posix],
    ['C:\\a', path.posix],
    ['./a', path.win32],
  ] as const)
    assert.throws(() => checkedPath('The path', value, rules), { code: 'config_invalid', message: /absolute/ }, value);
  for (const value of ['/a\nb', '/a\0', '/a\u0085', '/a\u007f'])
    assert.throws(() => checkedPath('The path', value, path.posix), { code: 'config_invalid', message: /character/ });
  assert.throws(() => checkedPath('The path', '/a%b', path.posix, /%/), { code: 'config_invalid', message: /%/ });
});

test('a service starts Node with svcd and its data directory, after checking all paths', () => {
  const launch = { node: '/usr/bin/node', program: '/opt/svcd', dataDir: '/srv/svcd' };
  const words = ['/usr/bin/node', '/opt/svcd', 'service', 'run', '--data-dir', '/srv/svcd'];
  assert.deepEqual(launchWords(launch, path.posix), words);
  // The single file is followed by the name of the program in it.
  const single = launchWords({ ...launch, node: '/usr/bin/svc', program: 'svcd' }, path.posix);
  assert.deepEqual(single, ['/usr/bin/svc', 'svcd', ...words.slice(2)]);
  for (const [key, name] of [
    ['node', 'The path of Node'],
    ['program', 'The path of svcd'],
    ['dataDir', 'The data directory'],
  ] as const)
    assert.throws(() => launchWords({ ...launch, [key]: 'relative' }, path.posix), { message: new RegExp(`^${name}`) });
});
