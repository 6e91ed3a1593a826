import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { RoomEntryStore } from '../../../src/foundation/store/room-entries.ts';
import { type InviteIn, type NewRoom, type RoomRow, RoomStore } from '../../../src/foundation/store/rooms.ts';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { testAid } from '../../support/agents.ts';
import { bytes } from './agents-here.ts';
import { newEntry } from './room-rows.ts';

const [A, B, C, D] = [testAid(1), testAid(2), testAid(3), testAid(4)];

function world(): { store: Store; rooms: RoomStore } {
  const store = Store.open(':memory:', MIGRATIONS);
  return { store, rooms: new RoomStore(store) };
}

/** The id of group number `n`. */
function group(n: number): string {
  return n.toString(16).padStart(64, '0');
}

function room(n: number, more: Partial<NewRoom> = {}): NewRoom {
  const way = { creator: B, title: 'Room', secret: null, hints: [], epoch: bytes(n) };
  return { aid: A, groupId: group(n), state: 'member', lastAt: n, ...way, ...more };
}

function fresh(rid: number, from: NewRoom): RoomRow {
  return { ...from, rid, maxSeq: 0, readSeq: 0, unread: 0, mentions: 0 };
}

test('a room comes back as it was added', () => {
  const { rooms } = world();
  const full = room(1, { secret: bytes(9, 32), hints: [B, C], state: 'joining' });
  assert.equal(rooms.add(full), 1);
  assert.equal(rooms.add(room(2)), 2);
  assert.equal(rooms.add(room(1, { aid: B })), 3);
  assert.deepEqual(rooms.find(A, group(1)), fresh(1, full));
  assert.deepEqual(rooms.byRid(2), fresh(2, room(2)));
  assert.deepEqual(rooms.list(A), [fresh(1, full), fresh(2, room(2))]);
  assert.deepEqual([rooms.find(A, group(3)), rooms.byRid(4)], [null, null]);
});

test('what is known of a room changes alone', () => {
  const { rooms } = world();
  const rid = rooms.add(room(1));
  rooms.add(room(2));
  rooms.setState(rid, 'left');
  rooms.setTitle(rid, 'New');
  rooms.setWay(rid, { creator: C, hints: [B, C] }, null);
  const changed = { ...fresh(1, room(1)), state: 'left', title: 'New', creator: C, hints: [B, C] };
  assert.deepEqual(rooms.byRid(rid), changed);
  rooms.setWay(rid, { creator: C, hints: [] }, bytes(1, 32));
  assert.deepEqual(rooms.byRid(rid), { ...changed, hints: [], secret: bytes(1, 32) });
  rooms.setWay(rid, { creator: C, hints: [] }, null);
  assert.deepEqual(rooms.byRid(rid)?.secret, bytes(1, 32), 'a secret stays');
  rooms.setSecret(rid, bytes(2, 32));
  assert.deepEqual(rooms.byRid(rid)?.secret, bytes(2, 32));
  assert.deepEqual(rooms.byRid(2), fresh(2, room(2)));
});

test('rooms that were left count no more, are kept in step for a while, and are forgotten but for the newest', () => {
  const { rooms } = world();
  const states = ['member', 'joining', 'left', 'removed', 'left'] as const;
  for (const [i, state] of states.entries()) rooms.add(room(i + 1, { state, lastAt: 10 * (i + 1) }));
  rooms.add(room(9, { aid: B, state: 'left', lastAt: 1 }));
  assert.deepEqual([rooms.count(A), rooms.count(B)], [2, 0]);
  assert.deepEqual(rooms.rids(30), [1, 2, 3, 5]);
  assert.deepEqual(rooms.rids(31), [1, 2, 5]);
  assert.deepEqual(rooms.forgetPast(A, 3), []);
  assert.deepEqual(new Set(rooms.forgetPast(A, 1)), new Set([3, 4]));
  assert.deepEqual(
    rooms.list(A).map(({ rid }) => rid),
    [1, 2, 5],
  );
  assert.equal(rooms.list(B).length, 1);
});

test('the read cursor moves on only, and counts what is behind it', () => {
  const { store, rooms } = world();
  const rid = rooms.add(room(1));
  const other = rooms.add(room(2));
  const entries = new RoomEntryStore(store);
  for (const n of [1, 2, 3, 4]) entries.add(rid, n, newEntry(n, { counts: true, mention: n % 2 === 0 }));
  const counters = () => {
    const row = rooms.byRid(rid);
    return [row?.readSeq, row?.unread, row?.mentions];
  };
  assert.deepEqual(counters(), [0, 4, 2]);
  rooms.markRead(rid, 2);
  assert.deepEqual(counters(), [2, 2, 1]);
  rooms.markRead(rid, 1);
  assert.deepEqual(counters(), [2, 2, 1]);
  rooms.markRead(rid, 99);
  assert.deepEqual(counters(), [4, 0, 0]);
  assert.equal(rooms.byRid(other)?.readSeq, 0);
});

