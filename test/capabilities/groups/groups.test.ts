import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Joiner } from '../../../src/capabilities/groups/groups.ts';
import type { Replica } from '../../../src/capabilities/groups/replica.ts';
import { type GroupState, MAX_GROUPS_PER_AGENT, MAX_PAST_GROUPS } from '../../../src/foundation/domain/groups.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { GroupParts } from '../../support/group-parts.ts';
import { type GroupNode, GroupWorld, groupOf } from '../../support/group-world.ts';
import { newIdentity } from '../../support/identities.ts';

test('a group that failed to be created leaves no state behind for the next one', async () => {
  const world = new GroupWorld();
  const [ann, ben] = [await world.node(), await world.node()];
  const { link } = ben.groups.create(ben.aid, 'created elsewhere');
  // As many characters as a title may have, but more UTF-16 code units.
  assert.throws(() => ann.groups.create(ann.aid, '😀'.repeat(150)), { code: 'invalid_request' });
  const { groupId } = ann.groups.create(ann.aid, 'made');
  assert.equal(ann.groups.head(ann.aid, groupId).title, 'made');
  assert.throws(() => ann.groups.create(ann.aid, '😀'.repeat(150)), { code: 'invalid_request' });
  assert.equal((await world.during(ann.groups.join(ann.aid, { link, hints: [] }))).joined, true);
  await world.stop();
});

test('an invited agent joins, both see the entries of the other, and both receive events', async () => {
  const world = new GroupWorld();
  const [ann, ben] = [await world.node(), await world.node()];
  const { groupId } = ann.groups.create(ann.aid, 'Plans');
  assert.equal(await world.during(ann.groups.invite(ann.aid, groupId, ben.aid)), true);
  const joined = await world.during(ben.groups.join(ben.aid, { groupId, hints: [] }));
  assert.deepEqual(joined, { groupId, joined: true, title: 'Plans' });
  const { entryId } = ann.say(groupId, 'hello', { to: [ben.aid] });
  await world.until('the message', () => ben.texts(groupId).includes('hello'));
  assert.equal(ben.groups.list(ben.aid)[0]?.mentionCount, 1);
  assert.ok(ben.events.some(({ type }) => type === 'group.unread'));
  assert.deepEqual(ben.events.find(({ type }) => type === 'group.mentioned')?.data, {
    group_id: groupId,
    entry_id: entryId,
    from: ann.aid,
  });
  ben.say(groupId, 'hi', { replyTo: entryId });
  await world.until('the answer', () => ann.texts(groupId).length === 2);
  assert.equal(ann.fingerprint(groupId), ben.fingerprint(groupId));
  await world.stop();
});

test('a stranger without the secret or with a wrong one receives nothing', async () => {
  const world = new GroupWorld();
  const [ann, eve] = [await world.node(), await world.node()];
  const { groupId, link } = ann.groups.create(ann.aid);
  ann.say(groupId, 'secret');
  const bare = link.split('#')[0] ?? '';
  for (const way of [bare, `${bare}#${'A'.repeat(43)}`]) {
    const { joined } = await world.during(eve.groups.join(eve.aid, { link: way, hints: [] }));
    assert.equal(joined, false);
    assert.equal(eve.groups.head(eve.aid, groupId).entryCount, 0);
  }
  await world.stop();
});

test('false invitations neither keep a member out nor change its link', async () => {
  const world = new GroupWorld();
  const [ann, ben] = [await world.node(), await world.node()];
  const { groupId, link } = ann.groups.create(ann.aid);
  const eve = newIdentity().aid;
  const secret = new Uint8Array(32);
  const invite = () =>
    ben.table.putInviteIn({ aid: ben.aid, groupId, inviter: eve, creator: eve, title: '', secret, at: 0 }, 1);
  invite();
  assert.equal((await world.during(ben.groups.join(ben.aid, { groupId, hints: [] }))).joined, false);
  assert.equal((await world.during(ben.groups.join(ben.aid, { link, hints: [] }))).joined, true);
  invite();
  const again = { groupId, creator: ann.aid, hints: [] };
  assert.equal((await world.during(ben.groups.join(ben.aid, again))).joined, true);
  assert.equal(ben.groups.head(ben.aid, groupId).link, link);
  await world.stop();
});

