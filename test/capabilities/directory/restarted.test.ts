/** Which records go out anew when a node has started again. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DirectoryWorld } from '../../support/directory-world.ts';

const MINUTE_MS = 60_000;

test('after a restart records go out anew where the node has moved, and where one may say something else', async () => {
  let world = new DirectoryWorld();
  await world.directory.start();
  const agent = world.add();
  const { aid } = agent;
  const restart = async (endpoint: string): Promise<number> => {
    await world.directory.stop();
    const { store, clock, network, node, addresses } = world;
    world = new DirectoryWorld({ store, clock, network, node });
    world.add(agent);
    await world.directory.start();
    // As a start does: what the node finds out about itself is news to it.
    world.addresses = addresses;
    world.moveTo(endpoint);
    await clock.run(MINUTE_MS);
    return world.kept(aid).length;
  };
  const [home, away] = ['quic://192.0.2.1:4122', 'quic://198.51.100.7:4122'];
  await world.directory.publish(aid);
  world.moveTo(home);
  await world.clock.run(MINUTE_MS);
  const before = world.kept(aid).length;
  assert.equal(await restart(home), before, 'it is where it was');
  assert.equal(await restart(away), before + 1);
  assert.equal(await restart(away), before + 1);
  // It goes home and is stopped before it knows that for sure: one record says so, and its end is not told.
  world.addresses = { ...world.addresses, endpoints: [home] };
  await world.directory.publish(aid);
  assert.equal(await restart(away), before + 3);
  await world.directory.stop();
  world.store.close();
});
