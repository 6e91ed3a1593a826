/** Which records are published again after a restart of the node. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RECORD } from '../../../src/foundation/records/types.ts';
import type { NodeAddresses } from '../../../src/network/reachability/own-addresses.ts';
import { DirectoryWorld } from '../../support/directory-world.ts';
import type { TestIdentity } from '../../support/identities.ts';

const SECOND_MS = 1000;
const MINUTE_MS = 60_000;
const [HOME, AWAY] = ['quic://192.0.2.1:4122', 'quic://198.51.100.7:4122'];

/** Restarts a stopped node with its stored state. */
async function restarted(before: DirectoryWorld, agents: readonly TestIdentity[]): Promise<DirectoryWorld> {
  const { store, clock, network, node, addresses } = before;
  const world = new DirectoryWorld({ store, clock, network, node });
  for (const agent of agents) world.add(agent);
  world.addresses = addresses;
  await world.directory.start();
  return world;
}

test('after a restart, records are published if the node has moved or an earlier record may differ', async () => {
  let world = new DirectoryWorld();
  await world.directory.start();
  const [agent, other] = [world.add(), world.add()];
  const { aid } = agent;
  const restart = async (endpoint: string): Promise<number[]> => {
    await world.directory.stop();
    world = await restarted(world, [agent, other]);
    // After a start, the node reports its detected addresses as a change.
    world.moveTo(endpoint);
    await world.clock.run(MINUTE_MS);
    return [world.kept(aid).length, world.kept(other.aid).length];
  };
  for (const one of [agent, other]) await world.directory.publish(one.aid);
  world.moveTo(HOME);
  await world.clock.run(MINUTE_MS);
  const first = world.kept(aid).length;
  const second = world.kept(other.aid).length;
  assert.deepEqual(await restart(HOME), [first, second], 'the node has not moved');
  assert.deepEqual(await restart(AWAY), [first + 1, second + 1]);
  assert.deepEqual(await restart(AWAY), [first + 1, second + 1]);
  // The node moves back and is stopped early: one record has the new endpoint, and its result is unknown.
  world.addresses = { ...world.addresses, endpoints: [HOME] };
  await world.directory.publish(aid);
  assert.deepEqual(await restart(AWAY), [first + 3, second + 1], 'the other record is already correct');
  await world.directory.stop();
  world.store.close();
});

test('records with an old endpoint are published again even without a change of the reachability', async () => {
  let world = new DirectoryWorld();
  await world.directory.start();
  const agent = world.add();
  await world.directory.publish(agent.aid);
  await world.directory.stop();
  const start = async (change: Partial<NodeAddresses>): Promise<number> => {
    world.addresses = { ...world.addresses, ...change };
    world = await restarted(world, [agent]);
    await world.clock.run(10 * SECOND_MS);
    await world.directory.stop();
    return world.kept(agent.aid).length;
  };
  assert.equal(await start({}), 1);
  assert.equal(await start({ natType: 3 }), 1, 'the NAT type is not known yet');
  assert.equal(await start({ endpoints: [AWAY] }), 2);
  assert.equal(await start({}), 2);
  world.store.close();
});

test('if strangers can reach a moved node, it publishes within a second, its own record first', async () => {
  let world = new DirectoryWorld();
  await world.directory.start();
  const agent = world.add();
  for (const aid of [agent.aid, world.nodeAid]) await world.directory.publish(aid);
  await world.directory.stop();
  const start = async (endpoint: string, inRoutingTables: boolean): Promise<number[]> => {
    world.addresses = { ...world.addresses, endpoints: [endpoint] };
    world.network.become({ inRoutingTables });
    world = await restarted(world, [agent]);
    await world.clock.run(SECOND_MS);
    return [world.kept(world.nodeAid).length, world.kept(agent.aid).length];
  };
  assert.deepEqual(await start(AWAY, true), [2, 2]);
  assert.deepEqual(
    world.published.map(({ aid }) => aid),
    [world.nodeAid, agent.aid],
  );
  await world.directory.stop();
  assert.deepEqual(await start(HOME, false), [2, 2], 'the node does not know yet how it can be reached');
  world.network.become({ inRoutingTables: true });
  await world.clock.run(SECOND_MS);
  assert.deepEqual([world.kept(world.nodeAid).length, world.kept(agent.aid).length], [3, 3]);
  await world.directory.stop();
  world.store.close();
});

