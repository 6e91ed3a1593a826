/** Dials to a node that restarted at another port. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SILENCE_MS } from '../../../src/network/links/link-initiator.ts';
import { NODE_DIAL_TIMEOUT_MS, UNHELPED } from '../../../src/network/peers/dial.ts';
import { LOOK_ELSEWHERE_MS } from '../../../src/network/peers/peer.ts';
import { type LinkNode, LinkWorld, settle, withCode } from '../../support/link-world.ts';
import { TestClock } from '../../support/test-clock.ts';

/** Makes a lookup return the endpoint of a node, as if it had published its new port. */
function relocateTo(from: LinkNode, node: LinkNode): Uint8Array[] {
  const asked: Uint8Array[] = [];
  from.pool.locateBy(async (nodeKey) => {
    asked.push(nodeKey);
    return { nodeKey, addresses: [node.endpoint.address], ...UNHELPED };
  });
  return asked;
}

test('a node that restarted at another port is dialed there while the dial to its old port is running', async () => {
  const clock = new TestClock();
  await using world = new LinkWorld(clock);
  const [a, previous] = [await world.node(), await world.node()];
  const [caller, called] = [a.host(), previous.host()];
  const location = previous.location(called);
  world.network.silence(previous.endpoint.address);
  const restarted = await world.node({ key: previous.key });
  restarted.host(called);
  const inbox = restarted.inbox();
  world.directory.set(called.aid, location);
  const asked = relocateTo(a, restarted);
  const opening = a.links.open(caller.aid, called.aid, 'tcp');
  await settle();
  await clock.run(LOOK_ELSEWHERE_MS);
  (await opening).destroy();
  assert.deepEqual([asked, inbox.length], [[previous.key.publicKey], 1]);
});

test('connections to the previous run of a node are closed as soon as the new run is found', async () => {
  const clock = new TestClock();
  await using world = new LinkWorld(clock);
  const [a, previous] = [await world.node(), await world.node()];
  const [caller, called] = [a.host(), previous.host()];
  previous.echo();
  const held = await a.links.open(caller.aid, called.aid, 'tcp');
  const location = previous.location(called);
  const first = a.pool.current(previous.key.publicKey);
  assert.ok(first !== null);
  Object.assign(first.connection, {
    stats: () => ({ bytesSent: clock.now(), bytesReceived: 1, packetsSent: 0, packetsLost: 0 }),
  });
  world.network.silence(previous.endpoint.address);
  const restarted = await world.node({ key: previous.key });
  restarted.host(called);
  const inbox = restarted.inbox();
  world.directory.set(called.aid, location);
  relocateTo(a, restarted);
  previous.authorize = () => new Promise(() => {});
  const opening = a.links.open(caller.aid, called.aid, 'tcp');
  await settle();
  await clock.run(SILENCE_MS);
  (await opening).destroy();
  assert.equal(inbox.length, 1);
  assert.ok(held.destroyed && first.closed, 'the previous run is not waited for');
});

test('a node that did not relocate is given up after the usual timeout', async () => {
  const clock = new TestClock();
  await using world = new LinkWorld(clock);
  const [a, b] = [await world.node(), await world.node()];
  const [caller, called] = [a.host(), b.host()];
  world.network.silence(b.endpoint.address);
  const asked = relocateTo(a, b);
  const opening = assert.rejects(a.links.open(caller.aid, called.aid, 'tcp'), withCode('connect_failed'));
  await settle();
  for (let ms = 0; ms < NODE_DIAL_TIMEOUT_MS; ms += LOOK_ELSEWHERE_MS) await clock.run(LOOK_ELSEWHERE_MS);
  await opening;
  await clock.run(10 * LOOK_ELSEWHERE_MS);
  assert.ok(
    asked.length > 0 && asked.length <= NODE_DIAL_TIMEOUT_MS / LOOK_ELSEWHERE_MS,
    'the lookups end with the dial',
  );
});
