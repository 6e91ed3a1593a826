/** All local members of a group share one copy of its entries. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Replica } from '../../../src/capabilities/groups/replica.ts';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { GroupParts } from '../../support/group-parts.ts';

const text = (value: string): Uint8Array => new TextEncoder().encode(value);
const count = ({ store }: GroupParts, table: string): number =>
  Number(store.one(`SELECT count(*) AS n FROM ${table}`)?.['n']);

/** A group with this many members on one node. The first one is the creator. */
function groupOf(members: number) {
  const parts = new GroupParts();
  const creator = parts.agent();
  const { groupId } = parts.writer.create(creator, 'Group');
  const { secret } = parts.replicas.row(creator, groupId);
  const join = (): Aid => {
    const aid = parts.agent();
    const row = parts.replicas.add({ aid, groupId, creator, title: '', secret, hints: [creator], state: 'joining' });
    const replica = parts.replicas.open(row);
    assert.ok(parts.replicas.attachLocal(replica));
    parts.writer.write(replica, parts.replicas.requireLocal(aid), {
      kind: 'join',
      proof: parts.replicas.proof(replica),
    });
    return aid;
  };
  const aids = [creator, ...Array.from({ length: members - 1 }, join)];
  const say = (aid: Aid, body: string, to?: Aid[]) =>
    parts.writer.append(aid, groupId, { kind: 'msg', body: text(body), ...(to === undefined ? {} : { to }) });
  const row = (aid: Aid) => parts.replicas.row(aid, groupId);
  return { parts, groupId, aids, join, say, row };
}

test('an entry is stored once and read by all local members, each with its own counters', () => {
  const { parts, groupId, aids, join, say, row } = groupOf(20);
  const [ann, ben, eve] = aids as [Aid, Aid, Aid];
  const before = count(parts, 'group_entries');
  assert.equal(before, 20, 'one create and nineteen joins');
  say(ann, 'to all');
  say(ben, 'to one', [eve]);
  assert.equal(count(parts, 'group_entries'), before + 2);
  assert.equal(count(parts, 'group_logs'), 1);
  assert.deepEqual(
    [ann, ben, eve].map((aid) => [row(aid).unread, row(aid).mentions]),
    [
      [1, 0],
      [1, 0],
      [2, 1],
    ],
  );
  for (const aid of aids) assert.deepEqual(parts.kinds(aid, groupId).slice(-2), ['msg', 'msg']);
  parts.groups.markRead(row(eve).rid, row(eve).maxSeq);
  assert.deepEqual([row(eve).unread, row(eve).mentions, row(ann).unread], [0, 0, 1]);
  const late = join();
  assert.deepEqual([row(late).unread, row(late).mentions, row(late).state], [2, 0, 'member']);
  assert.deepEqual(parts.replicas.peers(parts.replicas.open(row(late))), [], 'local members need no links');
});

test('the work for an entry does not grow with the entries, and hardly with the local members', (t) => {
  const statements = (members: number): number => {
    const { parts, aids, say } = groupOf(members);
    say(aids[1] ?? assert.fail(), 'before');
    let runs = 0;
    for (const name of ['run', 'one', 'all'] as const) {
      const original = parts.store[name].bind(parts.store) as (...values: unknown[]) => unknown;
      t.mock.method(parts.store, name, (...values: unknown[]) => {
        runs++;
        return original(...values);
      });
    }
    say(aids[1] ?? assert.fail(), 'measured');
    return runs;
  };
  const [few, many] = [statements(3), statements(60)];
  assert.ok(many <= few + 2, `${few} statements with 3 members, ${many} with 60`);
});

test('a removed local member reads nothing after its removal, and everything after it returns', () => {
  const { parts, groupId, aids, say, row } = groupOf(4);
  const [ann, ben, eve] = aids as [Aid, Aid, Aid];
  say(ben, 'with eve');
  const removal = parts.writer.append(ann, groupId, { kind: 'remove', to: [eve] });
  say(ben, 'without eve');
  assert.deepEqual([row(eve).state, row(eve).maxSeq, row(eve).unread], ['removed', removal.seq, 1]);
  assert.notDeepEqual(row(eve).secret, row(ben).secret, 'the new link is not for the removed member');
  assert.ok(row(ben).maxSeq > removal.seq);
  assert.throws(() => say(eve, 'no'), { code: 'not_member' });
  parts.writer.appendAny(ann, groupId, { kind: 'invite', to: [eve] });
  parts.groups.setState(row(eve).rid, 'joining');
  assert.equal(row(eve).maxSeq, removal.seq, 'an invitation alone shows nothing');
  const replica: Replica = parts.replicas.open(row(eve));
  parts.writer.write(replica, parts.replicas.requireLocal(eve), { kind: 'join' });
  assert.deepEqual([row(eve).state, row(eve).maxSeq, row(eve).unread], ['member', row(ben).maxSeq, 2]);
});

test('an agent without the secret does not get the log of other local agents', () => {
  const { parts, groupId, aids } = groupOf(2);
  const [creator] = aids as [Aid];
  const stranger = parts.agent();
  const secret = new Uint8Array(32);
  const row = parts.replicas.add({
    aid: stranger,
    groupId,
    creator,
    title: '',
    secret,
    hints: [creator],
    state: 'joining',
  });
  const replica = parts.replicas.open(row);
  assert.equal(parts.replicas.attachLocal(replica), false);
  assert.equal(replica.maxSeq, 0);
});

test('the log stays until the last local member is deleted', () => {
  const { parts, groupId, aids } = groupOf(3);
  const [ann, ben, eve] = aids as [Aid, Aid, Aid];
  for (const aid of [ann, ben]) parts.replicas.forget(aid);
  assert.ok(parts.kinds(eve, groupId).length > 0);
  parts.replicas.forget(eve);
  assert.deepEqual([count(parts, 'group_logs'), count(parts, 'group_entries'), count(parts, 'group_heads')], [0, 0, 0]);
});

test('many local members get the number of unread entries once a second', async () => {
  const { parts, aids, say } = groupOf(20);
  await parts.clock.run(2000);
  parts.events.length = 0;
  const unread = (): number => parts.events.filter((type) => type === 'group.unread').length;
  for (let i = 0; i < 10; i++) say(aids[0] ?? assert.fail(), `${i}`);
  assert.equal(unread(), 19);
  await parts.clock.run(1000);
  assert.equal(unread(), 38);
  await parts.clock.run(5000);
  assert.equal(unread(), 38);
});
