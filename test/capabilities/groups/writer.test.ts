import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ControlLog } from '../../../src/capabilities/groups/control.ts';
import { MAX_APPENDED } from '../../../src/capabilities/groups/writer.ts';
import { unixSeconds } from '../../../src/foundation/clock.ts';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { GroupParts } from '../../support/group-parts.ts';
import { delegateAnew, newIdentity } from '../../support/identities.ts';

const MESSAGE = { kind: 'msg', body: Buffer.from('hello') };

/** A group of one agent. */
function setUp() {
  const parts = new GroupParts();
  const identity = newIdentity();
  const ann = parts.agent(identity);
  const reported: { readonly kinds: readonly string[]; readonly from: Aid | null }[] = [];
  parts.writer.added.add((_replica, entries, from) => {
    reported.push({ kinds: entries.map(({ kind }) => kind), from });
  });
  const { groupId, link } = parts.writer.create(ann, 'Plans');
  return { parts, identity, ann, groupId, link, reported };
}

test('the agent that creates a group is its creator, and listeners are notified of each entry', () => {
  const { parts, ann, groupId, link, reported } = setUp();
  const replica = parts.replicas.open(parts.replicas.row(ann, groupId));
  assert.equal(replica.role(ann), 'creator');
  assert.ok(link.startsWith(`svc://${ann}/groups/${groupId}#`));
  const { seq, entryId, at } = parts.writer.append(ann, groupId, MESSAGE);
  assert.deepEqual([seq, at], [2, parts.clock.now()]);
  assert.equal(parts.log(ann, groupId)[1]?.id, entryId);
  assert.deepEqual(reported, [
    { kinds: ['create'], from: null },
    { kinds: ['msg'], from: null },
  ]);
  assert.deepEqual(parts.events, ['group.appended', 'group.appended']);
});

test('kinds with a separate operation cannot be appended, nor a file that the agent does not have', () => {
  const { parts, ann, groupId } = setUp();
  for (const kind of ['create', 'invite', 'join', 'leave', 'key'])
    assert.throws(() => parts.writer.append(ann, groupId, { kind }), {
      code: 'invalid_request',
      details: { path: '/kind' },
    });
  const file = { kind: 'file', ref: 'sha256:1' };
  assert.throws(() => parts.writer.append(ann, groupId, file), { code: 'not_found' });
  assert.throws(() => parts.writer.append(ann, groupId, { kind: 'file' }), { code: 'not_found' });
  parts.objects.add(file.ref);
  parts.writer.append(ann, groupId, file);
  assert.deepEqual(parts.kinds(ann, groupId), ['create', 'file']);
});

test('a removal changes the link in the same transaction, or neither is stored', () => {
  const { parts, ann, groupId, link, reported } = setUp();
  const ben = newIdentity();
  parts.writer.appendAny(ann, groupId, { kind: 'invite', to: [ben.aid] });
  const there = new GroupParts(parts.clock);
  const row = there.replicas.add({
    aid: there.agent(ben),
    groupId,
    creator: ann,
    title: '',
    secret: null,
    hints: [],
    state: 'member',
  });
  const copy = there.replicas.open(row);
  there.writer.admit(copy, parts.log(ann, groupId), ann);
  there.writer.write(copy, there.replicas.requireLocal(ben.aid), { kind: 'join' });
  const joined = there.log(ben.aid, groupId).slice(2);
  parts.writer.admit(parts.replicas.open(parts.replicas.row(ann, groupId)), joined, ben.aid);
  assert.deepEqual(reported.at(-1), { kinds: ['join'], from: ben.aid });

  const { seq } = parts.writer.append(ann, groupId, { kind: 'remove', to: [ben.aid] });
  assert.equal(seq, 4);
  assert.deepEqual(parts.kinds(ann, groupId), ['create', 'invite', 'join', 'remove', 'rekey']);
  assert.deepEqual(reported.at(-1)?.kinds, ['remove', 'rekey']);
  const { secret } = parts.replicas.row(ann, groupId);
  assert.ok(secret !== null && !link.endsWith(Buffer.from(secret).toString('base64url')));
  there.writer.admit(copy, parts.log(ann, groupId).slice(3), ann);
  assert.equal(there.replicas.row(ben.aid, groupId).state, 'removed');
  assert.throws(() => there.writer.append(ben.aid, groupId, MESSAGE), { code: 'not_member' });
  assert.throws(() => parts.writer.append(ann, groupId, { kind: 'role', to: [ben.aid], body: Buffer.from('admin') }), {
    code: 'invalid_request',
  });
  assert.equal(parts.log(ann, groupId).length, 5);
});

