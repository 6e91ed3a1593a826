import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import fc from 'fast-check';
import {
  type LaunchdOptions,
  launchdPlist,
  systemdUnit,
  windowsTask,
} from '../../../src/daemon/service/definitions.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

const LAUNCH = { node: '/usr/bin/node', program: '/usr/lib/node_modules/svcd/bin/svcd', dataDir: '/var/lib/svcd' };
const WINDOWS = { node: 'C:\\Node\\node.exe', program: 'C:\\npm\\svcd\\bin\\svcd', dataDir: 'C:\\ProgramData\\svcd' };
const SYSTEM = { user: false, configHome: '/home/u/.config', owner: null };
const USER = { ...SYSTEM, user: true };
const MAC: LaunchdOptions = { home: '/Users/u', uid: 501 };
const TASK = { user: false, userName: 'PC\\u', temporary: 'C:\\Temp' };

/** Parses a command in a unit as systemd.syntax(7) says: quotes, backslashes, then specifiers. */
function systemdWords(line: string): string[] {
  const words = [...line.matchAll(/"((?:[^"\\]|\\.)*)"(?: |$)/g)].map(([, word = '']) => word);
  assert.equal(words.map((word) => `"${word}"`).join(' '), line, 'only spaces between the words');
  return words.map((word) =>
    word.replaceAll(/\\(.)/g, '$1').replaceAll(/%(.)/g, (_, c: string) => (assert.equal(c, '%'), '%')),
  );
}

function execStart(unit: string): string {
  const lines = unit.split('\n').filter((line) => line.startsWith('ExecStart='));
  assert.equal(lines.length, 1);
  return (lines[0] ?? '').replace('ExecStart=:', '');
}

function unescapeXml(text: string): string {
  return text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&');
}

function textOf(task: Uint8Array): string {
  return Buffer.from(task).toString('utf16le');
}

/** Parses a command line like CommandLineToArgvW: backslashes are escapes only before a double quote. */
function windowsWords(line: string): string[] {
  const words = [...line.matchAll(/"((?:[^"\\]|\\+(?!["\\])|(?:\\\\)+(?="))*)"(?: |$)/g)].map(([, word = '']) => word);
  assert.equal(words.map((word) => `"${word}"`).join(' '), line);
  return words.map((word) => word.replace(/\\+$/, (slashes) => slashes.slice(slashes.length / 2)));
}

const NASTY = fc.string({ unit: fc.constantFrom(...Array.from(' "\'%$\\`;&|<>{}#=:@!-+é\u{1f600}ab/')) });
const CONTROL = fc.constantFrom('\n', '\r', '\t', '\0', '\u001b', '\u007f', '\u0085');

test('with any path, systemd starts exactly this program with these arguments', () => {
  fc.assert(
    fc.property(NASTY, NASTY, NASTY, (a, b, c) => {
      const launch = { node: `/n${a}`, program: `/p${b}`, dataDir: `/d${c}` };
      const unit = systemdUnit(launch, USER);
      assert.deepEqual(systemdWords(execStart(unit)), [
        launch.node,
        launch.program,
        'service',
        'run',
        '--data-dir',
        launch.dataDir,
      ]);
      assert.equal(unit.split('\n').length, systemdUnit(LAUNCH, USER).split('\n').length, 'no line was added');
    }),
    { seed: 20_261, numRuns: 1000 },
  );
});

test('with any path, launchd starts exactly this program with these arguments', () => {
  fc.assert(
    fc.property(NASTY, NASTY, (a, b) => {
      const launch = { ...LAUNCH, program: `/p${a}`, dataDir: `/d${b}` };
      const plist = launchdPlist(launch, MAC);
      const words = /<array>\n(.*)\n {2}<\/array>/s.exec(plist)?.[1]?.split('\n') ?? [];
      const read = words.map((line) => unescapeXml(line.replace(/^ {4}<string>(.*)<\/string>$/, '$1')));
      assert.deepEqual(read, [launch.node, launch.program, 'service', 'run', '--data-dir', launch.dataDir]);
      assert.equal(
        plist.match(/[<>]/g)?.length,
        launchdPlist(LAUNCH, MAC).match(/[<>]/g)?.length,
        'no element was added',
      );
    }),
    { seed: 20_261, numRuns: 1000 },
  );
});

