import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RoomReader } from '../../../src/capabilities/rooms/reader.ts';
import { MAX_ENTRIES_PAGE } from '../../../src/foundation/domain/rooms.ts';
import { RoomParts } from '../../support/room-parts.ts';

/** A room with messages of one agent, and a note after every tenth. */
function setUp(messages: number) {
  const parts = new RoomParts();
  const ann = parts.agent();
  const { groupId, link } = parts.writer.create(ann, 'Plans');
  for (let n = 1; n <= messages; n++) {
    parts.writer.append(ann, groupId, { kind: 'msg', body: Buffer.from(`${n}`) });
    if (n % 10 === 0) parts.writer.append(ann, groupId, { kind: 'x-note', body: Buffer.from(`after ${n}`) });
  }
  return { parts, ann, groupId, link, reader: new RoomReader(parts) };
}

test('a page says where the next one begins, and no page is longer than it may be', () => {
  const { ann, groupId, reader } = setUp(60);
  const all = reader.read(ann, groupId, { afterSeq: 0, limit: 1000 });
  assert.deepEqual([all.entries.length, all.hasMore, all.scannedToSeq], [MAX_ENTRIES_PAGE, true, MAX_ENTRIES_PAGE]);
  const rest = reader.read(ann, groupId, { afterSeq: all.scannedToSeq, limit: 1000 });
  assert.deepEqual([rest.entries.length, rest.hasMore, rest.scannedToSeq], [67 - MAX_ENTRIES_PAGE, false, 67]);
  assert.deepEqual(reader.read(ann, groupId, { afterSeq: 67, limit: 10 }).entries, []);
  assert.equal(reader.read(ann, groupId, { afterSeq: 500, limit: 10 }).scannedToSeq, 67);
});

test('with a filter a page is scanned to the last one found, or to the end', () => {
  const { ann, groupId, reader } = setUp(30);
  const two = reader.read(ann, groupId, { afterSeq: 0, limit: 2, kind: 'x-note' });
  assert.deepEqual(
    two.entries.map(({ body }) => Buffer.from(body ?? []).toString()),
    ['after 10', 'after 20'],
  );
  assert.deepEqual([two.scannedToSeq, two.hasMore], [two.entries[1]?.seq, true]);
  const last = reader.read(ann, groupId, { afterSeq: two.scannedToSeq, limit: 2, kind: 'x-note' });
  assert.deepEqual([last.entries.length, last.hasMore], [1, false]);
  const none = reader.read(ann, groupId, { afterSeq: 0, limit: 2, kind: 'x-other' });
  assert.deepEqual([none.entries.length, none.hasMore, none.scannedToSeq], [0, false, 34]);
});

test('the read cursor goes on and never back', () => {
  const { ann, groupId, reader } = setUp(5);
  assert.equal(reader.markRead(ann, groupId, 4).readCursor, 4);
  assert.equal(reader.markRead(ann, groupId, 2).readCursor, 4);
  assert.equal(reader.markRead(ann, groupId, 999).readCursor, 6);
  assert.equal(reader.head(ann, groupId).readCursor, 6);
  assert.equal(reader.read(ann, groupId, { afterSeq: 0, limit: 1 }).readCursor, 6);
});

test('the head of a room says who is in it and how to come in; rooms that were left are not listed', () => {
  const { parts, ann, groupId, link, reader } = setUp(1);
  const head = reader.head(ann, groupId);
  assert.deepEqual(
    [head.title, head.link, head.maxSeq, head.role, head.members],
    ['Plans', link, 2, 'creator', [{ aid: ann, role: 'creator' }]],
  );
  const other = parts.writer.create(ann, 'Other');
  assert.deepEqual(
    reader.list(ann).map(({ title }) => title),
    ['Plans', 'Other'],
  );
  parts.rooms.setState(parts.replicas.row(ann, other.groupId).rid, 'left');
  assert.deepEqual(
    reader.list(ann).map(({ title }) => title),
    ['Plans'],
  );
  parts.agents.delete(ann);
  assert.throws(() => reader.list(ann), { code: 'not_found' });
  assert.throws(() => reader.head(ann, groupId), { code: 'not_found' });
});
