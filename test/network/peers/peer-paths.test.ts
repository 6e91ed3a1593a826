import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PathKind } from '../../../src/foundation/domain/tunnels.ts';
import { type Dialer, type NodePlace, UNHELPED } from '../../../src/network/peers/dial.ts';
import { HELLO_TIMEOUT_MS } from '../../../src/network/peers/greeter.ts';
import type { PathChange } from '../../../src/network/peers/peer.ts';
import { IDLE_MS, SPARE_IDLE_MS } from '../../../src/network/peers/peer.ts';
import type { Connection } from '../../../src/network/transport/types.ts';
import { type LinkNode, LinkWorld, settle, withCode } from '../../support/link-world.ts';
import { TestClock } from '../../support/test-clock.ts';

const never = new AbortController().signal;

/** A place without an address: a node that only another way leads to. */
function nowhere(node: LinkNode): NodePlace {
  return { nodeKey: node.key.publicKey, addresses: [], ...UNHELPED };
}

function placeOf(node: LinkNode): NodePlace {
  return { ...nowhere(node), addresses: [node.endpoint.address] };
}

/** A way of a kind from one node to another, whatever the place says. */
function wayTo(from: LinkNode, to: LinkNode, kind: PathKind): Dialer {
  return {
    kind,
    delayMs: () => 100,
    timeoutMs: 2000,
    mayLead: () => true,
    dial: (place, signal) => from.endpoint.dial(to.endpoint.address, place.nodeKey, { signal, way: { kind } }),
  };
}

/** Two nodes, the first of which has a relay to the second. */
async function relayed(world: LinkWorld, disabled: () => boolean = () => false) {
  const [a, b] = [await world.node({ relayDisabled: disabled }), await world.node()];
  a.pool.addDialer(wayTo(a, b, 'relay'));
  return [a, b] as const;
}

test('a way that was added leads where no address does, and the path says so on both sides', async () => {
  await using world = new LinkWorld();
  const [a, b] = await relayed(world);
  const session = await a.pool.connect(nowhere(b), never);
  assert.equal(session.connection.path.kind, 'relay');
  await settle();
  assert.equal(b.pool.connections()[0]?.path.kind, 'relay');
});

test('who may use no relay gets none, though one stands and though others wait for one', async () => {
  await using world = new LinkWorld();
  const [a, b] = await relayed(world);
  const mixed = [true, false, true].map((relays) => a.pool.connect(nowhere(b), never, { relays }));
  const outcomes = await Promise.allSettled(mixed);
  assert.deepEqual(
    outcomes.map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled'],
  );
  await assert.rejects(a.pool.connect(nowhere(b), never, { relays: false }), withCode('relay_required'));
  assert.equal(a.pool.current(b.key.publicKey, false), null);
  const direct = await a.pool.connect(placeOf(b), never, { relays: false });
  assert.equal(direct.connection.path.kind, 'lan');
  assert.equal(await a.pool.connect(nowhere(b), never), direct, 'from then on it serves everybody');
});

test('connections that a relay carries are closed when relays are disabled, and no others', async () => {
  await using world = new LinkWorld();
  const [a, b] = await relayed(world);
  const other = await world.node();
  const [carried, direct] = [await a.pool.connect(nowhere(b), never), await a.pool.connect(placeOf(other), never)];
  await settle();
  b.pool.closeRelayed();
  await carried.connection.closed;
  a.pool.closeRelayed();
  assert.equal(direct.closed, false);
});

test('with relays switched off none is dialed, used or let in, at once', async () => {
  await using world = new LinkWorld();
  let disabled = false;
  const [a, b] = await relayed(world, () => disabled);
  const session = await a.pool.connect(nowhere(b), never);
  disabled = true;
  assert.equal(a.pool.current(b.key.publicKey), null);
  await assert.rejects(a.pool.connect(nowhere(b), never), withCode('relay_required'));
  assert.equal(session.closed, false, 'what stands may go on');
  const inbound = await b.endpoint.dial(a.endpoint.address, a.key.publicKey, { way: { kind: 'turn' } });
  await inbound.closed;
  disabled = false;
  assert.equal(await a.pool.connect(nowhere(b), never), session);
});

