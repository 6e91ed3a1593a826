/** Rooms of an agent that moves: with their logs, and fetched from their members where those had no room. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { exportRooms, importRooms } from '../../../src/capabilities/rooms/moving.ts';
import { DelegationVerifier } from '../../../src/foundation/identity/delegation-verifier.ts';
import type { RoomsPart } from '../../../src/foundation/moving/agent-document.ts';
import { RoomEntryStore } from '../../../src/foundation/store/room-entries.ts';
import { RoomStore } from '../../../src/foundation/store/rooms.ts';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { type RoomNode, RoomWorld, roomOf } from '../../support/room-world.ts';

function tablesOf(store: Store) {
  return { rooms: new RoomStore(store), entries: new RoomEntryStore(store), delegations: new DelegationVerifier() };
}

/** The agent of a node leaves it without a word and goes on at another one, with what `change` leaves of its rooms. */
async function move(world: RoomWorld, from: RoomNode, change: (part: RoomsPart) => RoomsPart): Promise<RoomNode> {
  const { part } = exportRooms(tablesOf(from.store), from.aid);
  from.links.crash();
  await from.rooms.stop();
  world.nodes.splice(world.nodes.indexOf(from), 1);
  const store = Store.open(':memory:', MIGRATIONS);
  (await importRooms(tablesOf(store), from.aid, change(part), world.clock.now()))();
  return world.node(from.agent, store);
}

test('a room goes on where its agent went, and others hear what it says there', async () => {
  const world = new RoomWorld();
  const [a, b] = [await world.node(), await world.node()];
  const group = await roomOf(world, [a, b]);
  a.say(group, 'one');
  b.say(group, 'two');
  await world.until('both have both', () => [a, b].every((node) => node.texts(group).length === 2));
  b.rooms.markRead(b.aid, group, 3);
  const before = b.rooms.head(b.aid, group);
  const moved = await move(world, b, (part) => part);
  const { lastActivityAt: _last, ...after } = moved.rooms.head(b.aid, group);
  const { lastActivityAt: _before, ...expected } = before;
  assert.deepEqual(after, expected);
  assert.equal(moved.fingerprint(group), a.fingerprint(group));
  moved.say(group, 'three');
  a.say(group, 'four');
  await world.until('all have all', () => [a, moved].every((node) => node.texts(group).length === 4));
  await world.stop();
});

test('a room whose log had no room in the document is fetched from its members', async () => {
  const world = new RoomWorld();
  const [a, b] = [await world.node(), await world.node()];
  const group = await roomOf(world, [a, b]);
  for (let i = 0; i < 5; i++) a.say(group, `${i}`);
  await world.until('both have all', () => b.texts(group).length === 5);
  const moved = await move(world, b, (part) => ({
    ...part,
    joined: part.joined.map((one) => ({ ...one, entries_base64: [], hints: [a.aid] })),
  }));
  assert.equal(moved.rooms.head(b.aid, group).role, 'joining');
  await world.until('it is a member again', () => moved.rooms.head(b.aid, group).role === 'member');
  assert.equal(moved.texts(group).length, 5);
  moved.say(group, 'back');
  await world.until('the others hear it', () => a.texts(group).includes('back'));
  await world.stop();
});

test('of a room that the agent has left, its log is what there is to keep', async () => {
  const world = new RoomWorld();
  const [a, b] = [await world.node(), await world.node()];
  const group = await roomOf(world, [a, b]);
  await world.until('a knows b', () => a.rooms.head(a.aid, group).memberCount === 2);
  b.rooms.leave(b.aid, group);
  const { part } = exportRooms(tablesOf(b.store), b.aid);
  const copies = async (kept: number): Promise<string[]> => {
    const tables = tablesOf(Store.open(':memory:', MIGRATIONS));
    const joined = part.joined.map((one) => ({ ...one, entries_base64: one.entries_base64.slice(0, kept) }));
    (await importRooms(tables, b.aid, { ...part, joined }, world.clock.now()))();
    return tables.rooms.list(b.aid).map(({ state, maxSeq }) => `${state} ${maxSeq}`);
  };
  assert.deepEqual(await copies(99), ['left 3']);
  assert.deepEqual(await copies(1), ['left 1']);
  assert.deepEqual(await copies(0), []);
  await world.stop();
});