test('with any path, Windows starts exactly this program with these arguments', () => {
  fc.assert(
    fc.property(NASTY, NASTY, (a, b) => {
      const launch = { ...WINDOWS, program: `C:\\p${a}`, dataDir: `C:\\d${b}` };
      // A double quote would end a word, and the scheduler would expand %NAME%.
      if (/["%<>|]/.test(a + b)) {
        assert.throws(() => windowsTask(launch, TASK), { code: 'config_invalid' });
        return;
      }
      const task = textOf(windowsTask(launch, TASK));
      const line = unescapeXml(/<Arguments>(.*)<\/Arguments>/.exec(task)?.[1] ?? '');
      assert.deepEqual(windowsWords(line), [launch.program, 'service', 'run', '--data-dir', launch.dataDir]);
    }),
    { seed: 20_261, numRuns: 1000 },
  );
});

test('a path with a control character is rejected, because it could end a line', () => {
  fc.assert(
    fc.property(NASTY, CONTROL, NASTY, fc.constantFrom('node', 'program', 'dataDir'), (a, control, b, member) => {
      const tail = `${a}${control}${b}`;
      const refused = { code: 'config_invalid' };
      assert.throws(() => systemdUnit({ ...LAUNCH, [member]: `/x${tail}` }, USER), refused);
      assert.throws(() => launchdPlist({ ...LAUNCH, [member]: `/x${tail}` }, MAC), refused);
      assert.throws(() => windowsTask({ ...WINDOWS, [member]: `C:\\x${tail}` }, TASK), refused);
    }),
    { seed: 20_261 },
  );
});

test('a relative path is rejected', () => {
  for (const dataDir of ['', 'data', './data', '~/data', 'C:\\data'])
    assert.throws(() => systemdUnit({ ...LAUNCH, dataDir }, USER), { code: 'config_invalid' }, dataDir);
  for (const dataDir of ['', 'data', '..\\data'])
    assert.throws(() => windowsTask({ ...WINDOWS, dataDir }, TASK), { code: 'config_invalid' }, dataDir);
});

test('a system service does not depend on a home directory', () => {
  for (const [name, file] of [
    ['node', '/root/.nvm/node'],
    ['program', '/home/u/svcd'],
    ['dataDir', '/home/u/data'],
  ] as const) {
    const launch = { ...LAUNCH, [name]: file };
    assert.throws(() => systemdUnit(launch, SYSTEM), { code: 'config_invalid', message: /--user/ });
    assert.match(systemdUnit(launch, USER), /ExecStart/);
  }
});

test('the system unit runs sandboxed with a dynamic user, or as the owner of given data', () => {
  const unit = systemdUnit(LAUNCH, SYSTEM);
  for (const line of [
    'DynamicUser=yes',
    'StateDirectory=svcd',
    'StateDirectoryMode=0700',
    'NoNewPrivileges=yes',
    'ProtectSystem=strict',
    'ProtectHome=yes',
    'AmbientCapabilities=CAP_NET_BIND_SERVICE',
    'CapabilityBoundingSet=CAP_NET_BIND_SERVICE',
    'Restart=on-failure',
    'UMask=0077',
    'WantedBy=multi-user.target',
  ])
    assert.ok(unit.split('\n').includes(line), line);
  const own = systemdUnit({ ...LAUNCH, dataDir: '/srv/my data' }, { ...SYSTEM, owner: 1000 }).split('\n');
  assert.ok(own.includes('User=1000') && own.includes('ReadWritePaths="/srv/my data"'));
  assert.ok(!own.includes('DynamicUser=yes'));
});

/** Runs systemd's own check if it is installed. */
function verify(t: TestContext, name: string, unit: string, ...options: string[]): void {
  const directory = temporaryDirectory(t);
  const file = join(directory, name);
  writeFileSync(file, unit);
  const env = { ...process.env, XDG_RUNTIME_DIR: directory };
  const { status, stderr, error } = spawnSync('systemd-analyze', [...options, 'verify', file], {
    encoding: 'utf8',
    env,
  });
  if (error !== undefined) return t.diagnostic('systemd-analyze is not installed, so only the content was checked');
  assert.doesNotMatch(stderr, new RegExp(`${name}.*(Unknown|Failed to parse|ignoring|not executable)`, 'i'));
  assert.equal(status, 0, stderr);
}

test('systemd accepts the units', (t) => {
  const launch = { ...LAUNCH, node: process.execPath };
  // svcd rejects a Node in a home directory, see the test above; systemd does not.
  if (!/^\/(home|root)\//.test(process.execPath)) verify(t, 'svcd.service', systemdUnit(launch, SYSTEM));
  const odd = { ...launch, dataDir: '/srv/a b/100%/$HOME/"quoted"/back\\slash;&' };
  verify(t, 'svcd.service', systemdUnit(odd, USER));
  verify(t, 'svcd.service', systemdUnit(odd, { ...SYSTEM, user: true }), '--user');
});

test('the plist and the task are well-formed, and restart only after a failure', () => {
  const plist = launchdPlist(LAUNCH, MAC);
  assert.match(plist, /<key>KeepAlive<\/key>\s*<dict>\s*<key>SuccessfulExit<\/key>\s*<false\/>/);
  assert.match(plist, /<key>Umask<\/key>\s*<integer>63<\/integer>/);
  assert.match(plist, /\/Users\/u\/Library\/Logs\/svcd\.log/);
  const system = textOf(windowsTask(WINDOWS, TASK));
  assert.equal(system.codePointAt(0), 0xfeff);
  assert.match(system, /<UserId>S-1-5-19<\/UserId>/);
  assert.match(system, /<BootTrigger\/>/);
  assert.match(system, /<RestartOnFailure>/);
  assert.match(system, /<ExecutionTimeLimit>PT0S</);
  const own = textOf(windowsTask(WINDOWS, { ...TASK, user: true, userName: 'A&B\\u' }));
  assert.match(own, /<LogonTrigger>\s*<UserId>A&amp;B\\u<\/UserId>/);
});
