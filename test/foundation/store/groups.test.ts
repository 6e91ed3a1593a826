import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { GroupEntryStore } from '../../../src/foundation/store/group-entries.ts';
import { type GroupRow, GroupStore, type InviteIn, type NewGroup } from '../../../src/foundation/store/groups.ts';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { testAid } from '../../support/agents.ts';
import { bytes } from './agents-here.ts';
import { newEntry } from './group-rows.ts';

const [A, B, C, D] = [testAid(1), testAid(2), testAid(3), testAid(4)];

function world(): { store: Store; groups: GroupStore } {
  const store = Store.open(':memory:', MIGRATIONS);
  return { store, groups: new GroupStore(store) };
}

/** The ID of group number `n`. */
function idOf(n: number): string {
  return n.toString(16).padStart(64, '0');
}

function group(n: number, more: Partial<NewGroup> = {}): NewGroup {
  const way = { creator: B, title: 'Group', secret: null, hints: [], epoch: bytes(n) };
  return { aid: A, groupId: idOf(n), state: 'member', lastAt: n, ...way, ...more };
}

function fresh(rid: number, from: NewGroup): GroupRow {
  return { ...from, rid, maxSeq: 0, readSeq: 0, unread: 0, mentions: 0 };
}

test('a group is read as it was added', () => {
  const { groups } = world();
  const full = group(1, { secret: bytes(9, 32), hints: [B, C], state: 'joining' });
  assert.equal(groups.add(full), 1);
  assert.equal(groups.add(group(2)), 2);
  assert.equal(groups.add(group(1, { aid: B })), 3);
  assert.deepEqual(groups.find(A, idOf(1)), fresh(1, full));
  assert.deepEqual(groups.byRid(2), fresh(2, group(2)));
  assert.deepEqual(groups.list(A), [fresh(1, full), fresh(2, group(2))]);
  assert.deepEqual([groups.find(A, idOf(3)), groups.byRid(4)], [null, null]);
});

test('fields of a group change separately', () => {
  const { groups } = world();
  const rid = groups.add(group(1));
  groups.add(group(2));
  groups.setState(rid, 'left');
  groups.setTitle(rid, 'New');
  groups.setJoinInfo(rid, { creator: C, hints: [B, C] }, null);
  const changed = { ...fresh(1, group(1)), state: 'left', title: 'New', creator: C, hints: [B, C] };
  assert.deepEqual(groups.byRid(rid), changed);
  groups.setJoinInfo(rid, { creator: C, hints: [] }, bytes(1, 32));
  assert.deepEqual(groups.byRid(rid), { ...changed, hints: [], secret: bytes(1, 32) });
