import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MAX_PAST_ROOMS, MAX_ROOMS, type RoomState } from '../../../src/foundation/domain/rooms.ts';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { newIdentity } from '../../support/identities.ts';
import { type RoomNode, RoomWorld, roomOf } from '../../support/room-world.ts';

test('a room that could not be made leaves nothing behind that the next one takes for its own', async () => {
  const world = new RoomWorld();
  const [ann, ben] = [await world.node(), await world.node()];
  const { link } = ben.rooms.create(ben.aid, 'made elsewhere');
  // As many characters as a title may have, and more units of a string.
  assert.throws(() => ann.rooms.create(ann.aid, '😀'.repeat(150)), { code: 'invalid_request' });
  const { groupId } = ann.rooms.create(ann.aid, 'made');
  assert.equal(ann.rooms.head(ann.aid, groupId).title, 'made');
  assert.throws(() => ann.rooms.create(ann.aid, '😀'.repeat(150)), { code: 'invalid_request' });
  assert.equal((await world.during(ann.rooms.join(ann.aid, { link, hints: [] }))).joined, true);
  await world.stop();
});

test('an invited agent joins, both see what the other writes, and both are told', async () => {
  const world = new RoomWorld();
  const [ann, ben] = [await world.node(), await world.node()];
  const { groupId } = ann.rooms.create(ann.aid, 'Plans');
  assert.equal(await world.during(ann.rooms.invite(ann.aid, groupId, ben.aid)), true);
  const joined = await world.during(ben.rooms.join(ben.aid, { groupId, hints: [] }));
  assert.deepEqual(joined, { groupId, joined: true, title: 'Plans' });
  const { entryId } = ann.say(groupId, 'hello', { to: [ben.aid] });
  await world.until('the message', () => ben.texts(groupId).includes('hello'));
  assert.equal(ben.rooms.list(ben.aid)[0]?.mentionCount, 1);
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

test('a stranger gets nothing, without the secret and with a wrong one', async () => {
  const world = new RoomWorld();
  const [ann, eve] = [await world.node(), await world.node()];
  const { groupId, link } = ann.rooms.create(ann.aid);
  ann.say(groupId, 'secret');
  const bare = link.split('#')[0] ?? '';
  for (const way of [bare, `${bare}#${'A'.repeat(43)}`]) {
    const { joined } = await world.during(eve.rooms.join(eve.aid, { link: way, hints: [] }));
    assert.equal(joined, false);
    assert.equal(eve.rooms.head(eve.aid, groupId).entryCount, 0);
  }
  await world.stop();
});

test('false invitations neither keep out nor change the link of a member', async () => {
  const world = new RoomWorld();
  const [ann, ben] = [await world.node(), await world.node()];
  const { groupId, link } = ann.rooms.create(ann.aid);
  const eve = newIdentity().aid;
  const secret = new Uint8Array(32);
  const invite = () =>
    ben.table.putInviteIn({ aid: ben.aid, groupId, inviter: eve, creator: eve, title: '', secret, at: 0 }, 1);
  invite();
  assert.equal((await world.during(ben.rooms.join(ben.aid, { groupId, hints: [] }))).joined, false);
  assert.equal((await world.during(ben.rooms.join(ben.aid, { link, hints: [] }))).joined, true);
  invite();
  const again = { groupId, creator: ann.aid, hints: [] };
  assert.equal((await world.during(ben.rooms.join(ben.aid, again))).joined, true);
  assert.equal(ben.rooms.head(ben.aid, groupId).link, link);
  await world.stop();
});

test('who is removed gets nothing more, hears of it, and comes back only by an invitation', async () => {
  const world = new RoomWorld();
  const nodes = [await world.node(), await world.node(), await world.node()] as const;
  const [ann, ben, cid] = nodes;
  const groupId = await roomOf(world, nodes);
  const { link } = ann.rooms.head(ann.aid, groupId);
  await world.until('all are known', () => ann.rooms.head(ann.aid, groupId).memberCount === 3);
  assert.throws(() => cid.rooms.append(cid.aid, groupId, { kind: 'remove', to: [ben.aid] }), { code: 'access_denied' });
  // Cid does not hear of it yet.
  for (const other of [ann, ben]) world.links.part(other.links, cid.links);
  ann.rooms.append(ann.aid, groupId, { kind: 'remove', to: [cid.aid] });
  ann.say(groupId, 'without cid');
  await world.until('the message', () => ben.texts(groupId).includes('without cid'));
  cid.say(groupId, 'still here');
  world.links.heal();
  await world.until('cid hears of it', () => cid.rooms.head(cid.aid, groupId).role === 'removed');
  assert.deepEqual(ann.texts(groupId), ['without cid']);
  assert.equal((await world.during(cid.rooms.join(cid.aid, { link, hints: [] }))).joined, false);
  await world.during(ann.rooms.invite(ann.aid, groupId, cid.aid));
  assert.equal((await world.during(cid.rooms.join(cid.aid, { groupId, hints: [] }))).joined, true);
  cid.say(groupId, 'back again');
  await world.until('the message', () => ben.texts(groupId).includes('back again'));
  assert.equal(ann.texts(groupId).includes('still here'), false);
  await world.until('all are equal', () => new Set(nodes.map((node) => node.fingerprint(groupId))).size === 1);
  await world.stop();
});

test('a removal makes another link: the one of before lets nobody in, not even under another name', async () => {
  const world = new RoomWorld();
  const nodes = [await world.node(), await world.node(), await world.node()] as const;
  const [ann, ben, cid] = nodes;
  const groupId = await roomOf(world, nodes);
  await world.until('all are known', () => nodes.every((node) => node.rooms.head(node.aid, groupId).memberCount === 3));
  const { link: old } = ann.rooms.head(ann.aid, groupId);
  assert.throws(() => ben.rooms.append(ben.aid, groupId, { kind: 'rekey' }), { code: 'access_denied' });
  ann.rooms.append(ann.aid, groupId, { kind: 'remove', to: [cid.aid] });
  const { link } = ann.rooms.head(ann.aid, groupId);
  assert.notEqual(link, old);
  await world.until('ben has the new link', () => ben.rooms.head(ben.aid, groupId).link === link);
  for (const node of [ann, ben])
    assert.ok(
      node.rooms.read(node.aid, groupId, { afterSeq: 0, limit: 50, kind: 'rekey' }).entries[0]?.body === undefined,
    );

  const stranger = await world.node();
  assert.equal((await world.during(stranger.rooms.join(stranger.aid, { link: old, hints: [ben.aid] }))).joined, false);
  assert.equal(ann.rooms.head(ann.aid, groupId).memberCount, 2);
  const guest = await world.node();
  assert.equal((await world.during(guest.rooms.join(guest.aid, { link, hints: [] }))).joined, true);
  await world.until('the guest is known', () => ann.rooms.head(ann.aid, groupId).memberCount === 3);
  ann.rooms.append(ann.aid, groupId, { kind: 'rekey' });
  await world.until('all have the newest link', () =>
    [ben, guest].every((node) => node.rooms.head(node.aid, groupId).link === ann.rooms.head(ann.aid, groupId).link),
  );
  assert.notEqual(ann.rooms.head(ann.aid, groupId).link, link);
  guest.say(groupId, 'still in');
  await world.until('the message', () => ann.texts(groupId).includes('still in'));
  await world.stop();
});

test('who was just coming in by the old link is let in by the new one', async () => {
  const world = new RoomWorld();
  const nodes = [await world.node(), await world.node()] as const;
  const [ann, ben] = nodes;
  const { groupId, link: old } = ann.rooms.create(ann.aid);
  await world.during(ben.rooms.join(ben.aid, { link: old, hints: [] }));
  // Before word of the joining is here.
  assert.equal(ann.rooms.head(ann.aid, groupId).memberCount, 1);
  ann.rooms.append(ann.aid, groupId, { kind: 'rekey' });
  await world.clock.run(300_000);
  assert.equal(ann.rooms.head(ann.aid, groupId).memberCount, 1);
  const { link } = ann.rooms.head(ann.aid, groupId);
  await world.during(ben.rooms.join(ben.aid, { link, hints: [] }));
  await world.until('equal', () => ann.fingerprint(groupId) === ben.fingerprint(groupId));
  assert.equal(ann.rooms.head(ann.aid, groupId).memberCount, 2);
  await world.stop();
});

test('two who change the link beside each other: both links let in, until the next change', async () => {
  const world = new RoomWorld();
  const nodes = [await world.node(), await world.node()] as const;
  const [ann, ben] = nodes;
  const groupId = await roomOf(world, nodes);
  await world.until('ben is known', () => ann.rooms.head(ann.aid, groupId).memberCount === 2);
  ann.rooms.append(ann.aid, groupId, { kind: 'role', to: [ben.aid], body: Buffer.from('admin') });
  await world.until('the office', () => ben.rooms.head(ben.aid, groupId).role === 'admin');
  world.links.part(ann.links, ben.links);
  const links = nodes.map((node) => {
    node.rooms.append(node.aid, groupId, { kind: 'rekey' });
    return node.rooms.head(node.aid, groupId).link;
  });
  world.links.heal();
  await world.until('equal', () => ann.fingerprint(groupId) === ben.fingerprint(groupId));
  for (const link of links) {
    const guest = await world.node();
    assert.equal((await world.during(guest.rooms.join(guest.aid, { link, hints: [] }))).joined, true);
  }
  await world.until('the guests are known', () => ann.rooms.head(ann.aid, groupId).memberCount === 4);
  ben.rooms.append(ben.aid, groupId, { kind: 'rekey' });
  await world.until('ann has the last link', () => ann.fingerprint(groupId) === ben.fingerprint(groupId));
  const late = await world.node();
  for (const link of links)
    assert.equal((await world.during(late.rooms.join(late.aid, { link, hints: [ben.aid] }))).joined, false);
  await world.stop();
});

test('only the author or an admin retracts; the content goes, the place stays', async () => {
  const world = new RoomWorld();
  const nodes = [await world.node(), await world.node(), await world.node()] as const;
  const [ann, ben, cid] = nodes;
  const groupId = await roomOf(world, nodes);
  const { entryId } = ben.say(groupId, 'oops');
  await world.until('the message', () => cid.texts(groupId).includes('oops') && ann.texts(groupId).includes('oops'));
  assert.throws(() => cid.rooms.retract(cid.aid, groupId, entryId), { code: 'access_denied' });
  // Nor does an entry that goes round the check.
  cid.rooms.append(cid.aid, groupId, { kind: 'retract', ref: entryId });
  await world.until('ann hears who joined', () => ann.rooms.head(ann.aid, groupId).members.length === 3);
  ann.rooms.append(ann.aid, groupId, { kind: 'role', to: [cid.aid], body: Buffer.from('admin') });
  assert.ok(ben.texts(groupId).includes('oops'));
  await world.until('the office', () => cid.rooms.head(cid.aid, groupId).role === 'admin');
  cid.rooms.retract(cid.aid, groupId, entryId);
  const unread = ann.rooms.head(ann.aid, groupId).unreadCount;
  await world.until('gone', () => ann.texts(groupId).includes('') && ben.texts(groupId).includes(''));
  assert.equal(ann.rooms.head(ann.aid, groupId).unreadCount, unread - 1);
  const [entry] = ben.rooms.read(ben.aid, groupId, { afterSeq: 0, limit: 50, kind: 'msg' }).entries;
  assert.deepEqual([entry?.retracted, entry?.body, entry?.author], [true, undefined, ben.aid]);
  await world.stop();
});

test('who left is not a member for anybody; the creator cannot leave', async () => {
  const world = new RoomWorld();
  const nodes = [await world.node(), await world.node()] as const;
  const [ann, ben] = nodes;
  const groupId = await roomOf(world, nodes);
  assert.throws(() => ann.rooms.leave(ann.aid, groupId), { code: 'creator_cannot_leave' });
  // Nobody is there to hear it.
  world.links.part(ann.links, ben.links);
  ben.rooms.leave(ben.aid, groupId);
  assert.throws(() => ben.say(groupId, 'more'), { code: 'not_member' });
  const again = await ben.restart();
  world.links.heal();
  await world.until('ann hears of it', () => ann.rooms.head(ann.aid, groupId).members.length === 1);
  assert.deepEqual(again.rooms.list(again.aid), []);
  await world.stop();
});

/** Gives an agent rooms without a log, the later ones newer; returns their ids. */
function addRooms({ table, store, aid }: RoomNode, count: number, state: RoomState): string[] {
  return store.transaction(() =>
    Array.from({ length: count }, (_, i) => {
      const groupId = Buffer.from(`${state} ${i}`.padEnd(32)).toString('hex');
      const epoch = new Uint8Array(16);
      table.add({ aid, groupId, creator: aid, title: '', state, secret: null, hints: [], epoch, lastAt: i });
      return groupId;
    }),
  );
}

test('rooms that an agent left do not count, and the oldest of too many are forgotten', async () => {
  const world = new RoomWorld();
  const ann = await world.node();
  const left = addRooms(ann, MAX_PAST_ROOMS + 1, 'left');
  const { groupId } = ann.rooms.create(ann.aid, 'another');
  const known = new Set(ann.table.list(ann.aid).map((row) => row.groupId));
  assert.deepEqual(known, new Set([...left.slice(1), groupId]));
  await world.stop();
});

test('an agent is in so many rooms, and comes back into none beyond that', async () => {
  const world = new RoomWorld();
  const ann = await world.node();
  addRooms(ann, MAX_ROOMS, 'member');
  const [past] = addRooms(ann, 1, 'left');
  assert.throws(() => ann.rooms.create(ann.aid, 'another'), { code: 'quota_exceeded' });
  const again = ann.rooms.join(ann.aid, { groupId: past, creator: newIdentity().aid, hints: [] });
  await assert.rejects(world.during(again), { code: 'quota_exceeded' });
  await world.stop();
});

test('an invitation is sent again until it arrives, and the read cursor survives and never goes back', async () => {
  const world = new RoomWorld();
  const [ann, ben] = [await world.node(), await world.node()];
  const { groupId } = ann.rooms.create(ann.aid);
  world.mail = false;
  assert.equal(await world.during(ann.rooms.invite(ann.aid, groupId, ben.aid)), false);
  world.mail = true;
  await world.clock.run(2 * 24 * 3600_000);
  assert.ok(ben.table.inviteIn(ben.aid, groupId) !== null);
  const sent = world.notesSent;
  await world.clock.run(24 * 3600_000);
  assert.equal(world.notesSent, sent);
  await world.during(ben.rooms.join(ben.aid, { groupId, hints: [] }));
  for (let i = 0; i < 5; i++) ann.say(groupId, `${i}`);
  await world.until('all', () => ben.texts(groupId).length === 5);
  const { maxSeq } = ben.rooms.head(ben.aid, groupId);
  assert.equal(ben.rooms.markRead(ben.aid, groupId, maxSeq - 1).unreadCount, 1);
  const again = await ben.restart();
  assert.deepEqual(again.rooms.markRead(ben.aid, groupId, 1), { readCursor: maxSeq - 1, unreadCount: 1 });
  await world.stop();
});

test('entries written while the clock was ahead delay neither later entries of the author nor those of others', async () => {
  const world = new RoomWorld();
  const [ann, ben] = [await world.node(), await world.node()];
  const groupId = await roomOf(world, [ann, ben]);
  await world.until('ben is in', () => ann.rooms.head(ann.aid, groupId).members.length === 2);
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
  await world.until('the same room', () => ann.fingerprint(groupId) === ben.fingerprint(groupId));
  await world.stop();
});

test('who creates a room while the clock is ahead can go on writing when the clock is right again', async () => {
  const world = new RoomWorld();
  const ann = await world.node();
  world.clock.jump(3_600_000);
  const { groupId } = ann.rooms.create(ann.aid);
  world.clock.jump(-3_600_000);
  ann.say(groupId, 'hello');
  assert.deepEqual(ann.texts(groupId), ['hello']);
  await world.stop();
});

test('who is removed hears of it at once, or by the answer of the first member that it writes to', async () => {
  const world = new RoomWorld();
  const nodes = [await world.node(), await world.node(), await world.node()] as const;
  const [ann, ben, cid] = nodes;
  const groupId = await roomOf(world, nodes);
  await world.until('all are known', () => nodes.every((node) => node.rooms.head(node.aid, groupId).memberCount === 3));
  const remove = (aid: Aid) => ann.rooms.append(ann.aid, groupId, { kind: 'remove', to: [aid] });
  const isOut = ({ aid, rooms }: RoomNode): boolean => rooms.head(aid, groupId).role === 'removed';
  const removals = ({ events }: RoomNode) => events.filter(({ type }) => type === 'group.removed');

  remove(ben.aid);
  await world.until('ben hears of it', () => isOut(ben), 2000);
  assert.throws(() => ben.say(groupId, 'hello?'), { code: 'not_member' });
  assert.deepEqual(removals(ben), [{ type: 'group.removed', data: { group_id: groupId, by: ann.aid } }]);

  world.links.part(ann.links, cid.links);
  ann.say(groupId, 'cid does not get this');
  remove(cid.aid);
  await world.clock.run(1000);
  world.links.heal();
  assert.equal(isOut(cid), false);
  cid.say(groupId, 'hello?');
  await world.until('cid hears of it', () => isOut(cid), 2000);
  assert.throws(() => cid.say(groupId, 'hello?'), { code: 'not_member' });
  assert.deepEqual(removals(cid), [{ type: 'group.removed', data: { group_id: groupId, by: ann.aid } }]);
  assert.equal(ann.texts(groupId).includes('hello?'), false);
  await world.stop();
});
