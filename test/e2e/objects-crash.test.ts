/**
 * SIGKILL at random moments of uploading, registering, deleting and fetching objects, on real daemons and real disks.
 */
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { TestDaemon } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { killSome, Mortal } from '../support/mortal.ts';
import { sha256, someBytes } from '../support/object-world.ts';
import { Random } from '../support/random.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const KILLS = 8;
const MAX_BYTES = 3_000_000;

/** The bytes at an object's address, or null if the transfer is incomplete. */
async function bytesOf(mortal: Mortal, holder: string, objectId: string): Promise<Buffer | null> {
  try {
    const response = await fetch(`${mortal.daemon.api}/aid/${holder}/cas/${objectId}`);
    const bytes = Buffer.from(await response.arrayBuffer());
    return response.status === 200 ? bytes : null;
  } catch {
    return null;
  }
}

async function upload(mortal: Mortal, aid: string, body: Buffer<ArrayBuffer>): Promise<boolean> {
  try {
    const headers = { 'content-type': 'application/octet-stream' };
    const response = await fetch(`${mortal.daemon.api}/agents/${aid}/cas`, { method: 'POST', headers, body });
    await response.arrayBuffer();
    return response.status === 200;
  } catch {
    return false;
  }
}

/** The ids of all objects that an agent lists. */
async function listed(mortal: Mortal, aid: string): Promise<string[]> {
  const ids: string[] = [];
  for (let cursor: string | undefined = ''; cursor !== undefined; ) {
    const query = cursor === '' ? '' : `&cursor=${cursor}`;
    const page: { objects: { object_id: string }[]; next_cursor?: string } = await mortal.daemon.call(
      'GET',
      `/agents/${aid}/cas?limit=100${query}`,
    );
    ids.push(...page.objects.map(({ object_id }) => object_id));
    cursor = page.next_cursor;
  }
  return ids;
}

test('objects: acknowledged objects are complete, and no partial object is ever served', async (t) => {
  const [theirs, ours] = [temporaryDirectory(t), temporaryDirectory(t)];
  await using root = await TestDaemon.start();
  const holder = await Mortal.start(root.dhtAddress, { env: { SVCD_FILES_ROOT: theirs } });
  const reader = await Mortal.start(root.dhtAddress, { env: { SVCD_FILES_ROOT: ours } });
  const over = new AbortController();
  try {
    const [alice, bob] = [await holder.publishedAgent(), await reader.publishedAgent()];
    const random = new Random(17);
    mkdirSync(join(theirs, 'own'));
    const kept = new Set<string>();
    const deleted = new Set<string>();
    const got = new Map<string, string>();
    const add = async (i: number): Promise<void> => {
      const bytes = Buffer.from(someBytes(1 + random.below(MAX_BYTES), i + 1));
      if (random.chance(0.5)) {
        if (await upload(holder, alice, bytes)) kept.add(sha256(bytes));
      } else {
        const path = join('own', `${i}.bin`);
        writeFileSync(join(theirs, path), bytes);
        if ((await holder.tool('group_object_put', { aid: alice, path })) !== null) kept.add(sha256(bytes));
      }
    };
    const remove = async (): Promise<void> => {
      const objectId = random.pick([...kept]);
      // The object may be deleted as soon as deletion is requested, even if the response is lost.
      kept.delete(objectId);
      if ((await holder.ask('DELETE', `/agents/${alice}/cas/${objectId}`, {})) !== null) deleted.add(objectId);
    };
    const adding = (async () => {
      for (let i = 0; !over.signal.aborted; i++) {
        if (kept.size > 3 && random.chance(0.15)) await remove();
        else await add(i);
        await delay(10);
      }
    })();
    const getting = (async () => {
      for (let i = 0; !over.signal.aborted; i++) {
        await delay(10);
        if (kept.size === 0) continue;
        const objectId = random.pick([...kept]);
        if (random.chance(0.5)) {
          const bytes = await bytesOf(reader, alice, objectId);
          assert.ok(bytes === null || sha256(bytes) === objectId, 'a partial object was served');
        } else {
          const dest = join('got', `${i}`);
          const args = { aid: bob, object_id: objectId, hint_aid: alice, dest, register: true };
          if ((await reader.tool('group_object_get', args)) !== null) got.set(dest, objectId);
        }
      }
    })();
    await killSome([holder, reader], KILLS, random);
    await eventually('enough operations succeeded', () => kept.size > 5 && got.size > 2 && deleted.size > 0);
    over.abort();
    await Promise.all([adding, getting]);
    await holder.die();
    await reader.die();

    for (const objectId of kept) {
      const bytes = await bytesOf(holder, alice, objectId);
      assert.equal(bytes === null ? null : sha256(bytes), objectId, 'an acknowledged object is lost');
    }
    for (const objectId of deleted) assert.equal(await bytesOf(holder, alice, objectId), null, 'a deletion is lost');
    for (const [dest, objectId] of got) {
      assert.equal(sha256(readFileSync(join(ours, dest))), objectId);
      assert.ok((await bytesOf(reader, bob, objectId)) !== null, 'an object that was fetched and registered is lost');
    }
    for (const [mortal, aid] of [
      [holder, alice],
      [reader, bob],
    ] as const)
      for (const objectId of await listed(mortal, aid)) {
        const bytes = await bytesOf(mortal, aid, objectId);
        assert.equal(bytes === null ? null : sha256(bytes), objectId, 'a partial object is listed');
      }
    assert.deepEqual(readdirSync(join(theirs, '.svcd', 'incoming')), []);
  } finally {
    over.abort();
    await holder.stop();
    await reader.stop();
  }
});