test('a removed agent receives an event but no more entries, and can return only by an invitation', async () => {
  const world = new GroupWorld();
  const nodes = [await world.node(), await world.node(), await world.node()] as const;
  const [ann, ben, cid] = nodes;
  const groupId = await groupOf(world, nodes);
  const { link } = ann.groups.head(ann.aid, groupId);
  await world.until('all members are known', () => ann.groups.head(ann.aid, groupId).memberCount === 3);
  assert.throws(() => cid.groups.append(cid.aid, groupId, { kind: 'remove', to: [ben.aid] }), {
    code: 'access_denied',
  });
  // Cid cannot be reached yet.
  for (const other of [ann, ben]) world.links.part(other.links, cid.links);
  ann.groups.append(ann.aid, groupId, { kind: 'remove', to: [cid.aid] });
  ann.say(groupId, 'without cid');
  await world.until('the message', () => ben.texts(groupId).includes('without cid'));
  cid.say(groupId, 'still here');
  world.links.heal();
  await world.until('cid is removed in its own replica', () => cid.groups.head(cid.aid, groupId).role === 'removed');
  assert.deepEqual(ann.texts(groupId), ['without cid']);
  assert.equal((await world.during(cid.groups.join(cid.aid, { link, hints: [] }))).joined, false);
  await world.during(ann.groups.invite(ann.aid, groupId, cid.aid));
  assert.equal((await world.during(cid.groups.join(cid.aid, { groupId, hints: [] }))).joined, true);
  cid.say(groupId, 'back again');
  await world.until('the message', () => ben.texts(groupId).includes('back again'));
  assert.equal(ann.texts(groupId).includes('still here'), false);
  await world.until('all replicas are equal', () => new Set(nodes.map((node) => node.fingerprint(groupId))).size === 1);
  await world.stop();
});

test('a removal changes the link: the old link no longer admits any agent', async () => {
  const world = new GroupWorld();
  const nodes = [await world.node(), await world.node(), await world.node()] as const;
  const [ann, ben, cid] = nodes;
  const groupId = await groupOf(world, nodes);
  await world.until('all members are known', () =>
    nodes.every((node) => node.groups.head(node.aid, groupId).memberCount === 3),
  );
  const { link: old } = ann.groups.head(ann.aid, groupId);
  assert.throws(() => ben.groups.append(ben.aid, groupId, { kind: 'rekey' }), { code: 'access_denied' });
  ann.groups.append(ann.aid, groupId, { kind: 'remove', to: [cid.aid] });
  const { link } = ann.groups.head(ann.aid, groupId);
  assert.notEqual(link, old);
  await world.until('ben has the new link', () => ben.groups.head(ben.aid, groupId).link === link);
  for (const node of [ann, ben])
    assert.ok(
      node.groups.read(node.aid, groupId, { afterSeq: 0, limit: 50, kind: 'rekey' }).entries[0]?.body === undefined,
    );

  const stranger = await world.node();
  assert.equal((await world.during(stranger.groups.join(stranger.aid, { link: old, hints: [ben.aid] }))).joined, false);
  assert.equal(ann.groups.head(ann.aid, groupId).memberCount, 2);
  const guest = await world.node();
  assert.equal((await world.during(guest.groups.join(guest.aid, { link, hints: [] }))).joined, true);
  await world.until('the guest is known', () => ann.groups.head(ann.aid, groupId).memberCount === 3);
  ann.groups.append(ann.aid, groupId, { kind: 'rekey' });
  await world.until('all have the newest link', () =>
    [ben, guest].every((node) => node.groups.head(node.aid, groupId).link === ann.groups.head(ann.aid, groupId).link),
  );
  assert.notEqual(ann.groups.head(ann.aid, groupId).link, link);
  guest.say(groupId, 'still in');
  await world.until('the message', () => ann.texts(groupId).includes('still in'));
  await world.stop();
});

