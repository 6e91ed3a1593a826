/** A member is restored from an old backup: it fetches lost entries, and other members receive its new entries. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { resetAfterRestore } from '../../../src/foundation/moving/node-restore.ts';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { GroupWorld, groupOf } from '../../support/group-world.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

test('replicas converge after a member is restored from a backup, including its own later entries', async (t) => {
  const world = new GroupWorld();
  const [a, b, c] = [await world.node(), await world.node(), await world.node()];
  const group = await groupOf(world, [a, b, c]);
  b.say(group, 'before');
  const all = () => world.nodes.every((node) => node.fingerprint(group) === a.fingerprint(group));
  await world.until('all have the entry', () => all() && c.texts(group).includes('before'));
  const file = join(temporaryDirectory(t), 'backup.db');
  b.store.run('VACUUM INTO ?', file);
  for (let i = 0; i < 5; i++) {
    b.say(group, `own ${i}`);
    a.say(group, `theirs ${i}`);
  }
  await world.until('all have all entries', () => all() && c.texts(group).length === 11);

  b.links.crash();
  await b.groups.stop();
  world.nodes.splice(world.nodes.indexOf(b), 1);
  const store = Store.open(file, MIGRATIONS, 'normal');
  resetAfterRestore(store);
  const restored = await world.node(b.agent, store);
  assert.deepEqual(restored.texts(group), ['before']);
  // Before the member has fetched anything. The new entries reuse positions that other members have already read.
  for (let i = 0; i < 12; i++) restored.say(group, `new ${i}`);
  await world.until('replicas are equal', () => all() && a.texts(group).length === 23);
  assert.equal(new Set(a.texts(group)).size, 23);
  await world.stop();
});
