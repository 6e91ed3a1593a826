/** Power loss at every commit: acknowledged objects are complete, and no row lacks its bytes. */
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { ObjectService } from '../../../src/capabilities/objects/object-service.ts';
import { systemClock } from '../../../src/foundation/clock.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { ObjectRepository } from '../../../src/foundation/store/objects.ts';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { Crash, type CrashPoint, crashingStore } from '../../support/crashing-store.ts';
import { sha256, someBytes } from '../../support/object-world.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';
import { aid } from './store-forever.ts';

const BYTES = [1, 2, 3, 4].map((seed) => someBytes(seed * 10_000, seed));

async function hashOf(objects: ObjectService, objectId: string): Promise<string> {
  const { handle } = await objects.open(aid, objectId);
  try {
    return sha256(await handle.readFile());
  } finally {
    await handle.close();
  }
}

/**
 * Stores, registers and deletes objects until the power loss, then checks the result. Returns the number of commits.
 */
async function work(t: TestContext, point: CrashPoint): Promise<number> {
  const directory = temporaryDirectory(t);
  const filesRoot = join(directory, 'files');
  mkdirSync(filesRoot);
  const service = (store: Store): ObjectService =>
    new ObjectService({ filesRoot }, new ObjectRepository(store), systemClock, silentLog);
  const file = join(directory, 'svcd.db');
  const crashing = crashingStore(file, point);
  const objects = service(crashing.store);
  await objects.start();
  crashing.arm();
  const kept = new Set<string>();
  const deleted = new Set<string>();
  try {
    for (const [i, bytes] of BYTES.entries()) {
      kept.add((await objects.store(aid, [bytes])).objectId);
      writeFileSync(join(filesRoot, `${i}`), bytes.subarray(1));
      kept.add((await objects.put(aid, { path: `${i}` })).objectId);
      const [oldest] = kept;
      if (i % 2 === 0 || oldest === undefined) continue;
      kept.delete(oldest);
      objects.delete(aid, oldest);
      deleted.add(oldest);
    }
  } catch (error) {
    if (!(error instanceof Crash)) throw error;
  }

  const store = Store.open(file, MIGRATIONS, 'normal');
  t.after(() => store.close());
  const again = service(store);
  await again.start();
  for (const objectId of kept) assert.equal(await hashOf(again, objectId), objectId);
  for (const objectId of deleted) await assert.rejects(again.open(aid, objectId), { code: 'not_found' });
  const listed = again.list(aid, 100).objects;
  for (const { objectId } of listed) assert.equal(await hashOf(again, objectId), objectId);
  const stored = readdirSync(join(filesRoot, '.svcd', 'objects'), { recursive: true, withFileTypes: true });
  const names = stored.filter((entry) => entry.isFile()).map(({ name }) => name);
  const named = listed.filter(({ path }) => path === null).map(({ objectId }) => objectId);
  assert.deepEqual(names.sort(), named.sort(), 'no bytes remain without a row');
  assert.deepEqual(readdirSync(join(filesRoot, '.svcd', 'incoming')), []);
  return crashing.commits();
}

test('power loss at each commit, before or after it is on disk', async (t) => {
  const commits = await work(t, { commit: 0, kept: false });
  assert.ok(commits >= 10, `${commits}`);
  for (let commit = 1; commit <= commits; commit++) for (const kept of [false, true]) await work(t, { commit, kept });
});