test('an agent that joins by the link is known to all members immediately', async () => {
  const world = new GroupWorld();
  const nodes = [await world.node(), await world.node()] as const;
  const [ann, ben] = nodes;
  const groupId = await groupOf(world, nodes);
  await world.until('both know each other', () =>
    nodes.every((node) => node.groups.head(node.aid, groupId).memberCount === 2),
  );
  const cid = await world.node();
  const { link } = ann.groups.head(ann.aid, groupId);
  assert.equal((await world.during(cid.groups.join(cid.aid, { link, hints: [] }))).joined, true);
  const before = world.clock.now();
  await world.until('they know the new member', () =>
    nodes.every((node) => node.groups.head(node.aid, groupId).memberCount === 3),
  );
  assert.ok(world.clock.now() - before < 1000, 'before the next comparison');
  ben.say(groupId, 'welcome');
  await world.until('it gets new entries', () => cid.texts(groupId).includes('welcome'));
  await world.stop();
});

test('an agent that was joining by the old link is admitted by the new one', async () => {
  const world = new GroupWorld();
  const nodes = [await world.node(), await world.node()] as const;
  const [ann, ben] = nodes;
  const { groupId, link: old } = ann.groups.create(ann.aid);
  // The join is written, and does not arrive.
  const open = ben.links.open.bind(ben.links);
  ben.links.open = (...link) => {
    if (ben.table.find(ben.aid, groupId)?.state === 'member') world.links.part(ann.links, ben.links);
    return open(...link);
  };
  await world.during(ben.groups.join(ben.aid, { link: old, hints: [] }));
  ben.links.open = open;
  assert.equal(ben.groups.head(ben.aid, groupId).role, 'member');
  assert.equal(ann.groups.head(ann.aid, groupId).memberCount, 1);
  ann.groups.append(ann.aid, groupId, { kind: 'rekey' });
  await world.clock.run(30_000);
  world.links.heal();
  await world.clock.run(300_000);
  assert.equal(ann.groups.head(ann.aid, groupId).memberCount, 1);
  const { link } = ann.groups.head(ann.aid, groupId);
  await world.during(ben.groups.join(ben.aid, { link, hints: [] }));
  await world.until('equal', () => ann.fingerprint(groupId) === ben.fingerprint(groupId));
  assert.equal(ann.groups.head(ann.aid, groupId).memberCount, 2);
  await world.stop();
});

test('two concurrent changes of the link: both links admit agents until the next change', async () => {
  const world = new GroupWorld();
  const nodes = [await world.node(), await world.node()] as const;
  const [ann, ben] = nodes;
  const groupId = await groupOf(world, nodes);
  await world.until('ben is known', () => ann.groups.head(ann.aid, groupId).memberCount === 2);
  ann.groups.append(ann.aid, groupId, { kind: 'role', to: [ben.aid], body: Buffer.from('admin') });
  await world.until('the role', () => ben.groups.head(ben.aid, groupId).role === 'admin');
  world.links.part(ann.links, ben.links);
  const links = nodes.map((node) => {
    node.groups.append(node.aid, groupId, { kind: 'rekey' });
    return node.groups.head(node.aid, groupId).link;
  });
  world.links.heal();
  await world.until('equal', () => ann.fingerprint(groupId) === ben.fingerprint(groupId));
  for (const link of links) {
    const guest = await world.node();
    assert.equal((await world.during(guest.groups.join(guest.aid, { link, hints: [] }))).joined, true);
  }
  await world.until('the guests are known', () => ann.groups.head(ann.aid, groupId).memberCount === 4);
  ben.groups.append(ben.aid, groupId, { kind: 'rekey' });
  await world.until('ann has the last link', () => ann.fingerprint(groupId) === ben.fingerprint(groupId));
  const late = await world.node();
  for (const link of links)
    assert.equal((await world.during(late.groups.join(late.aid, { link, hints: [ben.aid] }))).joined, false);
  await world.stop();
});

