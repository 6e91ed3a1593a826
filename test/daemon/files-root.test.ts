import assert from 'node:assert/strict';
import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { checkFilesRoot } from '../../src/daemon/files-root.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

test('the files of objects are never where the keys, the data or the releases are', (t) => {
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
    join(home, 'files'),
    join(dataDir, 'files'),
    join(home, 'keys-of-mine'),
    join(home, '..', 'x'),
  ])
    check(filesRoot);
});
