import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type EntryFilter, GroupEntryStore, pageQuery } from '../../../src/foundation/store/group-entries.ts';
import { GroupStore } from '../../../src/foundation/store/groups.ts';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { testAid } from '../../support/agents.ts';
import { newIdentity } from '../../support/identities.ts';
import { entryId, newEntry } from './group-rows.ts';
import { bytes } from './store-with-agents.ts';

const [A, B, C] = [testAid(1), testAid(2), testAid(3)];
const [GROUP, OTHER] = [1, 2];

function world() {
  const store = Store.open(':memory:', MIGRATIONS);
  const groups = new GroupStore(store);
  for (const groupId of [entryId(1), entryId(2)])
    groups.add({
      aid: A,
      groupId,
      creator: A,
      title: '',
      state: 'member',
      secret: null,
      hints: [],
      epoch: bytes(1),
      lastAt: 0,
    });
  /** Unread entries of the group, and how many mention the agent. */
  const unread = () => [groups.byRid(GROUP)?.unread, groups.byRid(GROUP)?.mentions];
  return { store, groups, entries: new GroupEntryStore(store), unread };
}

test('an entry is read in all its forms', () => {
  const { groups, entries } = world();
  entries.add(GROUP, 1, newEntry(1, { controlNo: 0 }));
  entries.add(GROUP, 2, newEntry(2, { parents: [entryId(1), entryId(9)], frontier: [0, 70_000], author: B }));
  assert.deepEqual(entries.fact(GROUP, entryId(1)), { seq: 1, depth: 1, at: 101, controlNo: 0, frontier: [] });
  assert.deepEqual(entries.fact(GROUP, entryId(2)), {
    seq: 2,
    depth: 2,
    at: 102,
    controlNo: null,
    frontier: [0, 70_000],
  });
  assert.deepEqual(entries.bytes(GROUP, entryId(2)), bytes(2, 3));
  assert.deepEqual(entries.entry(GROUP, entryId(2)), {
    seq: 2,
    bytes: bytes(2, 3),
    retracted: false,
    isDamaged: false,
  });
  assert.equal(entries.has(GROUP, entryId(2)), true);
  assert.deepEqual(
    [groups.byRid(GROUP)?.maxSeq, groups.byRid(GROUP)?.lastAt, groups.byRid(OTHER)?.maxSeq],
    [2, 102, 0],
  );
  for (const [rid, id] of [
    [GROUP, entryId(3)],
    [OTHER, entryId(1)],
  ] as const) {
    assert.deepEqual([entries.fact(rid, id), entries.bytes(rid, id), entries.entry(rid, id)], [null, null, null]);
    assert.equal(entries.has(rid, id), false);
  }
  entries.add(GROUP, 3, newEntry(3, { at: 50 }));
  assert.equal(groups.byRid(GROUP)?.lastAt, 102, 'the latest time remains');
});

test('heads are the entries without children', () => {
  const { entries } = world();
  entries.add(GROUP, 1, newEntry(2));
  entries.add(GROUP, 2, newEntry(1));
  entries.add(OTHER, 1, newEntry(2));
  assert.deepEqual(entries.heads(GROUP, 9), [entryId(1), entryId(2)]);
  assert.deepEqual(entries.heads(GROUP, 1), [entryId(1)]);
  entries.add(GROUP, 3, newEntry(3, { parents: [entryId(1), entryId(2)] }));
  assert.deepEqual([entries.heads(GROUP, 9), entries.heads(OTHER, 9)], [[entryId(3)], [entryId(2)]]);
});

test('entries are walked in both directions, and control entries by number', () => {
  const { entries } = world();
  entries.add(GROUP, 1, newEntry(1, { controlNo: 0 }));
  entries.add(GROUP, 2, newEntry(2, { parents: [entryId(1)] }));
  entries.add(GROUP, 3, newEntry(3, { parents: [entryId(1), entryId(2)], controlNo: 1, frontier: [0], author: B }));
  assert.deepEqual(entries.control(GROUP), [
    { bytes: bytes(1, 3), frontier: [] },
    { bytes: bytes(3, 3), frontier: [0] },
  ]);
  assert.deepEqual([entries.controlAt(GROUP, 1), entries.controlAt(GROUP, 2)], [bytes(3, 3), null]);
  assert.deepEqual(entries.idsAfter(GROUP, 1, 9), [
    { seq: 2, id: entryId(2) },
    { seq: 3, id: entryId(3) },
  ]);
  assert.deepEqual(entries.idsAfter(GROUP, 0, 1), [{ seq: 1, id: entryId(1) }]);
  assert.deepEqual(entries.bytesAfter(GROUP, 1, 1), [{ seq: 2, bytes: bytes(2, 3) }]);
  assert.deepEqual(entries.before(GROUP, 4, 2), [
    { seq: 3, id: entryId(3), parents: [entryId(1), entryId(2)], author: B },
    { seq: 2, id: entryId(2), parents: [entryId(1)], author: A },
  ]);
  assert.deepEqual(entries.before(GROUP, 2, 9), [{ seq: 1, id: entryId(1), parents: [], author: A }]);
});

