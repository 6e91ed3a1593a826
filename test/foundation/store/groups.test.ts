import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { GroupEntryStore } from '../../../src/foundation/store/group-entries.ts';
import { type GroupRow, GroupStore, type InviteIn, type NewGroup } from '../../../src/foundation/store/groups.ts';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { testAid } from '../../support/agents.ts';
import { newEntry } from './group-rows.ts';
import { bytes } from './store-with-agents.ts';

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
  return { ...from, rid, lid: rid, maxSeq: 0, readSeq: 0, unread: 0, mentions: 0 };
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
  groups.setJoinInfo(rid, { creator: C, hints: [] }, null);
  assert.deepEqual(groups.byRid(rid)?.secret, bytes(1, 32), 'the secret remains');
  groups.setSecret(rid, bytes(2, 32));
  assert.deepEqual(groups.byRid(rid)?.secret, bytes(2, 32));
  assert.deepEqual(groups.byRid(2), fresh(2, group(2)));
});

test('left groups do not count, are synchronized for a while, and only the newest are kept', () => {
  const { groups } = world();
  const states = ['member', 'joining', 'left', 'removed', 'left'] as const;
  for (const [i, state] of states.entries()) groups.add(group(i + 1, { state, lastAt: 10 * (i + 1) }));
  groups.add(group(9, { aid: B, state: 'left', lastAt: 1 }));
  assert.deepEqual([groups.count(A), groups.count(B)], [2, 0]);
  assert.deepEqual(groups.syncedRids(30), [1, 2, 3, 5]);
  assert.deepEqual(groups.syncedRids(31), [1, 2, 5]);
  assert.deepEqual(groups.deletePast(A, 3), []);
  assert.deepEqual(new Set(groups.deletePast(A, 1)), new Set([3, 4]));
  assert.deepEqual(
    groups.list(A).map(({ rid }) => rid),
    [1, 2, 5],
  );
  assert.equal(groups.list(B).length, 1);
});

test('the read cursor moves forward only and updates the unread count', () => {
  const { store, groups } = world();
  const rid = groups.add(group(1));
  const other = groups.add(group(2));
  const entries = new GroupEntryStore(store);
  for (const n of [1, 2, 3, 4]) entries.add(rid, n, newEntry(n, { counts: true, to: n % 2 === 0 ? [A] : [] }));
  const counters = () => {
    const row = groups.byRid(rid);
    return [row?.readSeq, row?.unread, row?.mentions];
  };
  assert.deepEqual(counters(), [0, 4, 2]);
  groups.markRead(rid, 2);
  assert.deepEqual(counters(), [2, 2, 1]);
  groups.markRead(rid, 1);
  assert.deepEqual(counters(), [2, 2, 1]);
  groups.markRead(rid, 99);
  assert.deepEqual(counters(), [4, 0, 0]);
  assert.equal(groups.byRid(other)?.readSeq, 0);
});

test('the position in a peer applies only to the replica that was read', () => {
  const { groups } = world();
  const rid = groups.add(group(1));
  assert.equal(groups.cursor(rid, B, bytes(1)), 0);
  groups.setCursor(rid, B, bytes(1), 5);
  groups.setCursor(rid, C, bytes(1), 6);
  assert.deepEqual([groups.cursor(rid, B, bytes(1)), groups.cursor(rid, B, bytes(2))], [5, 0]);
  groups.setCursor(rid, B, bytes(2), 7);
  assert.deepEqual([groups.cursor(rid, B, bytes(1)), groups.cursor(rid, B, bytes(2))], [0, 7]);
  assert.equal(groups.cursor(rid, C, bytes(1)), 6);
});

