import assert from 'node:assert/strict';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { ObjectService } from '../../../src/capabilities/objects/object-service.ts';
import { systemClock } from '../../../src/foundation/clock.ts';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { ObjectRepository } from '../../../src/foundation/store/objects.ts';
import { newIdentity } from '../../support/identities.ts';
import { withCode } from '../../support/link-world.ts';
import { objectService, sha256, someBytes } from '../../support/object-world.ts';

const one = newIdentity().aid;
const two = newIdentity().aid;

async function read(objects: ObjectService, aid: Aid, objectId: string): Promise<Buffer> {
  const { handle } = await objects.open(aid, objectId);
  try {
    return await handle.readFile();
  } finally {
    await handle.close();
  }
}

/** Files below a folder, as relative paths. */
function filesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

async function* pieces(...chunks: (Uint8Array | Error)[]): AsyncGenerator<Uint8Array> {
  for (const chunk of chunks) {
    if (chunk instanceof Error) throw chunk;
    yield chunk;
  }
}

test('without files_root every operation fails and names the missing setting', async (t) => {
  const { objects } = await objectService(t, { filesRoot: '' });
  await assert.rejects(objects.put(one, { bytes: Buffer.from('x') }), withCode('files_root_required'));
  await assert.rejects(objects.open(one, sha256('x')), withCode('not_found'));
});

test('another folder applies immediately, and its earlier objects are available again', async (t) => {
  const { objects, filesRoot, directory } = await objectService(t);
  const { objectId } = await objects.put(one, { bytes: Buffer.from('x') });
  const other = join(directory, 'other');
  objects.use(other);
  assert.ok(!existsSync(other), 'a folder is created when it is first needed');
  assert.equal(objects.count(), 1);
  await assert.rejects(objects.open(one, objectId), withCode('gone'));
  await objects.put(one, { bytes: Buffer.from('y') });
  assert.equal(filesIn(other).length, 1);
  objects.use('');
  await assert.rejects(objects.put(one, { bytes: Buffer.from('z') }), withCode('files_root_required'));
  objects.use(filesRoot);
  await (await objects.open(one, objectId)).handle.close();
});

test('bytes become an object under their hash, stored once for all agents', async (t) => {
  const { objects, filesRoot } = await objectService(t);
  const bytes = someBytes(200_000);
  const objectId = sha256(bytes);
  const stored = await objects.store(one, pieces(bytes.subarray(0, 70_000), bytes.subarray(70_000)), 'a/../b.bin');
  assert.deepEqual(stored, {
    objectId,
    size: bytes.length,
    name: 'b.bin',
    url: `svc://${one}/cas/${objectId}`,
    isNew: true,
  });
  assert.deepEqual(await read(objects, one, objectId), bytes);
  await objects.put(two, { bytes });
  assert.equal(filesIn(filesRoot).length, 1);
  await assert.doesNotReject(read(objects, one, objectId));
  objects.delete(one, objectId);
  assert.equal(objects.stat(one, objectId), null);
  assert.deepEqual(await read(objects, two, objectId), bytes);
  objects.delete(two, objectId);
  assert.deepEqual(filesIn(filesRoot), []);
  assert.throws(() => objects.delete(two, objectId), withCode('not_found'));
});

test('an empty object and unusual names are valid', async (t) => {
  const { objects } = await objectService(t);
  const empty = await objects.put(one, { bytes: new Uint8Array() }, '..');
  assert.equal(empty.name, empty.objectId);
  assert.equal((await read(objects, one, sha256(''))).length, 0);
  const long = await objects.put(one, { bytes: Buffer.from('x') }, '😀'.repeat(200));
  assert.ok(Buffer.byteLength(long.name) <= 255 && long.name.isWellFormed());
  const bidi = await objects.put(one, { bytes: Buffer.from('y') }, 'a\u202etxt.exe\n');
  assert.equal(bidi.name, 'atxt.exe');
});

test('an interrupted upload leaves nothing behind', async (t) => {
  const { objects, filesRoot } = await objectService(t);
  await assert.rejects(objects.store(one, pieces(Buffer.from('half'), new Error('gone'))), /gone/);
  assert.deepEqual(filesIn(filesRoot), []);
  assert.equal(objects.list(one, 10).usage.count, 0);
});

