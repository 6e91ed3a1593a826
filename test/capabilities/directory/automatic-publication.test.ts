import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DirectoryWorld } from '../../support/directory-world.ts';

const SECOND_MS = 1000;
const MINUTE_MS = 60_000;
const DAY_MS = 24 * 3600_000;

test('automatic publication covers the node, existing agents and new agents. When disabled it covers no new ones', async () => {
  const world = new DirectoryWorld({ autoPublish: true });
  const before = world.add();
  await world.directory.start();
  await world.clock.run(SECOND_MS);
  assert.equal(world.kept(before.aid).length, 1);
  assert.equal(world.kept(world.nodeAid).length, 1);
  const late = world.add();
  await world.directory.agentChanged({ aid: late.aid, kind: 'registered' });
  await world.clock.run(3 * SECOND_MS);
  assert.equal(world.kept(late.aid).length, 1);
  world.autoPublish = false;
  const quiet = world.add();
  await world.directory.agentChanged({ aid: quiet.aid, kind: 'registered' });
  await world.clock.run(DAY_MS);
  assert.equal(world.kept(quiet.aid).length, 0);
  assert.ok(world.kept(world.nodeAid).length >= 48, 'the node is always renewed');
  world.autoPublish = true;
  world.directory.applyAutoPublish();
  await world.clock.run(SECOND_MS);
  assert.equal(world.kept(quiet.aid).length, 1);
  await world.directory.stop();
  world.store.close();
});

test('a held agent is published only on request', async () => {
  const world = new DirectoryWorld({ autoPublish: true });
  const before = world.add();
  world.agents.setHeld(before.aid, true);
  await world.directory.start();
  const { aid } = world.add();
  world.agents.setHeld(aid, true);
  await world.directory.agentChanged({ aid, kind: 'registered' });
  await world.directory.agentChanged({ aid, kind: 'bound' });
  world.directory.applyAutoPublish();
  await world.clock.run(DAY_MS);
  assert.deepEqual([world.kept(before.aid).length, world.kept(aid).length], [0, 0]);
  await world.directory.publish(aid);
  await world.clock.run(DAY_MS);
  assert.ok(world.kept(aid).length >= 24, 'then it is renewed like any other agent');
  await world.directory.stop();
  world.store.close();
});

test('an agent that publishes itself immediately is not published twice', async () => {
  const world = new DirectoryWorld({ autoPublish: true });
  await world.directory.start();
  const { aid } = world.add();
  await world.directory.agentChanged({ aid, kind: 'registered' });
  await world.directory.publish(aid);
  await world.clock.run(MINUTE_MS);
  assert.equal(world.kept(aid).length, 1);
  await world.directory.stop();
  world.store.close();
});
