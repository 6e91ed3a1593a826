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

/** A place without an address: only another dialer can reach the node. */
function withoutAddress(node: LinkNode): NodePlace {
  return { nodeKey: node.key.publicKey, addresses: [], ...UNHELPED };
}

function placeOf(node: LinkNode): NodePlace {
  return { ...withoutAddress(node), addresses: [node.endpoint.address] };
}

/** A dialer with this path kind from one node to another. It ignores the addresses of the place. */
function dialerTo(from: LinkNode, to: LinkNode, kind: PathKind): Dialer {
  return {
    kind,
    delayMs: () => 100,
    timeoutMs: 2000,
    mayLead: () => true,
    dial: (place, signal) => from.endpoint.dial(to.endpoint.address, place.nodeKey, { signal, way: { kind } }),
  };
}

/** Two nodes. The first can reach the second through a relay. */
async function relayed(world: LinkWorld, disabled: () => boolean = () => false) {
  const [a, b] = [await world.node({ relayDisabled: disabled }), await world.node()];
  a.pool.addDialer(dialerTo(a, b, 'relay'));
  return [a, b] as const;
}

test('an added dialer reaches a node without addresses, and both sides see its path kind', async () => {
  await using world = new LinkWorld();
  const [a, b] = await relayed(world);
  const session = await a.pool.connect(withoutAddress(b), never);
  assert.equal(session.connection.path.kind, 'relay');
  await settle();
  assert.equal(b.pool.connections()[0]?.path.kind, 'relay');
});

test('a caller without relays gets no relayed connection, even if one is open or others wait for one', async () => {
  await using world = new LinkWorld();
  const [a, b] = await relayed(world);
  const mixed = [true, false, true].map((relays) => a.pool.connect(withoutAddress(b), never, { relays }));
  const outcomes = await Promise.allSettled(mixed);
  assert.deepEqual(
    outcomes.map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled'],
  );
  await assert.rejects(a.pool.connect(withoutAddress(b), never, { relays: false }), withCode('relay_required'));
  assert.equal(a.pool.current(b.key.publicKey, false), null);
  const direct = await a.pool.connect(placeOf(b), never, { relays: false });
  assert.equal(direct.connection.path.kind, 'lan');
  assert.equal(await a.pool.connect(withoutAddress(b), never), direct, 'then the direct connection serves all callers');
});

test('when relays are disabled, only relayed connections are closed', async () => {
  await using world = new LinkWorld();
  const [a, b] = await relayed(world);
  const other = await world.node();
  const [carried, direct] = [
    await a.pool.connect(withoutAddress(b), never),
    await a.pool.connect(placeOf(other), never),
  ];
  await settle();
  b.pool.closeRelayed();
  await carried.connection.closed;
  a.pool.closeRelayed();
  assert.equal(direct.closed, false);
});

test('disabling relays immediately stops dialing, using and accepting relayed connections', async () => {
  await using world = new LinkWorld();
  let disabled = false;
  const [a, b] = await relayed(world, () => disabled);
  const session = await a.pool.connect(withoutAddress(b), never);
  disabled = true;
  assert.equal(a.pool.current(b.key.publicKey), null);
  await assert.rejects(a.pool.connect(withoutAddress(b), never), withCode('relay_required'));
  assert.equal(session.closed, false, 'an open connection may continue');
  const inbound = await b.endpoint.dial(a.endpoint.address, a.key.publicKey, { way: { kind: 'turn' } });
  await inbound.closed;
  disabled = false;
  assert.equal(await a.pool.connect(withoutAddress(b), never), session);
});

test('new streams use the better connection on both sides, and the other one closes once it has no streams', async () => {
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
  assert.equal(a.pool.stats().connections, 2, 'the old connection carries a link');
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
  await a.pool.connect(withoutAddress(b), never);
  assert.equal(changes.length, 2);
});

test('a dead connection is replaced by a relayed one that the other node opened meanwhile', async () => {
  const clock = new TestClock();
  await using world = new LinkWorld(clock);
  const [a, b] = [await world.node(), await world.node()];
  b.pool.addDialer(dialerTo(b, a, 'relay'));
  const dead = await a.pool.connect(placeOf(b), never);
  await settle();
  clock.advance(10);
  const seenDead = b.pool.current(a.key.publicKey);
  assert.ok(seenDead);
  await b.pool.connect(withoutAddress(a), never, { insteadOf: seenDead });
  await settle();
  assert.equal(a.pool.current(b.key.publicKey), dead, 'the dead connection looks usable here');
  const detour = await a.pool.connect(placeOf(b), never, { insteadOf: dead });
  assert.equal(detour.connection.path.kind, 'relay');
  assert.equal(a.pool.current(b.key.publicKey), detour);
});

test('if a dialer makes the other node dial back, that node sends the hello, and the waiting callers are served', async () => {
  const clock = new TestClock();
  await using world = new LinkWorld(clock);
  const [a, b] = [await world.node(), await world.node()];
  const arrivals: Connection[] = [];
  const onConnection = a.endpoint.onConnection.bind(a.endpoint);
  onConnection((connection) => void arrivals.push(connection));
  let greets = true;
  a.pool.addDialer({
    ...dialerTo(a, b, 'punched'),
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
  const session = await a.pool.connect(withoutAddress(b), never);
  assert.deepEqual([session.connection.outbound, session.connection.path.kind], [false, 'punched']);
  assert.equal(a.pool.current(b.key.publicKey), session);
  session.close();
  await settle();
  greets = false;
  const mute = assert.rejects(a.pool.connect(withoutAddress(b), never), withCode('connect_failed'));
  await settle(60);
  clock.advance(HELLO_TIMEOUT_MS);
  await mute;
  assert.equal(a.pool.stats().connections, 0);
});

test('a kept connection stays open without streams until it is released', async () => {
  const clock = new TestClock();
  await using world = new LinkWorld(clock);
  const [a, b] = [await world.node(), await world.node()];
  const release = [a.pool.keep(b.key.publicKey), a.pool.keep(b.key.publicKey), b.pool.keep(a.key.publicKey)];
  const session = await a.pool.connect(placeOf(b), never);
  for (const releaseOnce of release.slice(0, 2)) {
    clock.advance(3 * IDLE_MS);
    await settle();
    assert.equal(session.closed, false);
    releaseOnce();
    releaseOnce();
  }
  clock.advance(3 * IDLE_MS);
  await settle();
  assert.equal(session.closed, true);
});

function dialOf(from: LinkNode, to: LinkNode, kind: PathKind) {
  return from.endpoint.dial(to.endpoint.address, to.key.publicKey, { way: { kind } });
}
