import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MAX_MET_PAIRS, MET_MS, MetAgents } from '../../../src/network/links/proven.ts';
import { testAid, testKeys } from '../../support/agents.ts';
import { LinkWorld } from '../../support/link-world.ts';
import { TestClock } from '../../support/test-clock.ts';

const NODE = testKeys(1).publicKey;

test('pairs are stored for a while and up to a limit, the most recent ones longest', () => {
  const clock = new TestClock();
  const met = new MetAgents({ clock });
  const [local, remote] = [testAid(2), testAid(3)];
  met.note(NODE, { local, remote });
  met.note(NODE, { local, remote });
  assert.deepEqual(met.with(NODE), [{ local, remote }]);
  assert.deepEqual(met.with(testKeys(4).publicKey), []);
  for (let i = 0; i < MAX_MET_PAIRS; i++) met.note(NODE, { local, remote: testAid(10 + i) });
  assert.equal(met.with(NODE).length, MAX_MET_PAIRS);
  assert.ok(met.with(NODE).every((pair) => pair.remote !== remote));
  clock.advance(MET_MS);
  assert.deepEqual(met.with(NODE), []);
});

test('both sides of an open link know its pair of agents, and a refused link leaves none', async () => {
  await using world = new LinkWorld();
  const [a, b] = [await world.node(), await world.node()];
  const [alice, bob, carol] = [a.host().aid, b.host().aid, b.host().aid];
  b.echo();
  b.authorize = ({ called }) => {
    if (called === carol) throw new Error('refused');
  };
  await a.links.open(alice, bob, 'tcp');
  await assert.rejects(a.links.open(alice, carol, 'tcp'));
  assert.deepEqual(a.links.pairsWith(b.key.publicKey), [{ local: alice, remote: bob }]);
  assert.deepEqual(b.links.pairsWith(a.key.publicKey), [{ local: bob, remote: alice }]);
});