test('the quota limits bytes and objects, also for concurrent uploads', async (t) => {
  const { objects, filesRoot } = await objectService(t, { quota: { bytes: 1_000, count: 3 } });
  await assert.rejects(objects.store(one, pieces(), 'x', 1_001), withCode('quota_exceeded'), 'before the first byte');
  await assert.rejects(objects.store(one, pieces(someBytes(600), someBytes(600))), withCode('quota_exceeded'));
  assert.deepEqual(filesIn(filesRoot), []);
  const both = await Promise.allSettled([
    objects.store(one, pieces(someBytes(300, 1), someBytes(300, 2))),
    objects.store(one, pieces(someBytes(300, 3), someBytes(300, 4))),
  ]);
  assert.equal(both.filter(({ status }) => status === 'fulfilled').length, 1);
  assert.equal(objects.list(one, 10).usage.bytes, 600);
  await objects.put(one, { bytes: someBytes(1) });
  await objects.put(one, { bytes: someBytes(2) });
  await assert.rejects(objects.put(one, { bytes: someBytes(3) }), withCode('quota_exceeded'));
  await objects.put(two, { bytes: someBytes(900) });
});

test('an upload that was stored meanwhile counts, although both fitted at their start', async (t) => {
  const { objects, filesRoot } = await objectService(t, { quota: { bytes: 1_000 } });
  async function* slow(): AsyncGenerator<Uint8Array> {
    yield someBytes(300, 1);
    await objects.put(one, { bytes: someBytes(600, 2) });
    yield someBytes(300, 3);
  }
  await assert.rejects(objects.store(one, slow()), { code: 'quota_exceeded', details: { max_bytes: 1_000 } });
  assert.deepEqual(objects.list(one, 10).usage, { bytes: 600, count: 1 });
  assert.equal(filesIn(filesRoot).length, 1);
});

test('a folder that cannot be written is reported', async (t) => {
  const { objects, filesRoot } = await objectService(t);
  rmSync(join(filesRoot, '.svcd', 'incoming'), { recursive: true });
  await assert.rejects(objects.put(one, { bytes: someBytes(10) }), withCode('not_writable'));
  assert.equal(objects.list(one, 10).usage.count, 0);
});

test('a file is registered in place, and served while it is unchanged', async (t) => {
  const { objects, filesRoot } = await objectService(t);
  const file = join(filesRoot, 'sub', 'report.pdf');
  mkdirSync(join(filesRoot, 'sub'));
  writeFileSync(file, 'version 1');
  const registered = await objects.put(one, { path: 'sub/report.pdf' });
  assert.equal(registered.objectId, sha256('version 1'));
  assert.equal(registered.name, 'report.pdf');
  assert.equal(filesIn(join(filesRoot, '.svcd')).length, 0, 'nothing is copied');
  assert.equal((await read(objects, one, registered.objectId)).toString(), 'version 1');
  assert.equal(objects.list(one, 10).objects[0]?.path, 'sub/report.pdf');
  assert.equal(objects.list(one, 10).usage.bytes, 0);

  utimesSync(file, new Date(0), new Date(0));
  assert.equal((await read(objects, one, registered.objectId)).toString(), 'version 1', 'touched, but the same');
  objects.delete(one, registered.objectId);
  assert.ok(existsSync(file), 'the file remains');
});

test('a file with changed bytes is no longer available, even with the same size and times', async (t) => {
  const { objects, filesRoot } = await objectService(t);
  const file = join(filesRoot, 'a');
  writeFileSync(file, 'version 1');
  const { objectId } = await objects.put(one, { path: 'a' });
  const { atime, mtime } = statSync(file);
  writeFileSync(file, 'version 2');
  utimesSync(file, atime, mtime);
  await assert.rejects(objects.open(one, objectId), withCode('gone'));
  await assert.rejects(objects.open(one, objectId), withCode('gone'));
  writeFileSync(file, 'version 1');
  assert.equal((await read(objects, one, objectId)).toString(), 'version 1', 'restored');
  appendFileSync(file, '!');
  await assert.rejects(objects.open(one, objectId), withCode('gone'));
  rmSync(file);
  await assert.rejects(objects.open(one, objectId), withCode('gone'));
});

test('a registered file that became a link to the outside is no longer available', async (t) => {
  const { objects, filesRoot, directory } = await objectService(t);
  const outside = join(directory, 'secret');
  writeFileSync(outside, 'same bytes');
  writeFileSync(join(filesRoot, 'a'), 'same bytes');
  const { objectId } = await objects.put(one, { path: 'a' });
  rmSync(join(filesRoot, 'a'));
  symlinkSync(outside, join(filesRoot, 'a'));
  await assert.rejects(objects.open(one, objectId), withCode('gone'));
});