test('a newer key of the author is announced before it writes again', () => {
  const { parts, identity, ann, groupId } = setUp();
  parts.agent(delegateAnew(identity.master, unixSeconds(parts.clock) + 1));
  parts.writer.append(ann, groupId, MESSAGE);
  parts.writer.append(ann, groupId, MESSAGE);
  assert.deepEqual(parts.kinds(ann, groupId), ['create', 'key', 'msg', 'msg']);
  // The older key can no longer write.
  parts.agent(identity);
  assert.throws(() => parts.writer.append(ann, groupId, MESSAGE), { code: 'invalid_request' });
});

test('a group has a limited number of entries, and only local agents add to it', () => {
  const { parts, ann, groupId } = setUp();
  const { rid, lid } = parts.replicas.row(ann, groupId);
  const fill = (count: number): void => {
    parts.store.run`UPDATE group_logs SET max_seq = ${count} WHERE lid = ${lid}`;
    parts.replicas.reopen(rid);
  };
  fill(MAX_APPENDED);
  assert.throws(() => parts.writer.append(ann, groupId, MESSAGE), { code: 'quota_exceeded' });
  fill(MAX_APPENDED - 1);
  parts.writer.append(ann, groupId, MESSAGE);
  assert.throws(() => parts.writer.append(ann, groupId, MESSAGE), { code: 'quota_exceeded' });
  parts.agents.delete(ann);
  assert.throws(() => parts.writer.append(ann, groupId, MESSAGE), { code: 'not_found' });
});

test('a joining agent can leave silently, the creator cannot leave', () => {
  const { parts, ann, groupId } = setUp();
  assert.throws(() => parts.writer.leave(ann, groupId), { code: 'creator_cannot_leave' });
  const ben = parts.agent();
  const group = { aid: ben, groupId, creator: ann, title: '', secret: null, hints: [], state: 'joining' as const };
  const { rid } = parts.replicas.add(group);
  parts.writer.leave(ben, groupId);
  assert.equal(parts.groups.byRid(rid)?.state, 'left');
  assert.deepEqual(parts.log(ben, groupId), []);
  assert.throws(() => parts.writer.leave(ben, groupId), { code: 'not_member' });
});

test('the author can withdraw an entry; an unknown entry is not found', () => {
  const { parts, ann, groupId } = setUp();
  const { entryId } = parts.writer.append(ann, groupId, MESSAGE);
  assert.throws(() => parts.writer.retract(ann, groupId, 'ab'.repeat(32)), { code: 'not_found' });
  parts.writer.retract(ann, groupId, entryId);
  assert.deepEqual(parts.kinds(ann, groupId), ['create', 'msg', 'retract']);
});

test('a group deleted with its agent accepts no entries, and listeners are not notified of duplicates', () => {
  const { parts, ann, groupId, reported } = setUp();
  const replica = parts.replicas.open(parts.replicas.row(ann, groupId));
  const entries = parts.log(ann, groupId);
  const { length } = reported;
  assert.deepEqual(parts.writer.admit(replica, entries, newIdentity().aid).added, []);
  assert.equal(reported.length, length);
  parts.replicas.forget(ann);
  assert.throws(() => parts.writer.admit(replica, entries, null), { code: 'not_found' });
});

test('writing fails while the clock is ahead of other nodes, and stores nothing', () => {
  const { parts, ann, groupId } = setUp();
  parts.aheadMs = 60_001;
  assert.throws(() => parts.writer.append(ann, groupId, MESSAGE), {
    code: 'clock_wrong',
    details: { offset_s: -60.001 },
  });
  assert.throws(() => parts.writer.create(ann, 'Later'), { code: 'clock_wrong' });
  assert.equal(parts.groups.list(ann).length, 1);
  parts.aheadMs = 60_000;
  parts.writer.append(ann, groupId, MESSAGE);
  assert.deepEqual(parts.kinds(ann, groupId), ['create', 'msg']);
});

test('an agent cannot join a full group', (t) => {
  const { parts, ann, groupId } = setUp();
  const ben = parts.agent();
  parts.writer.appendAny(ann, groupId, { kind: 'invite', to: [ben] });
  const group = { aid: ben, groupId, creator: ann, title: '', secret: null, hints: [], state: 'joining' as const };
  const replica = parts.replicas.open(parts.replicas.add(group));
  assert.ok(parts.replicas.attachLocal(replica));
  const isFull = t.mock.method(ControlLog.prototype, 'isFull', () => true);
  const join = () => parts.writer.write(replica, parts.replicas.requireLocal(ben), { kind: 'join' });
  assert.throws(join, { code: 'quota_exceeded', message: /at most 1000 members/ });
  assert.ok(isFull.mock.callCount() > 0);
  isFull.mock.restore();
  join();
  assert.equal(replica.role(ben), 'member');
});
