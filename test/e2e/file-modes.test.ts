/** All files of svcd and svc are accessible to their owner only, under any umask. */
import assert from 'node:assert/strict';
import { lstatSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { Releases } from '../../src/capabilities/update/releases.ts';
import { DatabaseSnapshot } from '../../src/daemon/service/snapshot.ts';
import { svc, svcOk } from '../support/cli.ts';
import { TestDaemon } from '../support/daemon.ts';
import { EchoService } from '../support/echo-service.ts';
import { fullAgent, tool } from '../support/moving.ts';
import { ready } from '../support/network.ts';
import { runOk } from '../support/programs.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

/** Files and folders that others than the owner can access. */
function publicFiles(directory: string): string[] {
  return readdirSync(directory, { recursive: true, encoding: 'utf8' }).flatMap((name) => {
    // A running daemon may have removed it meanwhile.
    const found = lstatSync(join(directory, name), { throwIfNoEntry: false });
    if (found === undefined) return [];
    const mode = found.mode & 0o7777;
    return mode === (found.isDirectory() ? 0o700 : 0o600) ? [] : [`${name}: ${mode.toString(8)}`];
  });
}

function hasAll(directory: string, names: readonly string[]): void {
  const there = readdirSync(directory, { recursive: true }).map(String);
  assert.deepEqual(
    names.filter((name) => !there.includes(name)),
    [],
  );
}

test('no file of a daemon, its programs or its restored backup is accessible to others', async (t) => {
  const before = process.umask(0);
  t.after(() => process.umask(before));
  const place = temporaryDirectory(t);
  const [dataDir, files, out, home] = ['data', 'files', 'out', 'home'].map((name) => join(place, name)) as [
    string,
    string,
    string,
    string,
  ];
  for (const directory of [out, home]) mkdirSync(directory, { mode: 0o700 });
  await using own = await EchoService.start();
  await using other = await EchoService.start();
  await using away = await TestDaemon.start();
  const settings = { dataDir, bootstrap: [away.dhtAddress], env: { SVCD_FILES_ROOT: files } };
  const daemon = await TestDaemon.start(settings);
  t.after(() => daemon.kill());
  await ready(daemon);
  const { aid } = await fullAgent(daemon, away, { own: own.address, friend: other.address });
  // The first change creates the file, the second one keeps the previous version.
  for (const min_observed_peers of [4, 5]) await daemon.call('PATCH', '/config', { min_observed_peers });
  await daemon.call('PUT', '/node/address-book', { aliases: { [aid]: 'mover' }, favorites: [] });
  const uploaded = await fetch(`${daemon.api}/agents/${aid}/cas?name=a`, {
    method: 'POST',
    body: Buffer.alloc(100_000),
    headers: { 'content-type': 'application/octet-stream' },
  });
  assert.equal(uploaded.status, 200);
  const { object_id } = (await uploaded.json()) as { object_id: string };
  await tool(daemon, 'group_object_get', { aid, object_id, dest: 'deep/down/a.bin' });

  const password = join(out, 'password');
  writeFileSync(password, 'correct horse\n', { mode: 0o600 });
  await svcOk(daemon, 'agents', 'export', aid, '-o', join(out, 'an.agent'));
  await svcOk(daemon, 'agents', 'export', aid, '-o', join(out, 'sealed.agent'), '--password-file', password);
  await svcOk(daemon, 'backup', join(out, 'node.svcd'), '--no-password');
  await svcOk(daemon, 'register', '--no-publish', '--save-master', join(out, 'master.key'));
  const wallet = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed';
  await svcOk(daemon, 'wallet', 'message', wallet, '--save', join(out, 'request.json'));
  await svcOk(daemon, 'doctor').catch(() => {});
  const releases = new Releases(dataDir);
  releases.write({ ...releases.read(), previous: null });
  releases.stage();
  const env = { HOME: home, XDG_CONFIG_HOME: join(home, '.config') };
  for (const client of ['cursor', 'claude-desktop'])
    await runOk(process.execPath, ['bin/svcd', 'mcp', 'add', client], { env });

  const running = ['daemon.json', 'lock.db', 'lock.db-journal', 'config.toml', 'config.toml.bak', 'keys/node.key'];
  const databases = ['svcd.db', 'records.db'].flatMap((name) => [name, `${name}-wal`, `${name}-shm`]);
  hasAll(dataDir, [...running, ...databases]);
  hasAll(files, ['deep/down/a.bin']);
  hasAll(out, ['an.agent', 'sealed.agent', 'node.svcd', 'master.key', 'request.json']);
  hasAll(home, ['.cursor/mcp.json']);
  assert.deepEqual(publicFiles(place), []);

  await daemon.kill('SIGTERM');
  new DatabaseSnapshot(dataDir, join(dataDir, 'releases', 'snapshot')).take();
  const restored = await svc(null, ['restore', join(out, 'node.svcd'), '--data-dir', dataDir, '--force']);
  assert.equal(restored.code, 0, restored.stderr);
  assert.ok(readdirSync(dataDir).some((name) => name.startsWith('replaced-')));
  assert.deepEqual(publicFiles(place), []);
  const again = await TestDaemon.start(settings);
  // A killed process leaves its temporary files.
  await again.kill('SIGKILL');
  assert.deepEqual(publicFiles(place), []);
});