test('a file that changes while it is read is detected', async (t) => {
  const { objects, filesRoot } = await objectService(t);
  writeFileSync(join(filesRoot, 'a'), 'version 1');
  const { objectId } = await objects.put(one, { path: 'a' });
  const object = await objects.open(one, objectId);
  assert.equal(await object.isIntact(), true);
  appendFileSync(join(filesRoot, 'a'), '!');
  assert.equal(await object.isIntact(), false);
  await object.handle.close();
});

test('edited stored bytes are unavailable until the next upload', async (t) => {
  const { objects, filesRoot } = await objectService(t);
  const bytes = someBytes(1_000);
  const { objectId } = await objects.put(one, { bytes });
  const [file = ''] = filesIn(filesRoot);
  const edited = Buffer.from(bytes);
  edited[0] = (edited[0] ?? 0) ^ 1;
  writeFileSync(file, edited);
  // A different time, even if the file system has coarse timestamps.
  utimesSync(file, new Date(0), new Date(0));
  await assert.rejects(objects.open(one, objectId), withCode('gone'));
  await objects.put(two, { bytes });
  assert.deepEqual(await read(objects, one, objectId), bytes);
});

/** Fails at each write of an object. */
class FailingRepository extends ObjectRepository {
  override put(): void {
    throw new Error('crash');
  }
}

test('a start removes partial uploads and bytes without a row, and no complete object', async (t) => {
  const { objects, filesRoot, store } = await objectService(t);
  const { objectId } = await objects.put(one, { bytes: someBytes(100) });
  const own = join(filesRoot, '.svcd');
  writeFileSync(join(own, 'incoming', 'half'), 'half');
  writeFileSync(join(own, 'parts', sha256('new')), 'new');
  writeFileSync(join(own, 'parts', sha256('old')), 'old');
  utimesSync(join(own, 'parts', sha256('old')), new Date(0), new Date(0));
  const failing = new ObjectService({ filesRoot }, new FailingRepository(store), systemClock, silentLog);
  await assert.rejects(failing.put(one, { bytes: someBytes(50, 1) }), /crash/);
  assert.equal(filesIn(join(own, 'objects')).length, 2);
  await objects.start();
  const left = filesIn(own).map((file) => file.slice(own.length + 1));
  assert.deepEqual(left.sort(), [`objects/${objectId.slice(0, 2)}/${objectId}`, `parts/${sha256('new')}`]);
});

test('a start with another database deletes no bytes, and the same bytes can be stored again', async (t) => {
  const { objects, filesRoot } = await objectService(t);
  const bytes = someBytes(100);
  const { objectId } = await objects.put(one, { bytes });
  const other = await objectService(t, { filesRoot });
  assert.deepEqual(await read(objects, one, objectId), bytes);
  await other.objects.put(two, { bytes });
  other.objects.delete(two, objectId);
  await objects.put(one, { bytes });
  await other.objects.start();
  assert.deepEqual(await read(objects, one, objectId), bytes);
});

test('a moved folder keeps its objects: their files are hashed again', async (t) => {
  const { objects, filesRoot } = await objectService(t);
  const bytes = someBytes(100);
  const { objectId } = await objects.put(one, { bytes });
  const [file = ''] = filesIn(filesRoot);
  writeFileSync(`${file}.copy`, readFileSync(file));
  renameSync(`${file}.copy`, file);
  assert.deepEqual(await read(objects, one, objectId), bytes);
});

test('objects are listed in pages, and deleted with their agent', async (t) => {
  const { objects, filesRoot } = await objectService(t);
  for (let i = 0; i < 5; i++) await objects.put(one, { bytes: someBytes(10, i) });
  const first = objects.list(one, 3);
  const rest = objects.list(one, 3, first.objects.at(-1)?.objectId);
  assert.equal(new Set([...first.objects, ...rest.objects].map(({ objectId }) => objectId)).size, 5);
  objects.forgetAgent(one);
  assert.equal(objects.list(one, 10).objects.length, 0);
  assert.deepEqual(filesIn(filesRoot), []);
});

test('a file that is being hashed is listed with its progress', async (t) => {
  const { objects, filesRoot } = await objectService(t);
  writeFileSync(join(filesRoot, 'film.mp4'), someBytes(8_000_000));
  const registering = objects.register(one, 'film.mp4');
  let seen = objects.list(one, 1).hashing;
  while (seen.length === 0 || seen[0]?.hashed === 0) {
    await new Promise((resolve) => setImmediate(resolve));
    seen = objects.list(one, 1).hashing;
  }
  assert.deepEqual([seen[0]?.path, seen[0]?.size], ['film.mp4', 8_000_000]);
  assert.deepEqual(objects.list(two, 1).hashing, []);
  await registering;
  assert.deepEqual(objects.list(one, 1).hashing, []);
});
