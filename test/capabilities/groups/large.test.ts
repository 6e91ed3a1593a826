import assert from 'node:assert/strict';
import { test } from 'node:test';
import { signEntry } from '../../../src/capabilities/groups/entry.ts';
import { Replica } from '../../../src/capabilities/groups/replica.ts';
import { receive, send } from '../../../src/capabilities/groups/wire.ts';
import { GroupWorld, groupOf } from '../../support/group-world.ts';
import { scaled } from '../../support/scale.ts';

const ENTRIES = scaled(1_000, 10_000);
const never = new AbortController().signal;

test('a new member fetches a large group', async (t) => {
  const world = new GroupWorld();
  const [ann, ben] = [await world.node(), await world.node()];
  const { groupId, link } = ann.groups.create(ann.aid);
  const written = performance.now();
  ann.store.transaction(() => {
    for (let i = 0; i < ENTRIES; i++) ann.say(groupId, `message ${i}`);
  });
  const began = performance.now();
  await world.during(ben.groups.join(ben.aid, { link, hints: [] }));
  const ended = performance.now();
  t.diagnostic(`written in ${Math.round(began - written)} ms, fetched in ${Math.round(ended - began)} ms`);
  assert.equal(ben.groups.head(ben.aid, groupId).unreadCount, ENTRIES);
  await world.until('equal', () => ann.groups.head(ann.aid, groupId).maxSeq === ENTRIES + 2);
  assert.equal(ann.fingerprint(groupId), ben.fingerprint(groupId));
  const read = performance.now();
  const page = ben.groups.read(ben.aid, groupId, { afterSeq: ENTRIES - 10, limit: 50 });
  t.diagnostic(`a page in ${(performance.now() - read).toFixed(1)} ms`);
  assert.equal(page.hasMore, false);
  await world.stop();
});

test('a group with more heads than an entry may name is merged again', async () => {
  const world = new GroupWorld();
  const [ann, ben] = [await world.node(), await world.node()];
  const groupId = await groupOf(world, [ann, ben]);
  await world.until('ben is a member', () => ann.groups.head(ann.aid, groupId).memberCount === 2);
  const row = ben.table.find(ben.aid, groupId);
  assert.ok(row !== null);
  const content = new Replica(row, { groups: ben.table, entries: ben.entries }).compose(
    { kind: 'msg' },
    world.clock.now(),
  );
  const entries = Array.from({ length: 100 }, (_, i) => signEntry({ ...content, ref: `${i}` }, ben.identity).encoded);
  const link = await world.during(ben.links.open(ben.aid, ann.aid, 'group'));
  send(link, { type: 'push', groupId, entries });
  await world.during(receive(link, never));
  link.destroy();
  const rid = ann.table.find(ann.aid, groupId)?.rid ?? 0;
  assert.equal(ann.entries.heads(rid, 200).length, 100);
  for (const text of ['a', 'b', 'c', 'd']) ann.say(groupId, text);
  assert.equal(ann.entries.heads(rid, 200).length, 1);
  await world.until('equal', () => ann.fingerprint(groupId) === ben.fingerprint(groupId));
  await world.stop();
});