test('a node behind a router publishes nothing while its NAT type is detected, if its helpers are unchanged', async () => {
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
  world = await restarted(world, [agent]);
  const detects = async (change: Partial<NodeAddresses>, ms: number): Promise<number> => {
    world.addresses = { ...world.addresses, ...change };
    world.moveTo(HOME);
    await world.clock.run(ms);
    return world.kept(agent.aid).length;
  };
  assert.equal(await detects({ helpers: [helper] }, 6 * SECOND_MS), 1);
  assert.equal(await detects({ natType: 3 }, MINUTE_MS), 1);
  assert.equal(await detects({ helpers: [other] }, 2 * SECOND_MS), 2);
  assert.equal(await detects({ natType: 4 }, MINUTE_MS), 3, 'other changes are published later');
  await world.directory.stop();
  world.store.close();
});

test('a node that starts without a network waits until it knows its endpoint', async () => {
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
  world = await restarted(world, [agent]);
  await world.clock.run(MINUTE_MS);
  world.network.become({ ready: true, peers: 20 });
  world.moveTo(HOME);
  await world.clock.run(MINUTE_MS);
  assert.equal(world.kept(agent.aid).length, before);
  await world.directory.stop();
  world.store.close();
});

test('a record that was sent and never acknowledged may be stored in the network', async () => {
  let world = new DirectoryWorld();
  await world.directory.start();
  const agent = world.add();
  const { aid } = agent;
  await world.directory.publish(aid);
  const before = world.kept(aid).length;
  // The node is killed after the record was stored and before the acknowledgment was saved.
  world.addresses = { ...world.addresses, endpoints: [AWAY] };
  world.network.afterPut = () => {
    throw new Error('killed');
  };
  await assert.rejects(world.directory.publish(aid));
  world.network.afterPut = () => {};
  assert.equal(world.kept(aid).length, before + 1);
  await world.directory.stop();
  // No other reason to publish it is left.
  world.publications.acknowledge(aid, []);
  world.store.run('UPDATE publications SET dirty = 0');
  world.publications.schedule(aid, { claim: false, state: 'active', dueAt: null, failures: 0 });
  world = await restarted(world, [agent]);
  world.moveTo(HOME);
  await world.clock.run(MINUTE_MS);
  assert.deepEqual(world.kept(aid).length, before + 2);
  await world.directory.stop();
  world.store.close();
});

test('records that the network has lost are published again', async () => {
  let world = new DirectoryWorld();
  await world.directory.start();
  const [agent, other] = [world.add(), world.add()];
  for (const { aid } of [agent, other]) await world.directory.publish(aid);
  await world.directory.stop();
  const count = (): number[] => [agent, other].map(({ aid }) => world.kept(aid).length);
  world = await restarted(world, [agent, other]);
  await world.clock.run(MINUTE_MS);
  assert.deepEqual(count(), [1, 1]);
  await world.directory.stop();
  world.network.forget();
  world = await restarted(world, [agent, other]);
  await world.clock.run(MINUTE_MS);
  assert.deepEqual(count(), [2, 2]);
  // The same in a running node that had no network for a while.
  world.network.become({ ready: false, peers: 0 });
  await world.clock.run(SECOND_MS);
  world.network.forget();
  world.network.become({ ready: true, peers: 20 });
  await world.clock.run(MINUTE_MS);
  assert.deepEqual(count(), [3, 3]);
  await world.directory.stop();
  world.store.close();
});

