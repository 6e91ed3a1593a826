/** A group of many entries: no operation costs more database work than in a small group. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { EntryFilter } from '../../../src/foundation/store/group-entries.ts';
import { type GroupNode, GroupWorld, groupOf } from '../../support/group-world.ts';
import { newIdentity } from '../../support/identities.ts';
import { recordingStore } from '../../support/recording-store.ts';
import { scaled } from '../../support/scale.ts';

const ENTRIES = scaled(10_000, 100_000);
const MENTION_EVERY = 100;
/** Limits of one operation, independent of the size of the group. */
const MAX_STATEMENTS = 60;
const MAX_ROWS = 400;

/** Appends a chain of entries to a replica. */
function fill(node: GroupNode, groupId: string, template: string): void {
  const { store, aid } = node;
  const { lid, rid, maxSeq } = node.table.find(aid, groupId) ?? { lid: 0, rid: 0, maxSeq: 0 };
  const numbers = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${ENTRIES})`;
  const id = (i: string): string => `CAST(printf('%032d', ${i}) AS BLOB)`;
  store.transaction(() => {
    store.run(
      `INSERT INTO group_entries (lid, seq, entry_id, parents, depth, author, kind, at, frontier, counts, void, bytes)
       ${numbers} SELECT e.lid, e.seq + i, ${id('i')}, iif(i = 1, e.entry_id, ${id('i - 1')}), e.depth + i, e.author,
         e.kind, e.at + i, e.frontier, 1, 0, e.bytes
       FROM n, group_entries e WHERE e.lid = ? AND e.entry_id = unhex(?)`,
      lid,
      template,
    );
    store.run(
      `INSERT INTO group_mentions (lid, aid, seq)
       SELECT lid, ?, seq FROM group_entries WHERE lid = ? AND seq > ? AND (seq - ?) % ${MENTION_EVERY} = 0`,
      aid,
      lid,
      maxSeq,
      maxSeq,
    );
    store.run('DELETE FROM group_heads WHERE lid = ?', lid);
    store.run(`INSERT INTO group_heads (lid, entry_id) VALUES (?, ${id(String(ENTRIES))})`, lid);
    store.run('UPDATE group_logs SET max_seq = ? WHERE lid = ?', maxSeq + ENTRIES, lid);
    store.run(
      'UPDATE groups SET unread = unread + ?, mentions = mentions + ? WHERE rid = ?',
      ENTRIES,
      ENTRIES / MENTION_EVERY,
      rid,
    );
  });
}

test('operations on a group of many entries need few statements and rows', async () => {
  const world = new GroupWorld();
  const recording = recordingStore();
  const nodes = [await world.node(newIdentity(), recording.store), await world.node()] as const;
  const [small, ben] = nodes;
  const { aid } = small;
  const groupId = await groupOf(world, nodes);
  const { entryId } = ben.say(groupId, 'template');
  await world.until('the message', () => small.texts(groupId).length === 1);
  world.links.part(small.links, ben.links);
  fill(small, groupId, entryId);
  const ann = await small.restart();
  const { maxSeq, unreadCount, mentionCount } = ann.groups.head(aid, groupId);
  assert.deepEqual([unreadCount, mentionCount], [ENTRIES + 1, ENTRIES / MENTION_EVERY]);

  const cheap = async (what: string, work: () => unknown): Promise<void> => {
    const { statements, rows } = await recording.measure(work);
    assert.ok(statements <= MAX_STATEMENTS && rows <= MAX_ROWS, `${what}: ${statements} statements, ${rows} rows`);
  };
  const page = (afterSeq: number, filter: EntryFilter = {}) =>
    ann.groups.read(aid, groupId, { afterSeq, limit: 50, ...filter });
  const filters: EntryFilter[] = [
    {},
    { kind: 'msg' },
    { kind: 'none' },
    { author: ben.aid },
    { to: aid },
    { sinceAt: 0, untilAt: 1 },
    { replyTo: '00'.repeat(32) },
  ];
  for (const filter of filters)
    for (const after of [0, maxSeq / 2, maxSeq - 10])
      await cheap(JSON.stringify(filter), () => page(Math.floor(after), filter));
  assert.equal(page(maxSeq - 10).entries.length, 10);
  assert.equal(page(maxSeq - 1000, { to: aid }).entries.length, 10);
  await cheap('list', () => ann.groups.list(aid));
  await cheap('head', () => ann.groups.head(aid, groupId));
  let own = '';
  await cheap('append', () => {
    own = ann.say(groupId, 'one more').entryId;
  });
  await cheap('retract', () => ann.groups.retract(aid, groupId, own));
  await cheap('mark read', () => ann.groups.markRead(aid, groupId, maxSeq - 1000));
  assert.equal(ann.groups.head(aid, groupId).unreadCount, 1000);
  assert.equal(ann.groups.head(aid, groupId).mentionCount, 10);
  assert.deepEqual(recording.scans('group_entries'), []);
  await world.stop();
});