test('entries of others are unread unless they are void', () => {
  const { entries, unread } = world();
  entries.add(GROUP, 1, newEntry(1));
  entries.add(GROUP, 2, newEntry(2, { counts: true, void: true, to: [A] }));
  assert.deepEqual(unread(), [0, 0]);
  entries.add(GROUP, 3, newEntry(3, { counts: true }));
  entries.add(GROUP, 4, newEntry(4, { counts: true, to: [A] }));
  assert.deepEqual(unread(), [2, 1]);
  entries.setVoid(GROUP, 2, false);
  assert.deepEqual(unread(), [3, 2]);
  entries.setVoid(GROUP, 4, true);
  entries.setVoid(GROUP, 4, true);
  entries.setVoid(GROUP, 3, false);
  entries.setVoid(GROUP, 1, true);
  assert.deepEqual(unread(), [2, 1]);
  assert.deepEqual([entries.entry(GROUP, entryId(4)), entries.entry(GROUP, entryId(3))?.seq], [null, 3]);
});

test('read entries do not count again', () => {
  const { groups, entries, unread } = world();
  for (const n of [1, 2]) entries.add(GROUP, n, newEntry(n, { counts: true }));
  groups.markRead(GROUP, 1);
  entries.setVoid(GROUP, 1, true);
  assert.deepEqual(unread(), [1, 0]);
  entries.setVoid(GROUP, 1, false);
  assert.deepEqual(unread(), [1, 0]);
});

test('a retraction applies for its author and for admins, before or after its target', () => {
  const { entries, unread } = world();
  const isRetracted = (n: number) => entries.entry(GROUP, entryId(n))?.retracted;
  for (const n of [1, 2, 3]) entries.add(GROUP, n, newEntry(n, { author: B, counts: true, to: n === 2 ? [A] : [] }));
  assert.deepEqual(unread(), [3, 1]);
  entries.add(GROUP, 4, newEntry(4, { author: B, kind: 'retract' }));
  entries.addRetract(GROUP, entryId(1), 4, false);
  entries.add(GROUP, 5, newEntry(5, { author: C, kind: 'retract' }));
  entries.addRetract(GROUP, entryId(2), 5, true);
  entries.add(GROUP, 6, newEntry(6, { author: C, kind: 'retract' }));
  entries.addRetract(GROUP, entryId(3), 6, false);
  assert.deepEqual([1, 2, 3].map(isRetracted), [true, true, false]);
  assert.deepEqual(unread(), [1, 0]);
  entries.addRetract(GROUP, entryId(7), 4, false);
  entries.add(GROUP, 7, newEntry(7, { author: B, counts: true }));
  entries.addRetract(GROUP, entryId(8), 4, false);
  entries.add(GROUP, 8, newEntry(8, { author: C, counts: true }));
  assert.deepEqual([7, 8].map(isRetracted), [true, false]);
  assert.deepEqual(unread(), [2, 0]);
});

test('a void retraction does not apply, and applies again when it is valid again', () => {
  const { entries, unread } = world();
  entries.add(GROUP, 1, newEntry(1, { author: B, counts: true, to: [A] }));
  entries.add(GROUP, 2, newEntry(2, { author: B, kind: 'retract' }));
  entries.addRetract(GROUP, entryId(1), 2, false);
  entries.setVoid(GROUP, 2, true);
  assert.deepEqual([entries.entry(GROUP, entryId(1))?.retracted, ...unread()], [false, 1, 1]);
  entries.setVoid(GROUP, 2, false);
  assert.deepEqual([entries.entry(GROUP, entryId(1))?.retracted, ...unread()], [true, 0, 0]);
  entries.setVoid(GROUP, 1, true);
  assert.deepEqual(unread(), [0, 0], 'an entry that is hidden twice counts once');
  entries.setVoid(GROUP, 1, false);
  assert.deepEqual(unread(), [0, 0]);
});

test('entries concurrent with removals are listed with every removal', () => {
  const { entries } = world();
  entries.addConflict(GROUP, 1, 5);
  entries.addConflict(GROUP, 2, 5);
  entries.addConflict(GROUP, 2, 5);
  entries.addConflict(GROUP, 2, 6);
  assert.deepEqual(entries.conflictsOf(GROUP, 1), [{ seq: 5, removals: [1, 2] }]);
  assert.deepEqual(entries.conflictsOf(GROUP, 2), [
    { seq: 5, removals: [1, 2] },
    { seq: 6, removals: [2] },
  ]);
  assert.deepEqual(entries.conflictsOf(OTHER, 1), []);
});

