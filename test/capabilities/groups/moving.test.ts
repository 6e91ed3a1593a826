/** Groups of an agent that moves, with their logs or fetched from members. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { exportGroups, importGroups } from '../../../src/capabilities/groups/moving.ts';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { DelegationVerifier } from '../../../src/foundation/identity/delegation-verifier.ts';
import type { GroupsPart } from '../../../src/foundation/moving/agent-document.ts';
import { GroupEntryStore } from '../../../src/foundation/store/group-entries.ts';
import { GroupStore } from '../../../src/foundation/store/groups.ts';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { GroupParts } from '../../support/group-parts.ts';
import { type GroupNode, GroupWorld, groupOf } from '../../support/group-world.ts';
import { newIdentity, type TestIdentity } from '../../support/identities.ts';

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

/** Imports an agent at a node, in one transaction. */
async function arrive(to: GroupParts, agent: TestIdentity, part: GroupsPart): Promise<void> {
  const { groups, entries, store, writer } = to;
  const deps = { groups, entries, delegations: new DelegationVerifier(), admitted: writer.stored.bind(writer) };
  const write = await importGroups(deps, agent.aid, part, to.clock.now());
  store.transaction(write);
  to.agent(agent);
}

/** A group of Ann and Ben on one node, a copy of Ben on another one, and an entry of Ann after that. */
async function separated() {
  const [ann, ben] = [newIdentity(), newIdentity()];
  const [home, other] = [new GroupParts(), new GroupParts()];
  for (const agent of [ann, ben]) home.agent(agent);
  const { groupId } = home.writer.create(ann.aid, 'Group');
  home.writer.appendAny(ann.aid, groupId, { kind: 'invite', to: [ben.aid] });
  const row = home.replicas.add({
    ...{ aid: ben.aid, groupId, creator: ann.aid, title: '', secret: null, hints: [], state: 'joining' },
  });
  const replica = home.replicas.open(row);
  assert.ok(home.replicas.attachLocal(replica));
  home.writer.write(replica, home.replicas.requireLocal(ben.aid), { kind: 'join' });
  const exported = (aid: Aid): GroupsPart => exportGroups(tablesOf(home.store), aid).part;
  await arrive(other, ben, exported(ben.aid));
  const say = (parts: GroupParts, aid: Aid, text: string) =>
    parts.writer.append(aid, groupId, { kind: 'msg', body: Buffer.from(text) });
  say(other, ben.aid, 'of Ben');
  return { ann, ben, home, other, groupId, exported, say };
}

test('entries that only the arriving agent has are added to the log of the local members', async () => {
  const { ann, ben, home, other, groupId, exported, say } = await separated();
  const { entryId } = say(home, ann.aid, 'of Ann');
  home.writer.appendAny(ann.aid, groupId, { kind: 'rekey', body: new Uint8Array(32) });
  home.groups.markRead(home.replicas.row(ann.aid, groupId).rid, 5);
  other.events.length = 0;
  await arrive(other, ann, exported(ann.aid));
  const { lid, ...before } = other.replicas.row(ben.aid, groupId);
  assert.ok(other.entries.has(lid, entryId));
  assert.deepEqual([before.unread, before.maxSeq], [1, 6]);
  assert.ok(other.events.includes('group.unread'));
  const row = other.replicas.row(ann.aid, groupId);
  assert.deepEqual([row.lid, row.state, row.maxSeq, row.readSeq, row.unread], [lid, 'member', 6, 3, 1]);
  // The log of the local members was open before.
  assert.equal(say(other, ben.aid, 'next').seq, 7);
  assert.equal(say(other, ann.aid, 'last').seq, 8);
});

test('an agent that was removed arrives with its part of the log', async () => {
  const { ann, ben, home, other, groupId, exported, say } = await separated();
  await arrive(other, ann, exported(ann.aid));
  home.writer.append(ann.aid, groupId, { kind: 'remove', to: [ben.aid] });
  const third = new GroupParts();
  await arrive(third, ann, exported(ann.aid));
  say(third, ann.aid, 'without Ben');
  await arrive(third, ben, exported(ben.aid));
  const row = third.replicas.row(ben.aid, groupId);
  assert.deepEqual([row.state, row.maxSeq], ['removed', 4]);
  assert.equal(third.replicas.row(ann.aid, groupId).maxSeq, 6);
});

test('a document shows the log of local members only to an agent that may read it', async () => {
  const { other, groupId, exported, ann, ben } = await separated();
  const stranger = newIdentity();
  for (const state of ['member', 'removed', 'left'] as const) {
    const part = exported(ann.aid);
    const joined = part.joined.map((one) => ({ ...one, state, secret_hex: null }));
    await arrive(other, stranger, { joined, invitations: [] });
    const row = other.groups.find(stranger.aid, groupId);
    assert.deepEqual([row?.state, row?.maxSeq], state === 'member' ? ['joining', 0] : [undefined, undefined]);
    other.replicas.forget(stranger.aid);
  }
  assert.equal(other.replicas.row(ben.aid, groupId).maxSeq, 4);
});

test('an imported agent has the newest entries before the next regular sync', async () => {
  const world = new GroupWorld();
  const [a, b] = [await world.node(), await world.node()];
  const group = await groupOf(world, [a, b]);
  const { part } = exportGroups(tablesOf(b.store), b.aid);
  b.links.crash();
  await b.groups.stop();
  world.nodes.splice(world.nodes.indexOf(b), 1);
  a.say(group, 'late');
  // The push of the entry fails.
  await world.clock.run(10_000);
  const moved = await world.node(b.agent);
  const write = await importGroups(tablesOf(moved.store), b.aid, part, world.clock.now());
  moved.store.transaction(write);
  assert.deepEqual(moved.texts(group), []);
  moved.groups.imported(b.aid);
  await world.until('it has the entry', () => moved.texts(group).length === 1, 3000);
  await world.stop();
});

test('an import is refused if a control entry of the local log is damaged, and stores nothing', async () => {
  const { ann, ben, other, groupId, exported } = await separated();
  const { lid } = other.replicas.row(ben.aid, groupId);
  other.store.run`UPDATE group_entries SET bytes = ${new Uint8Array(9)} WHERE lid = ${lid} AND control_no = 1`;
  const before = other.entries.lastSeq(lid);
  const arriving = arrive(other, ann, exported(ann.aid));
  await assert.rejects(arriving, { code: 'store_corrupt', message: /an entry is damaged on disk/ });
  assert.deepEqual(other.groups.list(ann.aid), []);
  assert.equal(other.entries.lastSeq(lid), before);
});