test('a better connection takes the new streams on both sides, the other one ends when it is empty', async () => {
  const clock = new TestClock();
  await using world = new LinkWorld(clock);
  const [a, b] = await relayed(world);
  const [x, y] = [a.host(), b.host()];
  b.echo();
  world.directory.set(y.aid, { ...b.location(y), addresses: [] });
  const old = await a.links.open(x.aid, y.aid, 'tcp');
  const changes: (PathChange | string)[] = [];
  const stop = a.pool.onPathChange(({ path, before }) => changes.push(`${before?.kind} to ${path?.kind}`));
  await assert.rejects(a.pool.upgrade(await dialOf(a, b, 'punched'), AbortSignal.abort()));
  const better = await a.pool.upgrade(await dialOf(a, b, 'punched'));
  assert.equal(better.connection.path.kind, 'punched');
  const [one, other] = [await dialOf(a, b, 'relay'), await dialOf(a, b, 'turn')];
  assert.equal(await a.pool.upgrade(one), better);
  assert.equal(await a.pool.upgrade(other), better);
  await Promise.all([one.closed, other.closed]);
  const fresh = await a.links.open(x.aid, y.aid, 'tcp');
  assert.deepEqual([old.path().kind, fresh.path().kind], ['relay', 'punched']);
  assert.equal(a.links.path(y.aid, false)?.kind, 'punched');
  await settle();
  assert.equal(b.pool.current(a.key.publicKey)?.connection.path.kind, 'punched');
  clock.advance(2 * SPARE_IDLE_MS);
  await settle();
  assert.equal(a.pool.stats().connections, 2, 'the old one carries a link');
  for (const link of [old, fresh]) {
    link.write('still here');
    assert.equal(String((await link.iterator({ destroyOnReturn: false }).next()).value), 'still here');
  }
  old.destroy();
  await settle();
  clock.advance(2 * SPARE_IDLE_MS);
  await settle();
  assert.equal(a.pool.stats().connections, 1);
  assert.deepEqual(changes, ['relay to punched']);
  better.close();
  await settle();
  assert.deepEqual(changes, ['relay to punched', 'punched to undefined']);
  assert.equal(a.links.path(y.aid, false), null);
  stop();
  await a.pool.connect(nowhere(b), never);
  assert.equal(changes.length, 2);
});

test('instead of a dead connection one is used that came by a relay since', async () => {
  const clock = new TestClock();
  await using world = new LinkWorld(clock);
  const [a, b] = [await world.node(), await world.node()];
  b.pool.addDialer(wayTo(b, a, 'relay'));
  const dead = await a.pool.connect(placeOf(b), never);
  await settle();
  clock.advance(10);
  const seenDead = b.pool.current(a.key.publicKey);
  assert.ok(seenDead);
  await b.pool.connect(nowhere(a), never, { insteadOf: seenDead });
  await settle();
  assert.equal(a.pool.current(b.key.publicKey), dead, 'it looks alive here');
  const detour = await a.pool.connect(placeOf(b), never, { insteadOf: dead });
  assert.equal(detour.connection.path.kind, 'relay');
  assert.equal(a.pool.current(b.key.publicKey), detour);
});

test('a way may have the other node dial us: then it says hello, and who waited is served', async () => {
  const clock = new TestClock();
  await using world = new LinkWorld(clock);
  const [a, b] = [await world.node(), await world.node()];
  const arrivals: Connection[] = [];
  const take = a.endpoint.onConnection.bind(a.endpoint);
  take((connection) => void arrivals.push(connection));
  let greets = true;
  a.pool.addDialer({
    ...wayTo(a, b, 'punched'),
    dial: async () => {
      const dialed = await dialOf(b, a, 'punched');
      await settle();
      const inbound = arrivals.pop();
      assert.ok(inbound && !inbound.outbound);
      a.pool.receive(inbound);
      if (greets) void b.pool.upgrade(dialed);
      return inbound;
    },
  });
  const session = await a.pool.connect(nowhere(b), never);
  assert.deepEqual([session.connection.outbound, session.connection.path.kind], [false, 'punched']);
  assert.equal(a.pool.current(b.key.publicKey), session);
  session.close();
  await settle();
  greets = false;
  const mute = assert.rejects(a.pool.connect(nowhere(b), never), withCode('connect_failed'));
  await settle(60);
  clock.advance(HELLO_TIMEOUT_MS);
  await mute;
  assert.equal(a.pool.stats().connections, 0);
});

test('a connection that somebody keeps stays open without streams, until he lets it go', async () => {
  const clock = new TestClock();
  await using world = new LinkWorld(clock);
  const [a, b] = [await world.node(), await world.node()];
  const release = [a.pool.keep(b.key.publicKey), a.pool.keep(b.key.publicKey), b.pool.keep(a.key.publicKey)];
  const session = await a.pool.connect(placeOf(b), never);
  for (const letGo of release.slice(0, 2)) {
    clock.advance(3 * IDLE_MS);
    await settle();
    assert.equal(session.closed, false);
    letGo();
    letGo();
  }
  clock.advance(3 * IDLE_MS);
  await settle();
  assert.equal(session.closed, true);
});

function dialOf(from: LinkNode, to: LinkNode, kind: PathKind) {
  return from.endpoint.dial(to.endpoint.address, to.key.publicKey, { way: { kind } });
}
