import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { type ServiceMachine, serviceCommand } from '../../../src/daemon/service/command.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

function setUp(
  t: TestContext,
  changes: Partial<ServiceMachine> = {},
  dataDir?: string,
  options: readonly string[] = [],
) {
  const home = temporaryDirectory(t);
  const machine: ServiceMachine = {
    platform: 'linux',
    environment: {},
    home,
    temporary: 'C:\\Temp',
    uid: 1000,
    userName: () => 'PC\\u',
    node: '/usr/bin/node',
    program: '/usr/lib/node_modules/svcd/bin/svcd',
    hasSystemd: () => true,
    ...changes,
  };
  let output = '';
  const run = async (...args: string[]): Promise<string> => {
    output = '';
    const dependencies = {
      machine,
      dataDir: () => dataDir,
      options: () => options,
      defaultDataDir: () => `${home}/.config/svcd`,
      print: (text: string) => void (output += text),
      supervise: async () => void (output += 'supervised'),
    };
    await serviceCommand(dependencies).parseAsync(args, { from: 'user' });
    return output;
  };
  return { home, run };
}

test('the service is started with the given options', async (t) => {
  const { run } = setUp(t, {}, undefined, ['--config', '/srv/c.toml', '--listen', ':5000']);
  assert.match(await run('install', '--user', '--dry-run'), /"--config" "\/srv\/c\.toml" "--listen" ":5000"\n/);
});

test('a dry run shows files and commands without executing them', async (t) => {
  const { home, run } = setUp(t);
  const own = await run('install', '--user', '--dry-run');
  assert.ok(own.startsWith(`write ${home}/.config/systemd/user/svcd.service:\n`), own);
  assert.match(
    own,
    /run systemctl --user daemon-reload\nrun systemctl --user enable svcd\.service\nrun systemctl --user restart svcd\.service\n$/,
  );
  assert.ok(own.includes(`"--data-dir" "${home}/.config/svcd"`));
  assert.equal(existsSync(join(home, '.config')), false);
  const system = await run('install', '--dry-run');
  assert.match(system, /^write \/etc\/systemd\/system\/svcd\.service:/);
  assert.match(system, /"--data-dir" "\/var\/lib\/svcd"/);
  assert.match(
    await run('uninstall', '--dry-run'),
    /disable --now svcd\.service\nremove \/etc\/systemd\/system\/svcd\.service\n/,
  );
  assert.equal(await run('start', '--dry-run'), 'run systemctl start svcd.service\n');
  assert.equal(await run('stop', '--user', '--dry-run'), 'run systemctl --user stop svcd.service\n');
  assert.equal(await run('status', '--dry-run'), 'run systemctl status --no-pager svcd.service\n');
});

test('the plans for macOS and Windows', async (t) => {
  const mac = setUp(t, { platform: 'darwin', home: '/Users/u', uid: 501 });
  const plan = await mac.run('install', '--dry-run');
  assert.match(plan, /^write \/Users\/u\/Library\/LaunchAgents\/svcd\.plist:/);
  assert.match(plan, /run launchctl bootstrap gui\/501 \/Users\/u\/Library\/LaunchAgents\/svcd\.plist\n$/);
  assert.equal(await mac.run('stop', '--dry-run'), 'run launchctl kill SIGTERM gui/501/svcd\n');
  await assert.rejects(setUp(t, { platform: 'darwin', uid: 0 }).run('install', '--dry-run'), {
    message: /without sudo/,
  });
  const paths = { node: 'C:\\Node\\node.exe', program: 'C:\\npm\\svcd\\bin\\svcd' };
  const windows = setUp(t, { platform: 'win32', environment: { PROGRAMDATA: 'D:\\Data' }, ...paths });
  const task = await windows.run('install', '--dry-run');
  assert.match(task, /run schtasks \/Create \/TN svcd \/XML C:\\Temp\\svcd-task\.xml \/F\n/);
  // The directory contains keys, so its access is restricted before the task runs.
  assert.match(
    task,
    /create the directory D:\\Data\\svcd\nrun icacls D:\\Data\\svcd \/inheritance:r .*\nrun schtasks \/Run/,
  );
});

test('an unsupported system gets a message with the command to run', async (t) => {
  const { run } = setUp(t, { platform: 'freebsd' });
  await assert.rejects(run('install'), { message: /svcd --data-dir <dir> service run/ });
  const other = setUp(t, { hasSystemd: () => false });
  await assert.rejects(other.run('install', '--user'), { code: 'not_found', message: /systemd is not running/ });
  assert.equal(existsSync(join(other.home, '.config')), false);
});

test('a system service runs as the owner of its data, never as root', async (t) => {
  const directory = join(temporaryDirectory(t), 'data');
  const { run } = setUp(t, {}, directory);
  await assert.rejects(run('install', '--dry-run'), { code: 'config_invalid', message: /Create .* first/ });
  mkdirSync(directory);
  if (process.getuid?.() === 0) await assert.rejects(run('install', '--dry-run'), { message: /not root/ });
  else assert.match(await run('install', '--dry-run'), new RegExp(`User=${process.getuid?.()}`));
  assert.match(await run('install', '--user', '--dry-run'), /WantedBy=default\.target/);
});

test('the path of Node in PATH is used if it survives updates', async (t) => {
  const directory = temporaryDirectory(t);
  for (const name of ['v24', 'bin', 'other']) mkdirSync(join(directory, name));
  const node = join(directory, 'v24', 'node');
  writeFileSync(node, '');
  writeFileSync(join(directory, 'other', 'node'), '');
  symlinkSync(node, join(directory, 'bin', 'node'));
  const found = setUp(t, { node, environment: { PATH: `relative:${directory}/other:${directory}/bin` } });
  assert.ok((await found.run('install', '--user', '--dry-run')).includes(`"${directory}/bin/node"`));
  const none = setUp(t, { node, environment: { PATH: `${directory}/other` } });
  assert.ok((await none.run('install', '--user', '--dry-run')).includes(`"${node}"`));
});

test('install writes the unit, and a missing service manager is reported', async (t) => {
  const PATH = process.env['PATH'];
  t.after(() => {
    process.env['PATH'] = PATH;
  });
  const { home, run } = setUp(t);
  const bin = join(home, 'bin');
  mkdirSync(bin);
  process.env['PATH'] = bin;
  await assert.rejects(run('install', '--user'), { code: 'not_found', message: /Cannot run systemctl/ });
  const answer = join(home, 'said');
  const script = (code: number): void =>
    writeFileSync(join(bin, 'systemctl'), `#!/bin/sh\necho "$@" >> '${answer}'\nexit ${code}\n`, { mode: 0o755 });
  script(0);
  assert.equal(await run('install', '--user'), 'install: done.\n');
  assert.match(readFileSync(join(home, '.config/systemd/user/svcd.service'), 'utf8'), /ExecStart=:/);
  assert.equal(
    readFileSync(answer, 'utf8'),
    '--user daemon-reload\n--user enable svcd.service\n--user restart svcd.service\n',
  );
  script(1);
  await assert.rejects(run('start', '--user'), { message: /"systemctl --user start svcd\.service" failed with 1/ });
  assert.match(await run('uninstall', '--user').catch((error: Error) => error.message), /daemon-reload" failed/);
  assert.equal(
    existsSync(join(home, '.config/systemd/user/svcd.service')),
    false,
    'uninstall continues after a failed stop',
  );
});

test('a service starts the supervisor', async (t) => {
  assert.equal(await setUp(t).run('run'), 'supervised');
});
