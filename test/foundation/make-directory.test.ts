import assert from 'node:assert/strict';
import fs, { mkdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { test } from 'node:test';
import { ObjectService } from '../../src/capabilities/objects/object-service.ts';
import { systemClock } from '../../src/foundation/clock.ts';
import { makeDirectory } from '../../src/foundation/files.ts';
import { silentLog } from '../../src/foundation/log.ts';
import { ObjectRepository } from '../../src/foundation/store/objects.ts';
import { MIGRATIONS } from '../../src/foundation/store/schema.ts';
import { Store } from '../../src/foundation/store/store.ts';
import { testAid } from '../support/agents.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const MODE = 0o700;

test('creates folders with their parents and keeps existing ones', (t) => {
  const base = temporaryDirectory(t);
  const path = join(base, 'a', 'b', 'c');
  makeDirectory(path, MODE);
  writeFileSync(join(path, 'file'), 'kept');
  makeDirectory(path, MODE);
  makeDirectory(`${path}/../d/`, MODE);
  if (process.platform !== 'win32') assert.equal(statSync(join(base, 'a')).mode & 0o777, MODE);
  assert.ok(statSync(join(base, 'a', 'b', 'd')).isDirectory());
  symlinkSync(path, join(base, 'link'));
  makeDirectory(join(base, 'link', 'e'), MODE);
  assert.ok(statSync(join(path, 'e')).isDirectory());
});

test('a file in the way is an error, as a name that leads nowhere', (t) => {
  const base = temporaryDirectory(t);
  writeFileSync(join(base, 'file'), '');
  assert.throws(() => makeDirectory(join(base, 'file'), MODE), { code: 'EEXIST' });
  assert.throws(() => makeDirectory(join(base, 'file', 'x'), MODE), { code: 'ENOTDIR' });
  symlinkSync(join(base, 'nowhere'), join(base, 'dangling'));
  assert.throws(() => makeDirectory(join(base, 'dangling'), MODE), { code: 'EEXIST' });
  mkdirSync(join(base, 'nowhere'));
  makeDirectory(join(base, 'dangling'), MODE);
});

test('returns for a folder below /proc, which cannot be created: objects are off, and the daemon runs', {
  skip: process.platform === 'linux' ? false : 'this file system does not exist',
}, async (t) => {
  for (const path of ['/proc/svcd', '/proc/svcd/files', '/proc/self/svcd'])
    assert.throws(() => makeDirectory(path, MODE), { code: 'ENOENT' });
  const store = Store.open(':memory:', MIGRATIONS);
  t.after(() => store.close());
  const repository = new ObjectRepository(store);
  const objects = new ObjectService({ filesRoot: '/proc/svcd' }, repository, systemClock, silentLog);
  await objects.start();
  await assert.rejects(objects.store(testAid(1), [Buffer.from('x')]), { code: 'not_writable' });
});

test('a root that is not there, as that of a drive that was taken out, ends the look upwards', (t) => {
  const path = join(temporaryDirectory(t), 'a');
  let looks = 0;
  t.mock.method(fs, 'existsSync', () => {
    if (++looks > 1000) throw new Error('it looks on and on');
    return false;
  });
  syncBuiltinESMExports();
  t.after(() => {
    t.mock.restoreAll();
    syncBuiltinESMExports();
  });
  makeDirectory(path, MODE);
  assert.ok(statSync(path).isDirectory());
});
