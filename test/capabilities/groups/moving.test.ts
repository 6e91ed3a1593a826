/** Groups of an agent that moves, with their logs or fetched from members. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { exportGroups, importGroups } from '../../../src/capabilities/groups/moving.ts';
import { DelegationVerifier } from '../../../src/foundation/identity/delegation-verifier.ts';
import type { GroupsPart } from '../../../src/foundation/moving/agent-document.ts';
import { GroupEntryStore } from '../../../src/foundation/store/group-entries.ts';
import { GroupStore } from '../../../src/foundation/store/groups.ts';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { type GroupNode, GroupWorld, groupOf } from '../../support/group-world.ts';

function tablesOf(store: Store) {
  return { groups: new GroupStore(store), entries: new GroupEntryStore(store), delegations: new DelegationVerifier() };
}

/** Moves an agent to a new node without notifying anyone. `change` edits the exported groups. */
async function move(world: GroupWorld, from: GroupNode, change: (part: GroupsPart) => GroupsPart): Promise<GroupNode> {
  const { part } = exportGroups(tablesOf(from.store), from.aid);
  from.links.crash();
  await from.groups.stop();
  world.nodes.splice(world.nodes.indexOf(from), 1);
  const store = Store.open(':memory:', MIGRATIONS);
  (await importGroups(tablesOf(store), from.aid, change(part), world.clock.now()))();
  return world.node(from.agent, store);
}

test('a group continues on the new node, and other members receive its entries', async () => {
  const world = new GroupWorld();
  const [a, b] = [await world.node(), await world.node()];
  const group = await groupOf(world, [a, b]);
  a.say(group, 'one');
  b.say(group, 'two');
  await world.until('both have both entries', () => [a, b].every((node) => node.texts(group).length === 2));
  b.groups.markRead(b.aid, group, 3);
  const before = b.groups.head(b.aid, group);
  const moved = await move(world, b, (part) => part);
  const { lastActivityAt: _last, ...after } = moved.groups.head(b.aid, group);
  const { lastActivityAt: _before, ...expected } = before;
  assert.deepEqual(after, expected);
  assert.equal(moved.fingerprint(group), a.fingerprint(group));
  moved.say(group, 'three');
  a.say(group, 'four');
  await world.until('all have all entries', () => [a, moved].every((node) => node.texts(group).length === 4));
  await world.stop();
});

test('a group whose log did not fit into the document is fetched from its members', async () => {
  const world = new GroupWorld();
  const [a, b] = [await world.node(), await world.node()];
  const group = await groupOf(world, [a, b]);
  for (let i = 0; i < 5; i++) a.say(group, `${i}`);
  await world.until('both have all entries', () => b.texts(group).length === 5);
  const moved = await move(world, b, (part) => ({
    ...part,
    joined: part.joined.map((one) => ({ ...one, entries_base64: [], hints: [a.aid] })),
  }));
  assert.equal(moved.groups.head(b.aid, group).role, 'joining');
  await world.until('it is a member again', () => moved.groups.head(b.aid, group).role === 'member');
  assert.equal(moved.texts(group).length, 5);
  moved.say(group, 'back');
  await world.until('other members receive it', () => a.texts(group).includes('back'));
  await world.stop();
});

test('a group that the agent has left moves with its log', async () => {
  const world = new GroupWorld();
  const [a, b] = [await world.node(), await world.node()];
  const group = await groupOf(world, [a, b]);
  await world.until('a knows b', () => a.groups.head(a.aid, group).memberCount === 2);
  b.groups.leave(b.aid, group);
  const { part } = exportGroups(tablesOf(b.store), b.aid);
  const copies = async (kept: number): Promise<string[]> => {
    const tables = tablesOf(Store.open(':memory:', MIGRATIONS));
    const joined = part.joined.map((one) => ({ ...one, entries_base64: one.entries_base64.slice(0, kept) }));
    (await importGroups(tables, b.aid, { ...part, joined }, world.clock.now()))();
    return tables.groups.list(b.aid).map(({ state, maxSeq }) => `${state} ${maxSeq}`);
  };
  assert.deepEqual(await copies(99), ['left 3']);
  assert.deepEqual(await copies(1), ['left 1']);
  assert.deepEqual(await copies(0), []);
  await world.stop();
});
