/** Which records go out anew when a node has started again. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { NodeAddresses } from '../../../src/network/reachability/own-addresses.ts';
import { DirectoryWorld } from '../../support/directory-world.ts';
import type { TestIdentity } from '../../support/identities.ts';

const SECOND_MS = 1000;
const MINUTE_MS = 60_000;
const [HOME, AWAY] = ['quic://192.0.2.1:4122', 'quic://198.51.100.7:4122'];

/** A node that was stopped, started anew with what it has kept. */
async function again(before: DirectoryWorld, agents: readonly TestIdentity[]): Promise<DirectoryWorld> {
  const { store, clock, network, node, addresses } = before;
  const world = new DirectoryWorld({ store, clock, network, node });
  for (const agent of agents) world.add(agent);
  world.addresses = addresses;
  await world.directory.start();
  return world;
}

test('after a restart records go out anew where the node has moved, and where one may say something else', async () => {
  let world = new DirectoryWorld();
  await world.directory.start();
  const [agent, other] = [world.add(), world.add()];
  const { aid } = agent;
  const restart = async (endpoint: string): Promise<number[]> => {
    await world.directory.stop();
    world = await again(world, [agent, other]);
    // As a start does: what the node finds out about itself is news to it.
    world.moveTo(endpoint);
    await world.clock.run(MINUTE_MS);
    return [world.kept(aid).length, world.kept(other.aid).length];
  };
  for (const one of [agent, other]) await world.directory.publish(one.aid);
  world.moveTo(HOME);
  await world.clock.run(MINUTE_MS);
  const first = world.kept(aid).length;
  const second = world.kept(other.aid).length;
  assert.deepEqual(await restart(HOME), [first, second], 'it is where it was');
  assert.deepEqual(await restart(AWAY), [first + 1, second + 1]);
  assert.deepEqual(await restart(AWAY), [first + 1, second + 1]);
  // It goes home and is stopped before it knows that for sure: one record says so, and its end is not told.
  world.addresses = { ...world.addresses, endpoints: [HOME] };
  await world.directory.publish(aid);
  assert.deepEqual(await restart(AWAY), [first + 3, second + 1], 'the other one says what is so');
  await world.directory.stop();
  world.store.close();
});

test('records that lead elsewhere go out anew though nothing new is found out of the node', async () => {
  let world = new DirectoryWorld();
  await world.directory.start();
  const agent = world.add();
  await world.directory.publish(agent.aid);
  await world.directory.stop();
  const start = async (change: Partial<NodeAddresses>): Promise<number> => {
    world.addresses = { ...world.addresses, ...change };
    world = await again(world, [agent]);
    await world.clock.run(10 * SECOND_MS);
    await world.directory.stop();
    return world.kept(agent.aid).length;
  };
  assert.equal(await start({}), 1);
  assert.equal(await start({ natType: 3 }), 1, 'what is said of the NAT is found out yet');
  assert.equal(await start({ endpoints: [AWAY] }), 2);
  assert.equal(await start({}), 2);
  world.store.close();
});

test('a node that has moved says so within a second where strangers reach it, its own record first', async () => {
  let world = new DirectoryWorld();
  await world.directory.start();
  const agent = world.add();
  for (const aid of [agent.aid, world.nodeAid]) await world.directory.publish(aid);
  await world.directory.stop();
  const start = async (endpoint: string, inRoutingTables: boolean): Promise<number[]> => {
    world.addresses = { ...world.addresses, endpoints: [endpoint] };
    world.network.become({ inRoutingTables });
    world = await again(world, [agent]);
    await world.clock.run(SECOND_MS);
    return [world.kept(world.nodeAid).length, world.kept(agent.aid).length];
  };
  assert.deepEqual(await start(AWAY, true), [2, 2]);
  assert.deepEqual(
    world.published.map(({ aid }) => aid),
    [world.nodeAid, agent.aid],
  );
  await world.directory.stop();
  assert.deepEqual(await start(HOME, false), [2, 2], 'it finds out yet how it is reached');
  world.network.become({ inRoutingTables: true });
  await world.clock.run(SECOND_MS);
  assert.deepEqual([world.kept(world.nodeAid).length, world.kept(agent.aid).length], [3, 3]);
  await world.directory.stop();
  world.store.close();
});

test('a node behind a router whose helpers are those of before has nothing new to say while its NAT is found out', async () => {
  let world = new DirectoryWorld();
  const [helper, other] = [1, 2].map((n) => ({ nodeKey: new Uint8Array(32).fill(n), address: '192.0.2.9:4122' }));
  assert.ok(helper && other);
  world.network.become({ inRoutingTables: false });
  world.addresses = { ...world.addresses, natType: 3, helpers: [helper] };
  await world.directory.start();
  const agent = world.add();
  await world.directory.publish(agent.aid);
  await world.directory.stop();
  world.addresses = { ...world.addresses, natType: 0, helpers: [] };
  world = await again(world, [agent]);
  const finds = async (change: Partial<NodeAddresses>, ms: number): Promise<number> => {
    world.addresses = { ...world.addresses, ...change };
    world.moveTo(HOME);
    await world.clock.run(ms);
    return world.kept(agent.aid).length;
  };
  assert.equal(await finds({ helpers: [helper] }, 6 * SECOND_MS), 1);
  assert.equal(await finds({ natType: 3 }, MINUTE_MS), 1);
  assert.equal(await finds({ helpers: [other] }, 2 * SECOND_MS), 2);
  assert.equal(await finds({ natType: 4 }, MINUTE_MS), 3, 'what else is new is said later');
  await world.directory.stop();
  world.store.close();
});

