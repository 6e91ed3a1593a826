import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { acquireLock } from '../../../src/foundation/data-dir/lock.ts';
import { AnsweringDaemon } from '../../support/answering-daemon.ts';
import { runSvc } from '../../support/cli-run.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

test('removes the data and the entries of MCP clients, and nothing else, after it showed a plan', async (t) => {
  const home = temporaryDirectory(t);
  const dataDir = join(home, 'svcd');
  mkdirSync(join(dataDir, 'keys'), { recursive: true });
  for (const name of ['svcd.db', 'svcd.db-wal', 'records.db', 'lock.db', 'config.toml', 'svc-use', 'notes.txt'])
    writeFileSync(join(dataDir, name), '');
  const config = join(home, '.cursor', 'mcp.json');
  mkdirSync(join(home, '.cursor'));
  const other = { command: 'npx', args: ['other'] };
  const own = { command: '/usr/bin/node', args: ['/opt/svcd/bin/svc', 'mcp', 'use', 'bob', '--stdio'] };
  writeFileSync(config, JSON.stringify({ mcpServers: { bob: own, other } }));
  const env = { HOME: home, SVCD_DATA_DIR: dataDir };
  const uninstall = async (...options: readonly string[]) => {
    const { code, stdout } = await runSvc(['uninstall', '--json', ...options], { env });
    const { parts } = JSON.parse(stdout) as { parts: { part: string; place: string; state: string; note?: string }[] };
    return { code, parts: parts.filter(({ part }) => part !== 'service') };
  };
  for (const options of [[], ['--plan'], ['--plan', '--yes'], ['--plan', '-y']]) {
    const { code, parts } = await uninstall(...options);
    assert.equal(code, 0);
    assert.deepEqual(
      parts.map(({ part, state }) => [part, state]),
      [
        ['data', 'present'],
        ['mcp', 'present'],
        ['package', 'present'],
      ],
    );
  }
  assert.ok(existsSync(join(dataDir, 'svcd.db')));
  const { code, parts } = await uninstall('--yes');
  assert.equal(code, 1, 'a foreign file keeps the folder');
  assert.deepEqual(
    parts.map(({ part, state, note = '' }) => [part, state, note]),
    [
      ['data', 'kept', 'kept other files: notes.txt'],
      ['mcp', 'removed', ''],
      ['package', 'kept', 'delete this folder: it is a checkout'],
    ],
  );
  assert.deepEqual(readdirSync(dataDir), ['notes.txt']);
  assert.deepEqual(JSON.parse(readFileSync(config, 'utf8')), { mcpServers: { other } });
  assert.equal((await runSvc(['uninstall', '--via', 'x'], { env })).code !== 0, true);
});

test('removes nothing while a daemon refuses this client', async (t) => {
  const home = temporaryDirectory(t);
  const dataDir = join(home, 'svcd');
  mkdirSync(dataDir);
  writeFileSync(join(dataDir, 'svcd.db'), '');
  const daemon = await AnsweringDaemon.start(t, () => [401, { error: 'unauthorized', message: 'No.' }]);
  const env = { HOME: home, SVCD_DATA_DIR: dataDir, SVC_API: daemon.api };
  assert.notEqual((await runSvc(['uninstall', '--yes'], { env })).code, 0);
  assert.ok(existsSync(join(dataDir, 'svcd.db')));
});

test('keeps the data that a daemon at another address uses', async (t) => {
  const home = temporaryDirectory(t);
  const dataDir = join(home, 'svcd');
  mkdirSync(dataDir);
  writeFileSync(join(dataDir, 'svcd.db'), '');
  const lock = acquireLock(dataDir);
  assert.ok(lock);
  const env = { HOME: home, SVCD_DATA_DIR: dataDir };
  const { code, stdout } = await runSvc(['uninstall', '--yes'], { env });
  assert.equal(code, 1);
  assert.match(stdout, /another program uses it: stop it first/);
  assert.ok(existsSync(join(dataDir, 'svcd.db')));
  lock.release();
});
