/** What nodes do that dial one which has started again at another port. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SILENCE_MS } from '../../../src/network/links/link-initiator.ts';
import { NODE_DIAL_TIMEOUT_MS, UNHELPED } from '../../../src/network/peers/dial.ts';
import { LOOK_ELSEWHERE_MS } from '../../../src/network/peers/peer.ts';
import { type LinkNode, LinkWorld, settle, withCode } from '../../support/link-world.ts';
import { TestClock } from '../../support/test-clock.ts';

/** Has a node say to the network where another one is, as it does once it runs at another port. */
function says(from: LinkNode, node: LinkNode): Uint8Array[] {
  const asked: Uint8Array[] = [];
  from.pool.locateBy(async (nodeKey) => {
    asked.push(nodeKey);
    return { nodeKey, addresses: [node.endpoint.address], ...UNHELPED };
  });
  return asked;
}

test('a node that is back at another port is called there, while it is still dialed at the one before', async () => {
  const clock = new TestClock();
  await using world = new LinkWorld(clock);
  const [a, before] = [await world.node(), await world.node()];
  const [caller, called] = [a.host(), before.host()];
  const location = before.location(called);
  world.network.silence(before.endpoint.address);
  const back = await world.node({ key: before.key });
  back.host(called);
  const inbox = back.inbox();
  world.directory.set(called.aid, location);
  const asked = says(a, back);
  const opening = a.links.open(caller.aid, called.aid, 'tcp');
  await settle();
  await clock.run(LOOK_ELSEWHERE_MS);
  (await opening).destroy();
  assert.deepEqual([asked, inbox.length], [[before.key.publicKey], 1]);
});

test('a connection to the life of a node before is left as soon as its new one is found', async () => {
  const clock = new TestClock();
  await using world = new LinkWorld(clock);
  const [a, before] = [await world.node(), await world.node()];
  const [caller, called] = [a.host(), before.host()];
  before.echo();
  const held = await a.links.open(caller.aid, called.aid, 'tcp');
  const location = before.location(called);
  const first = a.pool.current(before.key.publicKey);
  assert.ok(first !== null);
  Object.assign(first.connection, { stats: () => ({ bytesSent: clock.now(), bytesReceived: 1 }) });
  world.network.silence(before.endpoint.address);
  const back = await world.node({ key: before.key });
  back.host(called);
  const inbox = back.inbox();
  world.directory.set(called.aid, location);
  says(a, back);
  before.authorize = () => new Promise(() => {});
  const opening = a.links.open(caller.aid, called.aid, 'tcp');
  await settle();
  await clock.run(SILENCE_MS);
  (await opening).destroy();
  assert.equal(inbox.length, 1);
  assert.ok(held.destroyed && first.closed, 'nothing of its former life is waited for');
});

test('who is nowhere else is refused as soon as before', async () => {
  const clock = new TestClock();
  await using world = new LinkWorld(clock);
  const [a, b] = [await world.node(), await world.node()];
  const [caller, called] = [a.host(), b.host()];
  world.network.silence(b.endpoint.address);
  const asked = says(a, b);
  const opening = assert.rejects(a.links.open(caller.aid, called.aid, 'tcp'), withCode('connect_failed'));
  await settle();
  for (let ms = 0; ms < NODE_DIAL_TIMEOUT_MS; ms += LOOK_ELSEWHERE_MS) await clock.run(LOOK_ELSEWHERE_MS);
  await opening;
  await clock.run(10 * LOOK_ELSEWHERE_MS);
  assert.ok(asked.length > 0 && asked.length <= NODE_DIAL_TIMEOUT_MS / LOOK_ELSEWHERE_MS, 'and looked for no longer');
});
