import assert from 'node:assert/strict';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { ObjectService } from '../../../src/capabilities/objects/object-service.ts';
import { systemClock } from '../../../src/foundation/clock.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { ObjectRepository } from '../../../src/foundation/store/objects.ts';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';
import { aid } from './store-forever.ts';

test('an ID in a restored database that leads outside the folder opens and removes nothing', async (t) => {
  const directory = temporaryDirectory(t);
  const filesRoot = join(directory, 'files');
  mkdirSync(join(filesRoot, '.svcd', 'objects'), { recursive: true, mode: 0o700 });
  const secret = join(directory, 'secret');
  writeFileSync(secret, 'mine');
  // Its first two characters also lead to the parent folder.
  const objectId = join('..', '..', 'secret');
  const store = Store.open(':memory:', MIGRATIONS);
  t.after(() => store.close());
  const repository = new ObjectRepository(store);
  const row = { name: 'x', size: 4, createdAt: 1, path: null, fingerprint: '', hashedAt: 1 };
  repository.put({ aid, objectId, ...row }, Buffer.alloc(32));
  const objects = new ObjectService({ filesRoot }, repository, systemClock, silentLog);
  await objects.start();
  await assert.rejects(objects.open(aid, objectId));
  objects.delete(aid, objectId);
  assert.ok(existsSync(secret));
  assert.deepEqual(repository.retired(), []);
});