test('only the author or an admin can retract; the content is removed, the position stays', async () => {
  const world = new GroupWorld();
  const nodes = [await world.node(), await world.node(), await world.node()] as const;
  const [ann, ben, cid] = nodes;
  const groupId = await groupOf(world, nodes);
  const { entryId } = ben.say(groupId, 'oops');
  await world.until('the message', () => cid.texts(groupId).includes('oops') && ann.texts(groupId).includes('oops'));
  assert.throws(() => cid.groups.retract(cid.aid, groupId, entryId), { code: 'access_denied' });
  // An entry that bypasses the check has no effect either.
  cid.groups.append(cid.aid, groupId, { kind: 'retract', ref: entryId });
  await world.until('ann has all joins', () => ann.groups.head(ann.aid, groupId).members.length === 3);
  ann.groups.append(ann.aid, groupId, { kind: 'role', to: [cid.aid], body: Buffer.from('admin') });
  assert.ok(ben.texts(groupId).includes('oops'));
  await world.until('the role', () => cid.groups.head(cid.aid, groupId).role === 'admin');
  cid.groups.retract(cid.aid, groupId, entryId);
  const unread = ann.groups.head(ann.aid, groupId).unreadCount;
  await world.until('gone', () => ann.texts(groupId).includes('') && ben.texts(groupId).includes(''));
  assert.equal(ann.groups.head(ann.aid, groupId).unreadCount, unread - 1);
  const [entry] = ben.groups.read(ben.aid, groupId, { afterSeq: 0, limit: 50, kind: 'msg' }).entries;
  assert.deepEqual([entry?.retracted, entry?.body, entry?.author], [true, undefined, ben.aid]);
  await world.stop();
});

test('no one counts an agent that left as a member; the creator cannot leave', async () => {
  const world = new GroupWorld();
  const nodes = [await world.node(), await world.node()] as const;
  const [ann, ben] = nodes;
  const groupId = await groupOf(world, nodes);
  assert.throws(() => ann.groups.leave(ann.aid, groupId), { code: 'creator_cannot_leave' });
  // No other member is reachable.
  world.links.part(ann.links, ben.links);
  ben.groups.leave(ben.aid, groupId);
  assert.throws(() => ben.say(groupId, 'more'), { code: 'not_member' });
  const again = await ben.restart();
  world.links.heal();
  await world.until('ann has the leave entry', () => ann.groups.head(ann.aid, groupId).members.length === 1);
  assert.deepEqual(again.groups.list(again.aid), []);
  await world.stop();
});

/** Adds groups without a log, in ascending age order, and returns their IDs. */
function addGroups({ table, store, aid }: GroupNode, count: number, state: GroupState): string[] {
  return store.transaction(() =>
    Array.from({ length: count }, (_, i) => {
      const groupId = Buffer.from(`${state} ${i}`.padEnd(32)).toString('hex');
      const epoch = new Uint8Array(16);
      table.add({ aid, groupId, creator: aid, title: '', state, secret: null, hints: [], epoch, lastAt: i });
      return groupId;
    }),
  );
}

test('groups that an agent left do not count, and the oldest of too many are deleted', async () => {
  const world = new GroupWorld();
  const ann = await world.node();
  const left = addGroups(ann, MAX_PAST_GROUPS + 1, 'left');
  const { groupId } = ann.groups.create(ann.aid, 'another');
  const known = new Set(ann.table.list(ann.aid).map((row) => row.groupId));
  assert.deepEqual(known, new Set([...left.slice(1), groupId]));
  await world.stop();
});

test('an agent can be in a limited number of groups and cannot return to one beyond that', async () => {
  const world = new GroupWorld();
  const ann = await world.node();
  addGroups(ann, MAX_GROUPS_PER_AGENT, 'member');
  const [past] = addGroups(ann, 1, 'left');
  assert.throws(() => ann.groups.create(ann.aid, 'another'), { code: 'quota_exceeded' });
  const again = ann.groups.join(ann.aid, { groupId: past, creator: newIdentity().aid, hints: [] });
  await assert.rejects(world.during(again), { code: 'quota_exceeded' });
  await world.stop();
});

test('an invitation is repeated until it arrives, and the read cursor survives and never moves back', async () => {
  const world = new GroupWorld();
  const [ann, ben] = [await world.node(), await world.node()];
  const { groupId } = ann.groups.create(ann.aid);
  world.mail = false;
  assert.equal(await world.during(ann.groups.invite(ann.aid, groupId, ben.aid)), false);
  world.mail = true;
  await world.clock.run(2 * 24 * 3600_000);
  assert.ok(ben.table.inviteIn(ben.aid, groupId) !== null);
  const sent = world.notesSent;
  await world.clock.run(24 * 3600_000);
  assert.equal(world.notesSent, sent);
  await world.during(ben.groups.join(ben.aid, { groupId, hints: [] }));
  for (let i = 0; i < 5; i++) ann.say(groupId, `${i}`);
  await world.until('all', () => ben.texts(groupId).length === 5);
  const { maxSeq } = ben.groups.head(ben.aid, groupId);
  assert.equal(ben.groups.markRead(ben.aid, groupId, maxSeq - 1).unreadCount, 1);
  const again = await ben.restart();
  assert.deepEqual(again.groups.markRead(ben.aid, groupId, 1), { readCursor: maxSeq - 1, unreadCount: 1 });
  await world.stop();
});