test('the title is the deepest valid one', () => {
  const { entries } = world();
  assert.equal(entries.lastTitle(GROUP), null);
  entries.add(GROUP, 1, newEntry(1));
  assert.equal(entries.lastTitle(GROUP), null);
  entries.add(GROUP, 2, newEntry(2, { kind: 'title', depth: 9 }));
  entries.add(GROUP, 3, newEntry(3, { kind: 'title', depth: 8 }));
  assert.deepEqual(entries.lastTitle(GROUP), bytes(2, 3));
  entries.setVoid(GROUP, 2, true);
  assert.deepEqual(entries.lastTitle(GROUP), bytes(3, 3));
});

test('a page has the entries between two positions that match all filters', () => {
  const { entries } = world();
  entries.add(GROUP, 1, newEntry(1));
  entries.add(GROUP, 2, newEntry(2, { kind: 'file', to: [B, C] }));
  entries.add(GROUP, 3, newEntry(3, { author: B, replyTo: entryId(1) }));
  entries.add(GROUP, 4, newEntry(4, { void: true, to: [B] }));
  entries.add(GROUP, 5, newEntry(5, { to: [B] }));
  entries.add(OTHER, 2, newEntry(2, { to: [B] }));
  const found = (filter: EntryFilter, after = 0, upTo = 9, limit = 9) =>
    entries.page(GROUP, after, upTo, limit, filter).map(({ seq }) => seq);
  assert.deepEqual(found({}), [1, 2, 3, 5]);
  assert.deepEqual(found({}, 1, 3), [2, 3]);
  assert.deepEqual(found({}, 0, 9, 2), [1, 2]);
  assert.deepEqual(found({ kind: 'file' }), [2]);
  assert.deepEqual(found({ author: B }), [3]);
  assert.deepEqual(found({ sinceAt: 102, untilAt: 103 }), [2, 3]);
  assert.deepEqual(found({ replyTo: entryId(1) }), [3]);
  assert.deepEqual(found({ to: B }), [2, 5]);
  assert.deepEqual(found({ to: C, kind: 'file', author: A }), [2]);
  assert.deepEqual(found({ to: C, kind: 'msg' }), []);
  assert.deepEqual(entries.page(GROUP, 0, 1, 9, {}), [
    { seq: 1, bytes: bytes(1, 3), retracted: false, isDamaged: false },
  ]);
});

test('pages of entries use an index with every filter', () => {
  const store = Store.open(':memory:', MIGRATIONS);
  const { aid } = newIdentity();
  const filters: EntryFilter[] = [
    {},
    { kind: 'msg' },
    { author: aid },
    { to: aid },
    { replyTo: '00'.repeat(32) },
    { sinceAt: 1, untilAt: 2 },
    { kind: 'msg', author: aid, sinceAt: 1, untilAt: 2, to: aid, replyTo: '00'.repeat(32) },
  ];
  for (const filter of filters) {
    const { sql, values } = pageQuery(1, 0, 100, 50, filter);
    const plan = store.all(`EXPLAIN QUERY PLAN ${sql}`, ...values).map((row) => String(row['detail']));
    assert.deepEqual(
      plan.filter((line) => line.startsWith('SCAN') || line.includes('TEMP B-TREE')),
      [],
      JSON.stringify([filter, plan]),
    );
  }
  store.close();
});

test('a damaged entry is marked and reported once; one without a checksum is read', () => {
  const { store, entries } = world();
  const reported: string[] = [];
  store.onDamage((row) => reported.push(row));
  for (let n = 1; n <= 3; n++) entries.add(GROUP, n, newEntry(n));
  store.run`UPDATE group_entries SET bytes = x'020203' WHERE lid = ${GROUP} AND seq = 2`;
  store.run`UPDATE group_entries SET bytes = x'030304', sum = NULL WHERE lid = ${GROUP} AND seq = 3`;
  const damaged = [false, true, false];
  assert.deepEqual(
    entries.page(GROUP, 0, 9, 9, {}).map(({ isDamaged }) => isDamaged),
    damaged,
  );
  assert.deepEqual(
    entries.pageBefore(GROUP, 9, 9).map(({ isDamaged }) => isDamaged),
    damaged,
  );
  assert.equal(entries.entry(GROUP, entryId(2)), null);
  assert.deepEqual(
    entries.bytesAfter(GROUP, 0, 9).map(({ seq, bytes }) => [seq, bytes === null]),
    [
      [1, false],
      [2, true],
      [3, false],
    ],
    'entries for other members',
  );
  assert.equal(entries.bytes(GROUP, entryId(2)), null);
  assert.deepEqual(reported, [`group_entries ${GROUP} 2`]);
  store.run`UPDATE group_entries SET control_no = seq WHERE lid = ${GROUP}`;
  assert.equal(entries.controlAt(GROUP, 2), null);
  assert.throws(() => entries.control(GROUP), { code: 'store_corrupt' });
});
