import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { checkFilesRoot, FilesRootSetting, resolveFilesRoot } from '../../src/daemon/files-root.ts';
import { ConfigService } from '../../src/foundation/config/config-service.ts';
import { silentLog } from '../../src/foundation/log.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

test('the object directory must not contain the keys, the data or the releases', (t) => {
  const home = temporaryDirectory(t);
  const dataDir = join(home, '.config', 'svcd');
  mkdirSync(dataDir, { recursive: true });
  mkdirSync(join(home, 'keys'));
  symlinkSync(home, join(home, 'link'));
  const check = (filesRoot: string): void => checkFilesRoot(filesRoot, { dataDir, keys: join(home, 'keys') });
  const refused = ['/', home, join(home, 'link'), join(home, '.config'), dataDir, `${dataDir}/.`];
  const inside = [
    join(home, 'keys'),
    join(home, 'keys', 'mine'),
    join(dataDir, 'releases'),
    join(dataDir, 'releases', 'x'),
  ];
  for (const filesRoot of [...refused, ...inside, join(home, 'files', '..'), join(home, 'link', '.config')])
    assert.throws(() => check(filesRoot), { code: 'config_invalid', details: { key: 'files_root' } }, filesRoot);
  for (const filesRoot of [
    '',
    'none',
    join(home, 'files'),
    join(dataDir, 'files'),
    join(home, 'keys-of-mine'),
    join(home, '..', 'x'),
  ])
    check(filesRoot);
});

test('objects are in the data directory by default, in the configured directory, or off', () => {
  assert.equal(resolveFilesRoot('', '/data'), join('/data', 'files'));
  assert.equal(resolveFilesRoot('/srv/files', '/data'), '/srv/files');
  assert.equal(resolveFilesRoot('none', '/data'), '');
});

function setting(t: TestContext, flags: { files_root?: string } = {}) {
  const home = temporaryDirectory(t);
  const dataDir = join(home, 'svcd');
  const file = join(home, 'config.toml');
  const used: string[] = [];
  const configuration = new ConfigService({ file, environment: {}, flags });
  const filesRoot = new FilesRootSetting({
    configuration,
    objects: { use: (path) => void used.push(path), count: () => 3 },
    own: { dataDir, keys: join(dataDir, 'keys') },
    log: silentLog,
  });
  return { home, dataDir, file, used, configuration, filesRoot };
}

test('a new directory takes effect immediately and is stored; remaining objects are counted', (t) => {
  const { home, dataDir, file, used, filesRoot } = setting(t);
  const shared = join(home, 'shared');
  assert.deepEqual(filesRoot.set(shared), { path: shared, left: 3, overridden: false });
  assert.deepEqual(filesRoot.set(shared), { path: shared, left: 0, overridden: false });
  assert.match(readFileSync(file, 'utf8'), /files_root = ".*shared"/);
  assert.deepEqual(filesRoot.set('none'), { path: '', left: 3, overridden: false });
  assert.deepEqual(filesRoot.set(''), { path: join(dataDir, 'files'), left: 3, overridden: false });
  assert.deepEqual(used, [shared, '', join(dataDir, 'files')]);
});

test('a directory with the keys, a relative one, and one overridden by a flag are rejected', (t) => {
  const { dataDir, used, filesRoot } = setting(t);
  for (const path of [dataDir, join(dataDir, 'keys'), 'relative'])
    assert.throws(() => filesRoot.set(path), { code: 'config_invalid' }, path);
  assert.deepEqual(used, []);
  const flagged = setting(t, { files_root: '/srv/files' });
  assert.deepEqual(flagged.filesRoot.set(''), { path: '/srv/files', left: 0, overridden: true });
});

test('a directory in an edited configuration file is checked as well', (t) => {
  const { dataDir, file, used, configuration } = setting(t);
  writeFileSync(file, `files_root = ${JSON.stringify(dataDir)}\n`, { mode: 0o600 });
  configuration.patch({ auto_publish: false });
  assert.deepEqual(used, ['']);
});
