import assert from 'node:assert/strict';
import { isAbsolute } from 'node:path';
import { test } from 'node:test';
import { defaultDataDir } from '../../../src/foundation/data-dir/paths.ts';

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