test('entries written while the clock was ahead do not delay later entries of any author', async () => {
  const world = new GroupWorld();
  const [ann, ben] = [await world.node(), await world.node()];
  const groupId = await groupOf(world, [ann, ben]);
  await world.until('ben is a member', () => ann.groups.head(ann.aid, groupId).members.length === 2);
  const ahead = 900_000;
  world.links.part(ann.links, ben.links);
  world.clock.jump(ahead);
  ben.say(groupId, 'ahead');
  ben.say(groupId, 'ahead as well');
  world.clock.jump(-ahead);
  ben.say(groupId, 'on time');
  ben.say(groupId, 'also on time');
  world.links.heal();
  await world.until('the entries on time', () => ann.texts(groupId).length === 2, 600_000);
  assert.deepEqual(ann.texts(groupId), ['on time', 'also on time']);
  ann.say(groupId, 'an answer');
  await world.until('the answer', () => ben.texts(groupId).includes('an answer'), 600_000);
  ben.say(groupId, 'thanks');
  await world.until('the thanks', () => ann.texts(groupId).includes('thanks'), 600_000);
  await world.until('the early entries', () => ann.texts(groupId).length === 6, 2 * ahead);
  await world.until('equal replicas', () => ann.fingerprint(groupId) === ben.fingerprint(groupId));
  await world.stop();
});

test('an agent that created a group while its clock was ahead can write after the clock is corrected', async () => {
  const world = new GroupWorld();
  const ann = await world.node();
  world.clock.jump(3_600_000);
  const { groupId } = ann.groups.create(ann.aid);
  world.clock.jump(-3_600_000);
  ann.say(groupId, 'hello');
  assert.deepEqual(ann.texts(groupId), ['hello']);
  await world.stop();
});

test('a removed agent is notified immediately, or by the first member that it contacts', async () => {
  const world = new GroupWorld();
  const nodes = [await world.node(), await world.node(), await world.node()] as const;
  const [ann, ben, cid] = nodes;
  const groupId = await groupOf(world, nodes);
  await world.until('all members are known', () =>
    nodes.every((node) => node.groups.head(node.aid, groupId).memberCount === 3),
  );
  const remove = (aid: Aid) => ann.groups.append(ann.aid, groupId, { kind: 'remove', to: [aid] });
  const isOut = ({ aid, groups }: GroupNode): boolean => groups.head(aid, groupId).role === 'removed';
  const removals = ({ events }: GroupNode) => events.filter(({ type }) => type === 'group.removed');

  remove(ben.aid);
  await world.until('ben is notified', () => isOut(ben), 2000);
  assert.throws(() => ben.say(groupId, 'hello?'), { code: 'not_member' });
  assert.deepEqual(removals(ben), [{ type: 'group.removed', data: { group_id: groupId, by: ann.aid } }]);

  world.links.part(ann.links, cid.links);
  ann.say(groupId, 'cid does not get this');
  remove(cid.aid);
  await world.clock.run(1000);
  world.links.heal();
  assert.equal(isOut(cid), false);
  cid.say(groupId, 'hello?');
  await world.until('cid is notified', () => isOut(cid), 2000);
  assert.throws(() => cid.say(groupId, 'hello?'), { code: 'not_member' });
  assert.deepEqual(removals(cid), [{ type: 'group.removed', data: { group_id: groupId, by: ann.aid } }]);
  assert.equal(ann.texts(groupId).includes('hello?'), false);
  await world.stop();
});

