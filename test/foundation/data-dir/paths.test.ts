import assert from 'node:assert/strict';
import { isAbsolute, join } from 'node:path';
import { test } from 'node:test';
import { defaultDataDir } from '../../../src/foundation/data-dir/paths.ts';
import { run } from '../../support/programs.ts';

test('is in the user configuration directory of each system', () => {
  const on = (platform: NodeJS.Platform, home: string, environment: Record<string, string> = {}) =>
    defaultDataDir({ platform, home, environment });
  assert.equal(on('linux', '/home/u'), '/home/u/.config/svcd');
  assert.equal(on('linux', '/home/u', { XDG_CONFIG_HOME: '/cfg' }), '/cfg/svcd');
  assert.equal(on('linux', '/home/u', { XDG_CONFIG_HOME: 'cfg' }), '/home/u/.config/svcd');
  assert.equal(on('linux', '/home/u', { XDG_CONFIG_HOME: '' }), '/home/u/.config/svcd');
  assert.equal(on('freebsd', '/home/u'), '/home/u/.config/svcd');
  assert.equal(on('darwin', '/Users/u', { XDG_CONFIG_HOME: '/cfg' }), '/Users/u/Library/Application Support/svcd');
  assert.equal(on('win32', 'C:\\Users\\u', { APPDATA: 'D:\\Data' }), 'D:\\Data\\svcd');
  assert.equal(on('win32', 'C:\\Users\\u'), 'C:\\Users\\u\\AppData\\Roaming\\svcd');
});

test('is this machine’s by default', () => {
  assert.ok(isAbsolute(defaultDataDir()));
  assert.match(defaultDataDir(), /[\\/]svcd$/);
});

test('a user without name and home directory only needs them to find a directory', async (t) => {
  const root = join(import.meta.dirname, '../../..');
  const start = (...args: string[]) =>
    run('unshare', ['-U', '--map-user=12345', 'env', '-i', '-C', '/', process.execPath, ...args]);
  const [svcd, svc] = [join(root, 'bin/svcd'), join(root, 'bin/svc')];
  const version = await start(svcd, '--version');
  if (version.stderr.startsWith('unshare')) return t.skip('needs user namespaces (unshare)');
  assert.equal(version.code, 0, version.stderr);
  for (const args of [
    [svc, '--version'],
    [svcd, '--help'],
  ]) {
    const { code, stderr } = await start(...args);
    assert.deepEqual([code, stderr], [0, '']);
  }
  const asked = await start(svc, '--api', 'http://127.0.0.1:1', 'status');
  assert.deepEqual([asked.code, /No daemon answers/.test(asked.stderr)], [3, true], asked.stderr);
  for (const args of [[svcd], [svc, 'use', '--off']]) {
    const { code, stderr } = await start(...args);
    assert.equal(code, 2, stderr);
    assert.match(stderr, /^svcd?: This user has no home directory\. Set HOME, or give the data directory/);
  }
});
