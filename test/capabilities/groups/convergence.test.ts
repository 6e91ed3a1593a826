import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type GroupNode, GroupWorld, groupOf } from '../../support/group-world.ts';
import { Random } from '../../support/random.ts';

/** Runs an operation and ignores whether the agent is allowed to do it. */
async function attempt(work: () => unknown): Promise<void> {
  try {
    await work();
  } catch (error) {
    assert.ok(error instanceof Error && 'code' in error && error.code !== 'internal', String(error));
  }
}

/** One random operation of a random agent. */
async function act(world: GroupWorld, random: Random, nodes: readonly GroupNode[], groupId: string): Promise<void> {
  const node = random.pick(nodes);
  const other = random.pick(nodes);
  const { groups, aid } = node;
  const dice = random.below(20);
  const admin = Buffer.from(random.chance(0.6) ? 'admin' : 'member');
  await attempt(async () => {
    if (dice < 10) node.say(groupId, `${dice} ${random.next()}`, { to: [other.aid] });
    else if (dice < 12) groups.append(aid, groupId, { kind: 'remove', to: [other.aid] });
    else if (dice < 14) {
      const invited = groups.invite(aid, groupId, other.aid);
      await world.during(invited);
    } else if (dice < 16) await world.during(groups.join(aid, { groupId, hints: [other.aid] }));
    else if (dice < 17) groups.append(aid, groupId, { kind: 'role', to: [other.aid], body: admin });
    else if (dice < 18) groups.append(aid, groupId, { kind: 'title', body: Buffer.from(`title ${random.next()}`) });
    else if (dice < 19) groups.leave(aid, groupId);
    else {
      const { maxSeq } = groups.head(aid, groupId);
      const { entries } = groups.read(aid, groupId, { afterSeq: Math.max(0, maxSeq - 10), limit: 10, kind: 'msg' });
      if (entries.length > 0) groups.retract(aid, groupId, random.pick(entries).entryId);
      groups.markRead(aid, groupId, random.below(maxSeq));
    }
  });
}

for (const seed of [1, 2, 3, 4, 5, 6, 7, 8]) {
  test(`replicas are equal after a partition with membership changes on both sides, crashes and packet loss (seed ${seed})`, async () => {
    const world = new GroupWorld(seed);
    const random = new Random(seed * 7919);
    let nodes: GroupNode[] = [];
    for (let i = 0; i < 5; i++) nodes.push(await world.node());
    const groupId = await groupOf(world, nodes);
    const [creator, second, third] = nodes;
    assert.ok(creator !== undefined && second !== undefined && third !== undefined);
    await world.until(
      'all are members',
      () => creator.groups.head(creator.aid, groupId).members.length === nodes.length,
    );
    creator.groups.append(creator.aid, groupId, { kind: 'role', to: [second.aid], body: Buffer.from('admin') });
    creator.groups.append(creator.aid, groupId, { kind: 'role', to: [third.aid], body: Buffer.from('admin') });
    await world.until(
      'all replicas are equal',
      () => new Set(nodes.map((node) => node.fingerprint(groupId))).size === 1,
    );
    for (let round = 0; round < 3; round++) {
      world.links.trouble = { refuse: 0.2, cut: 0.3, delayMs: 200 };
      for (const a of nodes)
        for (const b of nodes) if (a !== b && random.chance(0.4)) world.links.part(a.links, b.links);
      for (let i = 0; i < 12; i++) {
        await act(world, random, nodes, groupId);
        await world.clock.run(random.below(2000));
        if (random.chance(0.1)) {
          const crashed = random.pick(nodes);
          const back = await crashed.restart();
          nodes = nodes.map((node) => (node === crashed ? back : node));
        }
      }
      world.links.heal();
    }
    world.links.trouble = { refuse: 0, cut: 0, delayMs: 20 };
    const [first] = nodes;
    assert.ok(first !== undefined);
    const inside = (): GroupNode[] => {
      const members = new Set(first.groups.head(first.aid, groupId).members.map(({ aid }) => aid));
      return nodes.filter(({ aid }) => members.has(aid));
    };
    const areEqual = (): boolean => new Set(inside().map((node) => node.fingerprint(groupId))).size === 1;
    await world.until('members are equal', areEqual);
    const members = inside();
    const outside = nodes.filter((node) => !members.includes(node));
    for (const node of outside) await attempt(() => node.say(groupId, 'from outside'));
    for (const node of members) node.say(groupId, `from ${node.aid}`);
    await world.until('all entries are everywhere', () =>
      members.every((node) => members.every(({ aid }) => node.texts(groupId).includes(`from ${aid}`))),
    );
    await world.until('members are equal again', areEqual);
    assert.ok(members.every((node) => !node.texts(groupId).includes('from outside')));
    for (const node of nodes) {
      const { kept, counted } = node.counters(groupId);
      assert.deepEqual(kept, counted);
    }
    await world.stop();
  });
}