test('sent invitations are due in the order of their times, and are postponed', () => {
  const { groups } = world();
  const rid = groups.add(group(1));
  const invite = (target: Aid, nextAt: number, attempts = 0) => ({ rid, target, nextAt, until: 99, attempts });
  groups.putInviteOut(invite(B, 20));
  groups.putInviteOut(invite(C, 10));
  const due = (now: number, limit = 9, except: readonly Aid[] = []) => groups.invites.due(now, limit, except);
  const items = (now: number, limit?: number) => due(now, limit).map(({ item }) => item);
  assert.deepEqual(items(20), [invite(C, 10), invite(B, 20)]);
  assert.deepEqual(items(20, 1), [invite(C, 10)]);
  assert.deepEqual(items(19), [invite(C, 10)]);
  assert.deepEqual(due(20, 9, [C]), [{ id: `${rid} ${B}`, key: B, attempts: 0, item: invite(B, 20) }]);
  groups.putInviteOut({ ...invite(C, 30, 1), until: 100 });
  assert.deepEqual(items(30), [invite(B, 20), { ...invite(C, 30, 1), until: 100 }]);
  for (const one of due(20)) groups.invites.postpone(one, 50);
  assert.deepEqual(items(50), [{ ...invite(C, 30, 1), until: 100 }, invite(B, 50, 1)]);
  assert.deepEqual(
    [29, 30, 50].map((at) => groups.invites.nextDue(at)),
    [30, 50, null],
  );
  groups.invites.makeDue(5, 40, 60);
  assert.deepEqual(items(5), [invite(B, 5, 1)]);
  const targets = [
    { target: B, until: 99 },
    { target: C, until: 100 },
  ];
  assert.deepEqual(
    groups.invitesOut(rid),
    targets.sort((a, b) => (a.target < b.target ? -1 : 1)),
  );
  groups.putInviteOut({ ...invite(B, 99, 1) });
  groups.invites.makeDue(5, 40, 99);
  assert.equal(groups.invites.nextDue(5), 30, 'C');
  assert.deepEqual(items(5), [], 'B has received its invitation');
  groups.dropInviteOut(rid, B);
  assert.deepEqual(groups.invitesOut(rid), [{ target: C, until: 100 }]);
});

test('the newest received invitations are kept, one per group', () => {
  const { groups } = world();
  const invite = (n: number, more: Partial<InviteIn> = {}): InviteIn => {
    const way = { inviter: B, creator: C, title: 'T', secret: null };
    return { aid: A, groupId: idOf(n), at: n, ...way, ...more };
  };
  groups.putInviteIn(invite(2, { secret: bytes(1, 32) }), 2);
  groups.putInviteIn(invite(1), 2);
  assert.deepEqual(groups.invitesIn(A), [invite(1), invite(2, { secret: bytes(1, 32) })]);
  groups.putInviteIn(invite(2, { at: 3 }), 2);
  assert.deepEqual(groups.invitesIn(A), [invite(1), invite(2, { at: 3 })]);
  groups.putInviteIn(invite(5, { aid: B }), 2);
  groups.putInviteIn(invite(4), 2);
  assert.deepEqual(groups.invitesIn(A), [invite(2, { at: 3 }), invite(4)]);
  assert.deepEqual([groups.inviteIn(A, idOf(4)), groups.inviteIn(A, idOf(1))], [invite(4), null]);
  groups.dropInviteIn(A, idOf(4));
  assert.deepEqual([groups.invitesIn(A).length, groups.invitesIn(B).length], [1, 1]);
});

test('a deleted agent leaves nothing behind', () => {
  const { groups } = world();
  for (const aid of [A, B]) {
    groups.add(group(1, { aid }));
    groups.putInviteIn({ aid, groupId: idOf(2), inviter: C, creator: C, title: '', secret: null, at: 1 }, 9);
  }
  groups.removeAgent(A);
  assert.deepEqual([groups.list(A), groups.invitesIn(A)], [[], []]);
  assert.deepEqual([groups.list(B).length, groups.invitesIn(B).length], [1, 1]);
});

test('a transaction of groups is rolled back by an error and returns its result', () => {
  const { groups } = world();
  assert.throws(() =>
    groups.transaction(() => {
      groups.add(group(1));
      throw new Error('no');
    }),
  );
  assert.deepEqual(
    groups.transaction(() => groups.list(A)),
    [],
  );
});

test('invitations of strangers are evicted first, starting with the inviter that sent the most', () => {
  const { groups } = world();
  const put = (n: number, inviter: Aid, isKnown: boolean): void =>
    groups.putInviteIn(
      { aid: A, groupId: idOf(n), inviter, creator: inviter, title: `${n}`, secret: null, at: n },
      4,
      isKnown,
    );
  put(1, C, true);
  put(2, B, false);
  for (let n = 3; n < 9; n++) put(n, D, false);
  assert.deepEqual(
    groups.invitesIn(A).map(({ title }) => title),
    ['1', '2', '7', '8'],
  );
  groups.putInviteIn({ aid: A, groupId: idOf(1), inviter: D, creator: D, title: 'mine', secret: null, at: 9 }, 4);
  assert.equal(groups.inviteIn(A, idOf(1))?.inviter, C, 'not replaced by a stranger');
});