test('how far a peer was read counts for the replica that was read', () => {
  const { rooms } = world();
  const rid = rooms.add(room(1));
  assert.equal(rooms.cursor(rid, B, bytes(1)), 0);
  rooms.setCursor(rid, B, bytes(1), 5);
  rooms.setCursor(rid, C, bytes(1), 6);
  assert.deepEqual([rooms.cursor(rid, B, bytes(1)), rooms.cursor(rid, B, bytes(2))], [5, 0]);
  rooms.setCursor(rid, B, bytes(2), 7);
  assert.deepEqual([rooms.cursor(rid, B, bytes(1)), rooms.cursor(rid, B, bytes(2))], [0, 7]);
  assert.equal(rooms.cursor(rid, C, bytes(1)), 6);
});

test('invitations on their way are due in the order of their times', () => {
  const { rooms } = world();
  const rid = rooms.add(room(1));
  const invite = (target: Aid, nextAt: number, attempts = 0) => ({ rid, target, nextAt, until: 99, attempts });
  rooms.putInviteOut(invite(B, 20));
  rooms.putInviteOut(invite(C, 10));
  assert.deepEqual(rooms.dueInvites(20, 9), [invite(C, 10), invite(B, 20)]);
  assert.deepEqual(rooms.dueInvites(20, 1), [invite(C, 10)]);
  assert.deepEqual(rooms.dueInvites(19, 9), [invite(C, 10)]);
  rooms.putInviteOut({ ...invite(C, 30, 1), until: 100 });
  assert.deepEqual(rooms.dueInvites(30, 9), [invite(B, 20), { ...invite(C, 30, 1), until: 100 }]);
  const targets = [
    { target: B, until: 99 },
    { target: C, until: 100 },
  ];
  assert.deepEqual(
    rooms.invitesOut(rid),
    targets.sort((a, b) => (a.target < b.target ? -1 : 1)),
  );
  rooms.dropInviteOut(rid, B);
  assert.deepEqual(rooms.invitesOut(rid), [{ target: C, until: 100 }]);
});

test('of the invitations that came the newest are kept, one for each room', () => {
  const { rooms } = world();
  const invite = (n: number, more: Partial<InviteIn> = {}): InviteIn => {
    const way = { inviter: B, creator: C, title: 'T', secret: null };
    return { aid: A, groupId: group(n), at: n, ...way, ...more };
  };
  rooms.putInviteIn(invite(2, { secret: bytes(1, 32) }), 2);
  rooms.putInviteIn(invite(1), 2);
  assert.deepEqual(rooms.invitesIn(A), [invite(1), invite(2, { secret: bytes(1, 32) })]);
  rooms.putInviteIn(invite(2, { at: 3 }), 2);
  assert.deepEqual(rooms.invitesIn(A), [invite(1), invite(2, { at: 3 })]);
  rooms.putInviteIn(invite(5, { aid: B }), 2);
  rooms.putInviteIn(invite(4), 2);
  assert.deepEqual(rooms.invitesIn(A), [invite(2, { at: 3 }), invite(4)]);
  assert.deepEqual([rooms.inviteIn(A, group(4)), rooms.inviteIn(A, group(1))], [invite(4), null]);
  rooms.dropInviteIn(A, group(4));
  assert.deepEqual([rooms.invitesIn(A).length, rooms.invitesIn(B).length], [1, 1]);
});

test('an agent that is no longer here leaves nothing of its own', () => {
  const { rooms } = world();
  for (const aid of [A, B]) {
    rooms.add(room(1, { aid }));
    rooms.putInviteIn({ aid, groupId: group(2), inviter: C, creator: C, title: '', secret: null, at: 1 }, 9);
  }
  rooms.removeAgent(A);
  assert.deepEqual([rooms.list(A), rooms.invitesIn(A)], [[], []]);
  assert.deepEqual([rooms.list(B).length, rooms.invitesIn(B).length], [1, 1]);
});

test('what a transaction of rooms throws undoes it, and what it returns comes back', () => {
  const { rooms } = world();
  assert.throws(() =>
    rooms.transaction(() => {
      rooms.add(room(1));
      throw new Error('no');
    }),
  );
  assert.deepEqual(
    rooms.transaction(() => rooms.list(A)),
    [],
  );
});

test('invitations of strangers go first, and those of whoever sent most before others', () => {
  const { rooms } = world();
  const put = (n: number, inviter: Aid, isKnown: boolean): void =>
    rooms.putInviteIn(
      { aid: A, groupId: group(n), inviter, creator: inviter, title: `${n}`, secret: null, at: n },
      4,
      isKnown,
    );
  put(1, C, true);
  put(2, B, false);
  for (let n = 3; n < 9; n++) put(n, D, false);
  assert.deepEqual(
    rooms.invitesIn(A).map(({ title }) => title),
    ['1', '2', '7', '8'],
  );
  rooms.putInviteIn({ aid: A, groupId: group(1), inviter: D, creator: D, title: 'mine', secret: null, at: 9 }, 4);
  assert.equal(rooms.inviteIn(A, group(1))?.inviter, C, 'a stranger does not replace it');
});
