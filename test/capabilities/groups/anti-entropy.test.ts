import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AntiEntropy } from '../../../src/capabilities/groups/anti-entropy.ts';
import { decodeEntry, signEntry } from '../../../src/capabilities/groups/entry.ts';
import type { GroupLinks } from '../../../src/capabilities/groups/group-links.ts';
import { Replica } from '../../../src/capabilities/groups/replica.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { GroupWorld } from '../../support/group-world.ts';
import { localIdentity, newIdentity, type TestIdentity } from '../../support/identities.ts';

async function spreadTo(members: readonly Aid[], isJoining = false) {
  const world = new GroupWorld();
  const ann = await world.node();
  const { groupId } = ann.groups.create(ann.aid);
  const row = ann.table.find(ann.aid, groupId);
  assert.ok(row !== null);
  const replica = new Replica(row, { groups: ann.table, entries: ann.entries });
  const reported: Aid[] = [];
  const compared: Aid[] = [];
  let open = (): void => {};
  const gate = new Promise<void>((resolve) => {
    open = resolve;
  });
  const silent = new Set<Aid>();
  const groups = {
    syncedRids: () => [replica.rid],
    byRid: () => ({ state: isJoining ? ('joining' as const) : ('member' as const) }),
  };
  const links: Pick<GroupLinks, 'push' | 'sync'> = {
    push: async (_, peer) => {
      reported.push(peer);
      if (silent.has(peer)) throw new SvcError('connect_failed');
      return true;
    },
    sync: async (_, peer) => {
      compared.push(peer);
      await gate;
    },
  };
  const spread = new AntiEntropy(
    { clock: world.clock, log: silentLog, random: () => world.links.random.next(), groups },
    { byRid: () => replica, peers: () => [...members] },
    links,
  );
  const tell = async (from: Aid | null): Promise<Aid[]> => {
    reported.length = 0;
    spread.broadcast(replica, entries(), from);
    await world.clock.run(0);
    return [...reported];
  };
  const entries = () => {
    const { entryId } = ann.say(groupId, 'x');
    return [decodeEntry(ann.entries.bytes(row.rid, entryId) ?? new Uint8Array(0))];
  };
  return { world, tell, silent, spread, replica, compared, open };
}

test('the author pushes to all members of a small group, receivers forward to none', async () => {
  const members = Array.from({ length: 5 }, () => newIdentity().aid);
  const { world, tell } = await spreadTo(members);
  assert.deepEqual(new Set(await tell(null)), new Set(members));
  assert.deepEqual(await tell(members[0] ?? null), []);
  await world.stop();
});

test('in a large group the author pushes to some members, and each receiver forwards to others', async () => {
  const members = Array.from({ length: 60 }, () => newIdentity().aid);
  const { world, tell } = await spreadTo(members);
  assert.equal(new Set(await tell(null)).size, 24);
  assert.equal(new Set(await tell(members[0] ?? null)).size, 6);
  await world.stop();
});

test('an unresponsive member is backed off', async () => {
  const members = Array.from({ length: 3 }, () => newIdentity().aid);
  const { world, tell, silent } = await spreadTo(members);
  const [away] = members;
  assert.ok(away !== undefined);
  silent.add(away);
  await tell(null);
  assert.equal((await tell(null)).includes(away), false);
  await world.clock.run(30_000);
  assert.equal((await tell(null)).includes(away), true);
  await world.stop();
});

test('a backed-off member that contacts this node is synced with immediately; an agent without a role is not', async () => {
  const members: Aid[] = [newIdentity().aid];
  const { world, tell, silent, spread, compared, replica, open } = await spreadTo(members);
  // Only the creator has a role.
  members.push(replica.aid);
  for (const peer of members) silent.add(peer);
  await tell(null);
  spread.scheduleSync(replica.rid);
  const seen = async (peer: Aid | undefined): Promise<Aid[]> => {
    compared.length = 0;
    if (peer !== undefined) spread.peerSeen(peer);
    await world.clock.run(0);
    return [...compared];
  };
  assert.deepEqual(await seen(members[0]), []);
  assert.deepEqual(await seen(replica.aid), [replica.aid]);
  open();
  await world.clock.run(0);
  assert.deepEqual(await seen(replica.aid), [], 'it is no longer backed off');
  await world.stop();
});

test('a new reader syncs with agents that joined recently, and not with earlier ones', async () => {
  const members = Array.from({ length: 60 }, () => newIdentity());
  const { world, spread, replica, compared, open } = await spreadTo(members.map(({ aid }) => aid).slice(0, 20));
  const [author, ...others] = members;
  assert.ok(author !== undefined);
  const content = replica.compose({ kind: 'join' }, world.clock.now() - 3600_000);
  const joins = (at: number, some: readonly TestIdentity[]) =>
    some.map((agent) => signEntry({ ...content, author: agent.aid, at }, localIdentity(agent)));
  spread.broadcast(replica, joins(world.clock.now() - 3600_000, others), author.aid);
  await world.clock.run(0);
  assert.deepEqual(compared, []);
  spread.broadcast(replica, joins(world.clock.now(), [author]), others[0]?.aid ?? null);
  await world.clock.run(0);
  assert.deepEqual(compared, [author.aid]);
  open();
  await world.stop();
});

test('a joining agent fetches the group from one member at a time', async () => {
  const members = Array.from({ length: 5 }, () => newIdentity().aid);
  const { world, spread, replica, compared, open } = await spreadTo(members, true);
  const [first] = members;
  assert.ok(first !== undefined);
  const both = Promise.all([spread.syncNow(replica, first), spread.syncNow(replica, first)]);
  spread.start();
  await world.clock.run(60_000);
  assert.deepEqual(compared, [first]);
  open();
  await both;
  await world.clock.run(60_000);
  assert.ok(compared.length > 1);
  spread.stop();
  await world.stop();
});