test('an invitation is listed until it is declined or accepted', async () => {
  const world = new GroupWorld();
  const [ann, ben] = [await world.node(), await world.node()];
  const [first, second] = [ann.groups.create(ann.aid, 'One'), ann.groups.create(ann.aid, 'Two')];
  await world.during(ann.groups.invite(ann.aid, first.groupId, ben.aid));
  await world.clock.run(1000);
  await world.during(ann.groups.invite(ann.aid, second.groupId, ben.aid));
  const listed = () => ben.groups.invitations(ben.aid).map(({ title, inviter }) => [title, inviter]);
  assert.deepEqual(listed(), [
    ['One', ann.aid],
    ['Two', ann.aid],
  ]);
  ben.groups.refuseInvitation(ben.aid, first.groupId);
  assert.throws(() => ben.groups.refuseInvitation(ben.aid, first.groupId), { code: 'not_found' });
  assert.deepEqual(listed(), [['Two', ann.aid]]);
  await world.during(ben.groups.join(ben.aid, { groupId: second.groupId, hints: [] }));
  await world.until('ben is a member', () => ben.groups.head(ben.aid, second.groupId).role === 'member');
  assert.deepEqual(listed(), []);
  assert.throws(() => ben.groups.invitations(newIdentity().aid), { code: 'not_found' });
  await world.until('ann knows', () => ann.groups.head(ann.aid, second.groupId).memberCount === 2);
  await world.clock.run(1000);
  ann.say(second.groupId, 'hi');
  const { entryCount } = await world.during(ben.groups.sync(ben.aid, second.groupId, ann.aid));
  assert.equal(entryCount, ann.groups.head(ann.aid, second.groupId).entryCount);
  const before = ben.groups.readBefore(ben.aid, second.groupId, entryCount + 1, 1);
  assert.deepEqual([before.entries.length, before.entries[0]?.seq], [1, entryCount]);
  await world.stop();
});

/** A group of Ann, and Ben, who can reach only the agents that the test allows. */
function setUp() {
  const there = new GroupParts();
  const ann = there.agent();
  const { groupId, link } = there.writer.create(ann, 'Plans');
  const here = new GroupParts(there.clock);
  const ben = here.agent();
  const asked: Aid[] = [];
  const soon: number[] = [];
  const answering = new Set([ann]);
  const failure = { next: new SvcError('connect_failed') };
  const joiner: Joiner = new Joiner(
    { groups: here.groups, log: silentLog, clockAheadMs: () => here.aheadMs },
    here.replicas,
    here.writer,
    {
      scheduleSync: (rid) => void soon.push(rid),
      syncNow: async (replica: Replica, peer: Aid) => {
        asked.push(peer);
        if (!answering.has(peer)) throw failure.next;
        here.writer.admit(replica, there.log(ann, groupId), peer);
        joiner.fetched(replica);
      },
    },
  );
  return { there, ann, groupId, link, here, ben, asked, soon, answering, failure, joiner };
}

test('an agent with the link fetches the log from the creator and writes its join', async () => {
  const { here, ann, ben, groupId, link, asked, soon, joiner } = setUp();
  assert.deepEqual(await joiner.join(ben, { link, hints: [] }), { groupId, joined: true, title: 'Plans' });
  assert.deepEqual(asked, [ann]);
  assert.deepEqual(here.kinds(ben, groupId), ['create', 'join']);
  assert.deepEqual(soon, []);
});

test('if no member answers, joining continues later; a limited number is tried at first', async () => {
  const { here, ann, ben, groupId, link, asked, soon, answering, joiner } = setUp();
  answering.clear();
  const hints = Array.from({ length: 6 }, () => newIdentity().aid);
  assert.equal((await joiner.join(ben, { link, hints })).joined, false);
  assert.deepEqual(asked, hints.slice(0, 4));
  const { rid, state } = here.replicas.row(ben, groupId);
  assert.deepEqual([state, soon], ['joining', [rid]]);
  answering.add(ann);
  assert.equal((await joiner.join(ben, { link, hints: [ann] })).joined, true);
  assert.deepEqual(soon, [rid, rid], 'a known group is synced again');
});

test('an agent that is not admitted stays outside with the entries it has fetched', async () => {
  const { here, ann, ben, groupId, joiner } = setUp();
  const bare = `svc://${ann}/groups/${groupId}`;
  assert.equal((await joiner.join(ben, { link: bare, hints: [] })).joined, false);
  assert.deepEqual(here.kinds(ben, groupId), ['create']);
  assert.equal(here.replicas.row(ben, groupId).state, 'joining');
});

