/** How nodes recover from dead paths, over the in-memory network. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SLEEP_MS } from '../../../src/foundation/stall.ts';
import type { LinkStream } from '../../../src/network/links/types.ts';
import { UNHELPED } from '../../../src/network/peers/dial.ts';
import { LOOK_MS, UNANSWERED_MS } from '../../../src/network/peers/path-health.ts';
import { DOUBT_MS } from '../../../src/network/peers/peer-table.ts';
import { type LinkNode, LinkWorld, settle } from '../../support/link-world.ts';
import { TestClock } from '../../support/test-clock.ts';

const never = new AbortController().signal;
/** Milliseconds until a connection that sends data but receives none counts as dead. */
const NOTICED_MS = UNANSWERED_MS + 4 * LOOK_MS;

/** Sends data before each check of the path. */
async function writeFor(clock: TestClock, link: LinkStream, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += LOOK_MS) {
    if (!link.destroyed) link.write('x');
    await clock.run(LOOK_MS);
    await settle();
  }
}

/** Two nodes and a link from the first to the second, which never answers on it. */
async function linked(world: LinkWorld): Promise<[LinkNode, LinkNode, LinkStream]> {
  const [a, b] = [await world.node(), await world.node()];
  const [caller, called] = [a.host(), b.host()];
  b.inbox();
  return [a, b, await a.links.open(caller.aid, called.aid, 'tcp')];
}

test('a dead connection is closed and replaced by one that answers', async () => {
  const clock = new TestClock();
  await using world = new LinkWorld(clock);
  const [a, b, link] = await linked(world);
  const first = a.pool.current(b.key.publicKey);
  assert.ok(first !== null);
  Object.assign(first.connection, {
    stats: () => ({ bytesSent: clock.now(), bytesReceived: 1, packetsSent: 0, packetsLost: 0 }),
  });
  await writeFor(clock, link, NOTICED_MS);
  assert.equal(link.destroyed, true, 'the open link fails');
  const second = a.pool.current(b.key.publicKey);
  assert.ok(second !== null && second !== first && first.closed);
  assert.equal(a.pool.stats().connections, 1);
  await settle();
  assert.equal(b.pool.stats().connections, 1);
});

test('the called node dials the caller if the path is dead, at the endpoint that the caller published', async () => {
  const clock = new TestClock();
  await using world = new LinkWorld(clock);
  const [a, b] = [await world.node(), await world.node()];
  const [caller, called] = [a.host(), b.host()];
  const inbox = b.inbox();
  await a.links.open(caller.aid, called.aid, 'tcp');
  await settle();
  const [link] = inbox;
  assert.ok(link);
  const asked: Uint8Array[] = [];
  b.pool.locateBy(async (nodeKey) => {
    asked.push(nodeKey);
    return { nodeKey, addresses: [a.endpoint.address], ...UNHELPED };
  });
  const first = b.pool.current(a.key.publicKey);
  assert.ok(first !== null && !first.connection.outbound);
  Object.assign(first.connection, {
    stats: () => ({ bytesSent: clock.now(), bytesReceived: 1, packetsSent: 0, packetsLost: 0 }),
  });
  await writeFor(clock, link, NOTICED_MS);
  const second = b.pool.current(a.key.publicKey);
  assert.ok(second !== null && second !== first && first.closed);
  assert.deepEqual([second.connection.outbound, asked], [true, [a.key.publicKey]]);
});

test('if no other connection is possible, open links may survive the interruption', async () => {
  const clock = new TestClock();
  await using world = new LinkWorld(clock);
  const [, b, link] = await linked(world);
  world.network.silence(b.endpoint.address);
  await writeFor(clock, link, 4 * NOTICED_MS);
  assert.equal(link.destroyed, false);
});

test('a kept connection without streams closes if the node is unreachable', async () => {
  const clock = new TestClock();
  await using world = new LinkWorld(clock);
  const [a, b] = [await world.node(), await world.node()];
  const { publicKey: nodeKey } = b.key;
  const session = await a.pool.connect({ nodeKey, addresses: [b.endpoint.address], ...UNHELPED }, never);
  a.pool.keep(nodeKey);
  world.network.silence(b.endpoint.address);
  Object.assign(session.connection, {
    stats: () => ({ bytesSent: clock.now(), bytesReceived: 1, packetsSent: 0, packetsLost: 0 }),
  });
  await clock.run(NOTICED_MS);
  assert.equal(session.closed, false, 'the node is being dialed');
  await clock.run(10_000);
  assert.equal(session.closed, true);
});

