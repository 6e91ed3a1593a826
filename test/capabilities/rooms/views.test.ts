import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MAX_ENTRIES_PAGE } from '../../../src/foundation/domain/rooms.ts';
import { newIdentity } from '../../support/identities.ts';
import { RoomWorld } from '../../support/room-world.ts';

/** A room with messages of one agent, and a note after every tenth. */
async function setUp(messages: number) {
  const node = await new RoomWorld().node();
  const { aid: ann, rooms } = node;
  const { groupId, link } = rooms.create(ann, 'Plans');
  for (let n = 1; n <= messages; n++) {
    node.say(groupId, `${n}`);
    if (n % 10 === 0) node.say(groupId, `after ${n}`, { kind: 'x-note' });
  }
  return { node, ann, groupId, link, rooms };
}

test('a page says where the next one begins, and no page is longer than it may be', async () => {
  const { ann, groupId, rooms } = await setUp(60);
  const all = rooms.read(ann, groupId, { afterSeq: 0, limit: 1000 });
  assert.deepEqual([all.entries.length, all.hasMore, all.scannedToSeq], [MAX_ENTRIES_PAGE, true, MAX_ENTRIES_PAGE]);
  const rest = rooms.read(ann, groupId, { afterSeq: all.scannedToSeq, limit: 1000 });
  assert.deepEqual([rest.entries.length, rest.hasMore, rest.scannedToSeq], [67 - MAX_ENTRIES_PAGE, false, 67]);
  assert.deepEqual(rooms.read(ann, groupId, { afterSeq: 67, limit: 10 }).entries, []);
  assert.equal(rooms.read(ann, groupId, { afterSeq: 500, limit: 10 }).scannedToSeq, 67);
});

test('with a filter a page is scanned to the last one found, or to the end', async () => {
  const { ann, groupId, rooms } = await setUp(30);
  const two = rooms.read(ann, groupId, { afterSeq: 0, limit: 2, kind: 'x-note' });
  assert.deepEqual(
    two.entries.map(({ body }) => Buffer.from(body ?? []).toString()),
    ['after 10', 'after 20'],
  );
  assert.deepEqual([two.scannedToSeq, two.hasMore], [two.entries[1]?.seq, true]);
  const last = rooms.read(ann, groupId, { afterSeq: two.scannedToSeq, limit: 2, kind: 'x-note' });
  assert.deepEqual([last.entries.length, last.hasMore], [1, false]);
  const none = rooms.read(ann, groupId, { afterSeq: 0, limit: 2, kind: 'x-other' });
  assert.deepEqual([none.entries.length, none.hasMore, none.scannedToSeq], [0, false, 34]);
});

test('the read cursor goes on and never back', async () => {
  const { ann, groupId, rooms } = await setUp(5);
  assert.equal(rooms.markRead(ann, groupId, 4).readCursor, 4);
  assert.equal(rooms.markRead(ann, groupId, 2).readCursor, 4);
  assert.equal(rooms.markRead(ann, groupId, 999).readCursor, 6);
  assert.equal(rooms.head(ann, groupId).readCursor, 6);
  assert.equal(rooms.read(ann, groupId, { afterSeq: 0, limit: 1 }).readCursor, 6);
});

test('the head of a room says who is in it and how to come in; rooms that were left are not listed', async () => {
  const { node, ann, groupId, link, rooms } = await setUp(1);
  const head = rooms.head(ann, groupId);
  assert.deepEqual(
    [head.title, head.link, head.maxSeq, head.role, head.members],
    ['Plans', link, 2, 'creator', [{ aid: ann, role: 'creator' }]],
  );
  const other = rooms.create(ann, 'Other');
  assert.deepEqual(
    rooms.list(ann).map(({ title }) => title),
    ['Plans', 'Other'],
  );
  node.table.setState(node.table.find(ann, other.groupId)?.rid ?? 0, 'left');
  assert.deepEqual(
    rooms.list(ann).map(({ title }) => title),
    ['Plans'],
  );
  const stranger = newIdentity().aid;
  assert.throws(() => rooms.list(stranger), { code: 'not_found' });
  assert.throws(() => rooms.head(stranger, groupId), { code: 'not_found' });
});