test('a node that starts before there is a network waits until it knows where it is', async () => {
  let world = new DirectoryWorld();
  await world.directory.start();
  const agent = world.add();
  await world.directory.publish(agent.aid);
  world.moveTo(HOME);
  await world.clock.run(MINUTE_MS);
  await world.directory.stop();
  const before = world.kept(agent.aid).length;
  world.addresses = { ...world.addresses, endpoints: ['quic://192.168.1.7:4122'] };
  world.network.become({ ready: false, peers: 0 });
  world = await again(world, [agent]);
  await world.clock.run(MINUTE_MS);
  world.network.become({ ready: true, peers: 20 });
  world.moveTo(HOME);
  await world.clock.run(MINUTE_MS);
  assert.equal(world.kept(agent.aid).length, before);
  await world.directory.stop();
  world.store.close();
});

test('a record that went out and was never acknowledged may be what the network has', async () => {
  let world = new DirectoryWorld();
  await world.directory.start();
  const agent = world.add();
  const { aid } = agent;
  await world.directory.publish(aid);
  const before = world.kept(aid).length;
  // It is killed between the nodes that keep the record and the note that they do.
  world.addresses = { ...world.addresses, endpoints: [AWAY] };
  world.network.afterPut = () => {
    throw new Error('killed');
  };
  await assert.rejects(world.directory.publish(aid));
  world.network.afterPut = () => {};
  assert.equal(world.kept(aid).length, before + 1);
  await world.directory.stop();
  // Nothing else is to bring it out again.
  world.publications.acknowledge(aid, []);
  world.store.run('UPDATE publications SET dirty = 0');
  world.publications.schedule(aid, { claim: false, state: 'active', dueAt: null, failures: 0 });
  world = await again(world, [agent]);
  world.moveTo(HOME);
  await world.clock.run(MINUTE_MS);
  assert.deepEqual(world.kept(aid).length, before + 2);
  await world.directory.stop();
  world.store.close();
});

test('what the network has forgotten goes out anew', async () => {
  let world = new DirectoryWorld();
  await world.directory.start();
  const [agent, other] = [world.add(), world.add()];
  for (const { aid } of [agent, other]) await world.directory.publish(aid);
  await world.directory.stop();
  const count = (): number[] => [agent, other].map(({ aid }) => world.kept(aid).length);
  world = await again(world, [agent, other]);
  await world.clock.run(MINUTE_MS);
  assert.deepEqual(count(), [1, 1]);
  await world.directory.stop();
  world.network.forget();
  world = await again(world, [agent, other]);
  await world.clock.run(MINUTE_MS);
  assert.deepEqual(count(), [2, 2]);
  // The same where it happens while the node goes on: it was without a network meanwhile.
  world.network.become({ ready: false, peers: 0 });
  await world.clock.run(SECOND_MS);
  world.network.forget();
  world.network.become({ ready: true, peers: 20 });
  await world.clock.run(MINUTE_MS);
  assert.deepEqual(count(), [3, 3]);
  await world.directory.stop();
  world.store.close();
});

test('a node that is alone does not take silence for loss', async () => {
  let world = new DirectoryWorld();
  await world.directory.start();
  const agent = world.add();
  await world.directory.publish(agent.aid);
  await world.directory.stop();
  world.network.forget();
  world.network.state = { ...world.network.state, ready: false, peers: 0 };
  world = await again(world, [agent]);
  await world.clock.run(MINUTE_MS);
  assert.equal(world.kept(agent.aid).length, 1);
  await world.directory.stop();
  world.store.close();
});

test('what became due while a node was stopped is renewed steadily, before it runs out', async () => {
  let world = new DirectoryWorld();
  await world.directory.start();
  const agents = Array.from({ length: 100 }, () => world.add());
  for (const { aid } of agents) await world.directory.publish(aid);
  await world.directory.stop();
  await world.clock.run(40 * MINUTE_MS);
  world = await again(world, agents);
  const renewed = (): number => agents.filter(({ aid }) => world.kept(aid).length > 1).length;
  await world.clock.run(10 * SECOND_MS);
  assert.ok(renewed() < 10, `${renewed()} in the first seconds`);
  await world.clock.run(5 * MINUTE_MS);
  assert.equal(renewed(), agents.length, 'a quarter of the twenty minutes that were left');
  await world.directory.stop();
  world.store.close();
});