test('after a network change, idle connections that do not answer close, and others stay open', async () => {
  const clock = new TestClock();
  await using world = new LinkWorld(clock);
  const [a, b, c] = [await world.node(), await world.node(), await world.node()];
  for (const { key, endpoint } of [b, c])
    await a.pool.connect({ nodeKey: key.publicKey, addresses: [endpoint.address], ...UNHELPED }, never);
  const [toB, toC] = [a.pool.current(b.key.publicKey), a.pool.current(c.key.publicKey)];
  assert.ok(toB !== null && toC !== null);
  Object.assign(toB.connection, { stats: () => ({ bytesSent: 1, bytesReceived: 1, packetsSent: 0, packetsLost: 0 }) });
  a.pool.onNetwork();
  await clock.run(NOTICED_MS);
  assert.deepEqual([toB.closed, toC.closed], [true, false]);
});

/** Counts the streams that a session opens, that is, its probes. */
function countProbes(node: LinkNode, to: LinkNode): () => number {
  const session = node.pool.current(to.key.publicKey);
  assert.ok(session !== null);
  let probes = 0;
  const { connection } = session;
  const openStream = connection.openStream.bind(connection);
  Object.assign(connection, {
    openStream: () => {
      probes++;
      return openStream();
    },
  });
  return () => probes;
}

test('after a sleep every peer is probed, in use or not', async () => {
  const clock = new TestClock();
  await using world = new LinkWorld(clock);
  const [a, b] = await linked(world);
  const c = await world.node();
  await a.pool.connect({ nodeKey: c.key.publicKey, addresses: [c.endpoint.address], ...UNHELPED }, never);
  const asked = [countProbes(a, b), countProbes(a, c)];
  await clock.run(10 * LOOK_MS);
  assert.deepEqual(
    asked.map((count) => count()),
    [0, 0],
  );
  clock.jump(2 * SLEEP_MS);
  await clock.run(0);
  assert.deepEqual(
    asked.map((count) => count()),
    [1, 1],
  );
});

test('if one path is dead, the other peers in use are probed immediately, but at a limited rate', async () => {
  const clock = new TestClock();
  await using world = new LinkWorld(clock);
  const [a, b, link] = await linked(world);
  const [c, d] = [await world.node(), await world.node()];
  for (const { key, endpoint } of [c, d])
    await a.pool.connect({ nodeKey: key.publicKey, addresses: [endpoint.address], ...UNHELPED }, never);
  a.pool.keep(c.key.publicKey);
  const [kept, idle] = [countProbes(a, c), countProbes(a, d)];
  const dead = a.pool.current(b.key.publicKey);
  assert.ok(dead !== null);
  Object.assign(dead.connection, {
    stats: () => ({ bytesSent: clock.now(), bytesReceived: 1, packetsSent: 0, packetsLost: 0 }),
  });
  world.network.silence(b.endpoint.address);
  await writeFor(clock, link, DOUBT_MS);
  assert.deepEqual([kept(), idle()], [1, 0]);
  await writeFor(clock, link, DOUBT_MS);
  assert.equal(kept(), 2);
});

test('streams move from a path that is withdrawn, connections over it close, and other paths stay', async () => {
  await using world = new LinkWorld();
  const [a, b, link] = await linked(world);
  const first = a.pool.current(b.key.publicKey);
  assert.ok(first !== null);
  assert.equal(a.pool.usesWithdrawable, false);
  await a.pool.onPathsWithdrawn(true);
  assert.equal(first.closed, false, 'its path is not withdrawn');
  Object.assign(first.connection, { path: { ...first.connection.path, mayBeWithdrawn: true } });
  assert.equal(a.pool.usesWithdrawable, true);
  await a.pool.onPathsWithdrawn(false);
  const second = a.pool.current(b.key.publicKey);
  assert.ok(second !== null && second !== first, 'new streams use another path');
  assert.deepEqual([first.draining, first.closed, link.destroyed], [true, false, false]);
  await a.pool.onPathsWithdrawn(true);
  await settle();
  assert.deepEqual([first.closed, link.destroyed], [true, true]);
  assert.equal(a.pool.current(b.key.publicKey), second);
});
