import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { ObjectService } from '../../../src/capabilities/objects/object-service.ts';
import { systemClock } from '../../../src/foundation/clock.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { ObjectRepository } from '../../../src/foundation/store/objects.ts';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { sha256 } from '../../support/object-world.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';
import { aid } from './store-forever.ts';

const ROUNDS = 6;

/** Kills the process during an upload, a little later in each round. Returns the acknowledged objects. */
async function storeAndKill(directory: string, round: number): Promise<string[]> {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'store-forever.ts'), directory, `${round * 1000}`], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
    if (text.split('\n').length > round + 2) setTimeout(() => child.kill('SIGKILL'), round * 3);
  });
  await once(child, 'close');
  // The last line may be incomplete.
  return text.split('\n').slice(0, -1);
}

test('after SIGKILL at any moment, acknowledged objects are complete and no partial object is served', async (t) => {
  const directory = temporaryDirectory(t);
  const acknowledged: string[] = [];
  for (let round = 0; round < ROUNDS; round++) acknowledged.push(...(await storeAndKill(directory, round)));
  assert.ok(acknowledged.length >= ROUNDS);

  const store = Store.open(join(directory, 'svcd.db'), MIGRATIONS);
  t.after(() => store.close());
  const repository = new ObjectRepository(store);
  const filesRoot = join(directory, 'files');
  const objects = new ObjectService({ filesRoot }, repository, systemClock, silentLog);
  await objects.start();
  for (const objectId of acknowledged) {
    const { handle } = await objects.open(aid, objectId);
    assert.equal(sha256(await handle.readFile()), objectId);
    await handle.close();
  }
  assert.deepEqual(readdirSync(join(filesRoot, '.svcd', 'incoming')), []);
  const stored = join(filesRoot, '.svcd', 'objects');
  const files = readdirSync(stored, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  for (const { name, parentPath } of files) {
    assert.equal(sha256(readFileSync(join(parentPath, name))), name);
    assert.ok(repository.isStored(name), 'every file has its row');
  }
});