test('an invited agent joins by its invitation, even with an outdated link', async () => {
  const { there, here, ann, ben, groupId, joiner } = setUp();
  there.writer.appendAny(ann, groupId, { kind: 'invite', to: [ben] });
  const outdated = `svc://${ann}/groups/${groupId}#${'A'.repeat(43)}`;
  assert.equal((await joiner.join(ben, { link: outdated, hints: [] })).joined, true);
  assert.deepEqual(here.kinds(ben, groupId), ['create', 'invite', 'join']);
  assert.equal(here.log(ben, groupId).at(-1)?.proof, undefined);
});

test('an invited agent needs no secret, and false data of an invitation is corrected', async () => {
  const { there, here, ann, ben, groupId, asked, joiner } = setUp();
  const eve = newIdentity().aid;
  const invitation = { aid: ben, groupId, inviter: eve, creator: eve, title: 'False', secret: null, at: 0 };
  here.groups.putInviteIn(invitation, 10);
  assert.deepEqual(await joiner.join(ben, { groupId, hints: [] }), { groupId, joined: false, title: 'False' });
  assert.deepEqual(asked, [eve]);
  const before = here.replicas.open(here.replicas.row(ben, groupId));
  there.writer.appendAny(ann, groupId, { kind: 'invite', to: [ben] });
  assert.deepEqual(await joiner.join(ben, { groupId, creator: ann, hints: [ann] }), {
    groupId,
    joined: true,
    title: 'Plans',
  });
  const { creator, state } = here.replicas.row(ben, groupId);
  assert.deepEqual([creator, state], [ann, 'member']);
  assert.notEqual(here.replicas.open(here.replicas.row(ben, groupId)), before);
  assert.deepEqual(here.kinds(ben, groupId), ['create', 'invite', 'join']);
});

test('a member stays a member if it joins again, and a sync of its group writes nothing', async () => {
  const { here, ben, groupId, link, joiner } = setUp();
  await joiner.join(ben, { link, hints: [] });
  const replica = here.replicas.open(here.replicas.row(ben, groupId));
  joiner.fetched(replica);
  assert.equal((await joiner.join(ben, { link, hints: [] })).joined, true);
  assert.deepEqual(here.kinds(ben, groupId), ['create', 'join']);
  here.groups.setState(replica.rid, 'joining');
  joiner.fetched(replica);
  assert.equal(here.replicas.row(ben, groupId).state, 'member', 'its entry is already here');
});

test('an agent that was deleted or has fetched no entries writes nothing', async () => {
  const { here, ben, groupId, link, answering, joiner } = setUp();
  answering.clear();
  await joiner.join(ben, { link, hints: [] });
  const replica = here.replicas.open(here.replicas.row(ben, groupId));
  joiner.fetched(replica);
  assert.equal(replica.maxSeq, 0);
  here.agents.delete(ben);
  joiner.fetched(replica);
  assert.equal(here.groups.byRid(replica.rid)?.state, 'joining');
  await assert.rejects(joiner.join(ben, { link, hints: [] }), { code: 'not_found' });
});

test('a wrong clock is reported, and the group is joined when the clock is right', async () => {
  const { here, ann, ben, groupId, link, answering, failure, joiner } = setUp();
  here.aheadMs = 60_001;
  await assert.rejects(joiner.join(ben, { link, hints: [] }), { code: 'clock_wrong', details: { offset_s: -60.001 } });
  assert.equal(here.replicas.row(ben, groupId).state, 'joining');
  here.aheadMs = 0;
  assert.equal((await joiner.join(ben, { link, hints: [] })).joined, true);

  const { joiner: other, ...second } = setUp();
  second.answering.clear();
  second.failure.next = new SvcError('clock_wrong');
  await assert.rejects(other.join(second.ben, { link: second.link, hints: [] }), { code: 'clock_wrong' });
  answering.clear();
  failure.next = new SvcError('clock_wrong');
  assert.equal((await joiner.join(ben, { link, hints: [ann] })).joined, true, 'a member needs no peer');
});

test('a stop ends invitations under way before the store closes', async () => {
  const world = new GroupWorld();
  const [ann, ben] = [await world.node(), await world.node()];
  const { groupId } = ann.groups.create(ann.aid);
  world.mailHangs = true;
  const inviting = ann.groups.invite(ann.aid, groupId, ben.aid);
  await ann.groups.stop();
  ann.store.close();
  assert.equal(await inviting, false);
  await world.clock.run(60_000);
});
