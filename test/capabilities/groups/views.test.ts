import assert from 'node:assert/strict';
import { test } from 'node:test';
import { groupLinkText, parseGroupLink } from '../../../src/capabilities/groups/views.ts';
import { MAX_ENTRIES_PAGE } from '../../../src/foundation/domain/groups.ts';
import { GroupWorld } from '../../support/group-world.ts';
import { newIdentity } from '../../support/identities.ts';

/** A group with messages of one agent, and an entry of another kind after every tenth. */
async function setUp(messages: number) {
  const node = await new GroupWorld().node();
  const { aid: ann, groups } = node;
  const { groupId, link } = groups.create(ann, 'Plans');
  for (let n = 1; n <= messages; n++) {
    node.say(groupId, `${n}`);
    if (n % 10 === 0) node.say(groupId, `after ${n}`, { kind: 'x-note' });
  }
  return { node, ann, groupId, link, groups };
}

test('a page returns the start of the next one, and no page exceeds its limit', async () => {
  const { ann, groupId, groups } = await setUp(60);
  const all = groups.read(ann, groupId, { afterSeq: 0, limit: 1000 });
  assert.deepEqual([all.entries.length, all.hasMore, all.scannedToSeq], [MAX_ENTRIES_PAGE, true, MAX_ENTRIES_PAGE]);
  const rest = groups.read(ann, groupId, { afterSeq: all.scannedToSeq, limit: 1000 });
  assert.deepEqual([rest.entries.length, rest.hasMore, rest.scannedToSeq], [67 - MAX_ENTRIES_PAGE, false, 67]);
  assert.deepEqual(groups.read(ann, groupId, { afterSeq: 67, limit: 10 }).entries, []);
  assert.equal(groups.read(ann, groupId, { afterSeq: 500, limit: 10 }).scannedToSeq, 67);
});

test('a filtered page is scanned to the last match or to the end', async () => {
  const { ann, groupId, groups } = await setUp(30);
  const two = groups.read(ann, groupId, { afterSeq: 0, limit: 2, kind: 'x-note' });
  assert.deepEqual(
    two.entries.map(({ body }) => Buffer.from(body ?? []).toString()),
    ['after 10', 'after 20'],
  );
  assert.deepEqual([two.scannedToSeq, two.hasMore], [two.entries[1]?.seq, true]);
  const last = groups.read(ann, groupId, { afterSeq: two.scannedToSeq, limit: 2, kind: 'x-note' });
  assert.deepEqual([last.entries.length, last.hasMore], [1, false]);
  const none = groups.read(ann, groupId, { afterSeq: 0, limit: 2, kind: 'x-other' });
  assert.deepEqual([none.entries.length, none.hasMore, none.scannedToSeq], [0, false, 34]);
});

test('the read cursor moves forward and never back', async () => {
  const { ann, groupId, groups } = await setUp(5);
  assert.equal(groups.markRead(ann, groupId, 4).readCursor, 4);
  assert.equal(groups.markRead(ann, groupId, 2).readCursor, 4);
  assert.equal(groups.markRead(ann, groupId, 999).readCursor, 6);
  assert.equal(groups.head(ann, groupId).readCursor, 6);
  assert.equal(groups.read(ann, groupId, { afterSeq: 0, limit: 1 }).readCursor, 6);
});

test('the head of a group has its members and link; groups that the agent left are not listed', async () => {
  const { node, ann, groupId, link, groups } = await setUp(1);
  const head = groups.head(ann, groupId);
  assert.deepEqual(
    [head.title, head.link, head.maxSeq, head.role, head.members],
    ['Plans', link, 2, 'creator', [{ aid: ann, role: 'creator' }]],
  );
  const other = groups.create(ann, 'Other');
  assert.deepEqual(
    groups.list(ann).map(({ title }) => title),
    ['Plans', 'Other'],
  );
  node.table.setState(node.table.find(ann, other.groupId)?.rid ?? 0, 'left');
  assert.deepEqual(
    groups.list(ann).map(({ title }) => title),
    ['Plans'],
  );
  const stranger = newIdentity().aid;
  assert.throws(() => groups.list(stranger), { code: 'not_found' });
  assert.throws(() => groups.head(stranger, groupId), { code: 'not_found' });
});

test('a link of a group is read as it was written, with or without its secret', () => {
  const creator = newIdentity().aid;
  const groupId = 'ab'.repeat(32);
  for (const secret of [null, new Uint8Array(32).fill(7)]) {
    const link = { creator, groupId, secret };
    assert.deepEqual(parseGroupLink(` ${groupLinkText(link)} `), link);
  }
});

test('an invalid link is rejected, and the error does not repeat it', () => {
  const creator = newIdentity().aid;
  const secret = 'S'.repeat(43);
  const group = `svc://${creator}/groups/${'ab'.repeat(32)}`;
  for (const link of ['', 'svc://x', group.slice(0, -1), `${group}#`, `${group}#${secret}S`, `https${group.slice(3)}`])
    assert.throws(() => parseGroupLink(link), { code: 'invalid_request' }, link);
  assert.throws(() => parseGroupLink(`svc://unknown/groups/${'ab'.repeat(32)}`), { code: 'bad_aid' });
  assert.throws(
    () => parseGroupLink(`x${group}#${secret}`),
    (error: Error) => !error.message.includes(secret),
  );
});