test('records are published again if less than half of the nodes still have them', async () => {
  let world = new DirectoryWorld();
  await world.directory.start();
  const agent = world.add();
  await world.directory.publish(agent.aid);
  for (const [part, kept] of [
    [0.5, 1],
    [0.45, 2],
  ] as const) {
    await world.directory.stop();
    world.network.holdingPart = part;
    world = await restarted(world, [agent]);
    await world.clock.run(MINUTE_MS);
    assert.equal(world.kept(agent.aid).length, kept);
  }
  await world.directory.stop();
  world.store.close();
});

test('records are published again if the network has lost only the newest one of them', async () => {
  let world = new DirectoryWorld();
  await world.directory.start();
  const [agent, other] = [world.add(), world.add()];
  const offer = { services: ['weather'], name: 'w', protocols: [], tags: [], brief: '', meta: {}, ttl: 3600 };
  for (const { aid } of [agent, other]) {
    await world.directory.publish(aid);
    await world.clock.run(SECOND_MS);
    await world.directory.registerServices(aid, offer);
    await world.clock.run(SECOND_MS);
  }
  await world.directory.stop();
  // A power cut of the nodes that store it. The service of another agent has the same key.
  world.network.forget(({ aid, type }) => aid === other.aid && type === RECORD.service);
  const counts = (): number[] => [agent, other].map(({ aid }) => world.kept(aid, RECORD.service).length);
  assert.deepEqual(counts(), [1, 1]);
  world = await restarted(world, [agent, other]);
  await world.clock.run(SECOND_MS);
  // They do not hide the lost record.
  for (const { aid } of Array.from({ length: 10 }, () => world.add())) await world.directory.publish(aid);
  await world.clock.run(MINUTE_MS);
  assert.deepEqual(counts(), [2, 2]);
  await world.directory.stop();
  world.store.close();
});

test('records are published again if the network has only earlier versions of them', async () => {
  let world = new DirectoryWorld();
  await world.directory.start();
  const agent = world.add();
  await world.directory.publish(agent.aid);
  await world.clock.run(SECOND_MS);
  const restore = world.network.save();
  await world.directory.publish(agent.aid);
  await world.directory.stop();
  world = await restarted(world, [agent]);
  await world.clock.run(MINUTE_MS);
  assert.equal(world.kept(agent.aid).length, 2);
  await world.directory.stop();
  // A power cut of all nodes undoes the last seconds of their databases.
  restore();
  world = await restarted(world, [agent]);
  await world.clock.run(MINUTE_MS);
  assert.equal(world.kept(agent.aid).length, 3);
  await world.directory.stop();
  world.store.close();
});

test('a node without peers does not treat missing answers as lost records', async () => {
  let world = new DirectoryWorld();
  await world.directory.start();
  const agent = world.add();
  await world.directory.publish(agent.aid);
  await world.directory.stop();
  world.network.forget();
  world.network.state = { ...world.network.state, ready: false, peers: 0 };
  world = await restarted(world, [agent]);
  await world.clock.run(MINUTE_MS);
  assert.equal(world.kept(agent.aid).length, 1);
  await world.directory.stop();
  world.store.close();
});

test('records that became due while the node was stopped are renewed at a steady rate, before they expire', async () => {
  let world = new DirectoryWorld();
  await world.directory.start();
  const agents = Array.from({ length: 100 }, () => world.add());
  for (const { aid } of agents) await world.directory.publish(aid);
  await world.directory.stop();
  await world.clock.run(40 * MINUTE_MS);
  world = await restarted(world, agents);
  const renewed = (): number => agents.filter(({ aid }) => world.kept(aid).length > 1).length;
  await world.clock.run(10 * SECOND_MS);
  assert.ok(renewed() < 10, `${renewed()} in the first seconds`);
  await world.clock.run(5 * MINUTE_MS);
  assert.equal(renewed(), agents.length, 'a quarter of the remaining twenty minutes');
  await world.directory.stop();
  world.store.close();
});
