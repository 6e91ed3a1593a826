import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toHex } from '../../../src/foundation/bytes.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import { nativeAid } from '../../../src/foundation/identity/aid.ts';
import { NODE_DIAL_TIMEOUT_MS, type NodePlace, STAGGER_MS, UNHELPED } from '../../../src/network/peers/dial.ts';
import { HELLO_TIMEOUT_MS, MAX_UNGREETED } from '../../../src/network/peers/greeter.ts';
import { IDLE_MS, MAX_PER_NODE, SIMULTANEOUS_MS, SPARE_IDLE_MS } from '../../../src/network/peers/peer.ts';
import { KIND, STATUS } from '../../../src/network/peers/wire.ts';
import { type LinkNode, LinkWorld, readAll, settle, withCode } from '../../support/link-world.ts';
import { RawPeer } from '../../support/raw-peer.ts';
import { TestClock } from '../../support/test-clock.ts';

const never = new AbortController().signal;

function placeOf(node: LinkNode): NodePlace {
  return { nodeKey: node.key.publicKey, addresses: [node.endpoint.address], ...UNHELPED };
}

/** Two nodes, first the one with the smaller key. */
async function inOrder(world: LinkWorld): Promise<readonly [LinkNode, LinkNode]> {
  const [a, b] = [await world.node(), await world.node()];
  return toHex(a.key.publicKey) < toHex(b.key.publicKey) ? [a, b] : [b, a];
}

test('concurrent callers that need a node share one dial', async () => {
  await using world = new LinkWorld();
  const [a, b] = [await world.node(), await world.node()];
  const sessions = await Promise.all(Array.from({ length: 20 }, () => a.pool.connect(placeOf(b), never)));
  assert.equal(new Set(sessions).size, 1);
  await settle();
  assert.equal(b.pool.stats().connections, 1);
});

test('a dial continues while any caller waits for it, and is aborted with the last one', async () => {
  const clock = new TestClock();
  await using world = new LinkWorld(clock);
  const [a, b] = [await world.node(), await world.node()];
  const idle = clock.timers;
  world.network.silence(b.endpoint.address);
  const waits = [new AbortController(), new AbortController()];
  const outcomes = waits.map(({ signal }) => assert.rejects(a.pool.connect(placeOf(b), signal), withCode('cancelled')));
  await settle();
  waits[0]?.abort();
  await outcomes[0];
  await settle();
  assert.ok(clock.timers > idle, 'the dial continues');
  waits[1]?.abort();
  await outcomes[1];
  await settle();
  assert.equal(clock.timers, idle, 'its timers are cleared');
});

test('a dial that fails while the network changes is repeated once', async () => {
  const clock = new TestClock();
  await using world = new LinkWorld(clock);
  const [a, b] = [await world.node(), await world.node()];
  const at = placeOf(b);
  const goes = a.endpoint.dial.bind(a.endpoint);
  let dials = 0;
  a.endpoint.dial = async (...args) => {
    dials++;
    if (dials !== 2) throw new SvcError('connect_failed');
    return await goes(...args);
  };
  const connecting = a.pool.connect(at, never);
  a.pool.onNetwork();
  assert.equal((await connecting).connection.outbound, true);
  assert.equal(dials, 2);
  a.pool.reset(b.key.publicKey);
  await assert.rejects(a.pool.connect(at, never), withCode('connect_failed'));
  assert.equal(dials, 3, 'the network has not changed');
});

test('an inbound connection serves the callers that wait for a dial', async () => {
  await using world = new LinkWorld(new TestClock());
  const [a, b] = [await world.node(), await world.node()];
  world.network.silence(b.endpoint.address);
  const waiting = a.pool.connect(placeOf(b), never);
  const theirs = await b.pool.connect(placeOf(a), never);
  const ours = await waiting;
  assert.ok(!ours.connection.outbound);
  assert.deepEqual(ours.there.nonce, theirs.here.nonce);
});

test('after the inbound connection closes, a new dial begins even if the old one is still running', async () => {
  await using world = new LinkWorld(new TestClock());
  const [a, b] = [await world.node(), await world.node()];
  world.network.silence(b.endpoint.address);
  const waiting = a.pool.connect(placeOf(b), never);
  await b.pool.connect(placeOf(a), never);
  const first = await waiting;
  first.close();
  await settle();
  const again = a.pool.connect(placeOf(b), never);
  await settle();
  await b.pool.connect(placeOf(a), never);
  const second = await again;
  assert.notEqual(second, first);
  assert.equal(second.closed, false);
});

test('of several addresses, one that answers is used after a short delay', async () => {
  const clock = new TestClock();
  await using world = new LinkWorld(clock);
  const [a, b, c] = [await world.node(), await world.node(), await world.node()];
  const silent = { host: '127.0.0.1', port: 1 };
  const connecting = a.pool.connect(
    // The second address belongs to another node and answers with the wrong key.
    { nodeKey: b.key.publicKey, addresses: [silent, c.endpoint.address, b.endpoint.address], ...UNHELPED },
    never,
  );
  await settle();
  clock.advance(STAGGER_MS);
  const session = await connecting;
  assert.deepEqual(session.connection.path.remote, b.endpoint.address);
  await settle();
  assert.equal(c.pool.stats().connections, 0);
});

test('a node without an address, or with a silent one, is unreachable', async () => {
  const clock = new TestClock();
  await using world = new LinkWorld(clock);
  const [a, b] = [await world.node(), await world.node()];
  await assert.rejects(a.pool.connect({ ...placeOf(b), addresses: [] }, never), withCode('connect_failed'));
  world.network.silence(b.endpoint.address);
  const connecting = assert.rejects(a.pool.connect(placeOf(b), never), withCode('connect_failed'));
  await settle();
  clock.advance(NODE_DIAL_TIMEOUT_MS);
  await connecting;
  await settle();
  assert.equal(clock.timers, 0, 'without connections, no timer remains');
});

test('a caller with another address does not wait for a dial to the wrong one, and either connection serves both', async () => {
  await using world = new LinkWorld(new TestClock());
  const [a, b] = [await world.node(), await world.node()];
  const silent = { host: '127.0.0.1', port: 1 };
  const wrong = a.pool.connect({ ...placeOf(b), addresses: [silent] }, never);
  const right = a.pool.connect(placeOf(b), never);
  assert.deepEqual((await right).connection.path.remote, b.endpoint.address);
  assert.equal(await wrong, await right);
});

test('an aborted caller starts no new dial', async (t) => {
  await using world = new LinkWorld(new TestClock());
  const [a, b] = [await world.node(), await world.node()];
  const dial = t.mock.method(a.endpoint, 'dial');
  const giveUp = new AbortController();
  const silent = { ...placeOf(b), addresses: [{ host: '127.0.0.1', port: 1 }] };
  const waiting = [1, 2].map(() => assert.rejects(a.pool.connect(silent, giveUp.signal), withCode('cancelled')));
  await settle();
  giveUp.abort();
  await Promise.all(waiting);
  await settle();
  assert.equal(dial.mock.callCount(), 1);
});

test('two nodes that dial each other simultaneously agree on one connection, and no stream breaks', async () => {
  const clock = new TestClock();
  await using world = new LinkWorld(clock);
  const [small, large] = await inOrder(world);
  const [x, y] = [small.host(), large.host()];
  small.echo();
  large.echo();
  const [there, back] = await Promise.all([
    small.links.open(x.aid, y.aid, 'tcp'),
    large.links.open(y.aid, x.aid, 'tcp'),
  ]);
  await settle();
  assert.equal(small.pool.stats().connections, 2);
  const chosen = small.pool.current(large.key.publicKey);
  assert.ok(chosen?.connection.outbound, 'the connection dialed by the smaller key');
  assert.deepEqual(large.pool.current(small.key.publicKey)?.there.nonce, chosen.here.nonce);
  assert.equal(small.pool.dialed(large.key.publicKey), chosen);
  assert.ok(large.pool.dialed(small.key.publicKey)?.connection.outbound, 'its own dial is not the current one');
  clock.advance(2 * SPARE_IDLE_MS);
  await settle();
  for (const link of [there, back]) {
    link.end('still here');
    assert.equal((await readAll(link)).toString(), 'still here');
  }
  await settle();
  clock.advance(3 * SPARE_IDLE_MS);
  await settle();
  assert.equal(small.pool.stats().connections, 1);
  assert.equal(large.pool.stats().connections, 1);
  assert.equal(small.pool.current(large.key.publicKey), chosen);
});

test('a later connection from the other node replaces the current one: it would not dial if that worked', async () => {
  const clock = new TestClock();
  await using world = new LinkWorld(clock);
  const [a, raw] = [await world.node(), await RawPeer.in(world)];
  const ours = await a.pool.connect(
    { nodeKey: raw.key.publicKey, addresses: [raw.endpoint.address], ...UNHELPED },
    never,
  );
  clock.advance(SIMULTANEOUS_MS + 1);
  await raw.connect(a);
  await settle();
  const current = a.pool.current(raw.key.publicKey);
  assert.ok(current !== null && current !== ours && !current.connection.outbound);
  assert.ok(!ours.closed);
});

test('after a node has restarted, the connections to its previous run close immediately', async () => {
  await using world = new LinkWorld();
  const [a, raw] = [await world.node({ limits: { connectionsPerKey: 100 } }), await RawPeer.in(world)];
  const first = await raw.connect(a, 1);
  const second = await raw.connect(a, 1);
  await settle();
  assert.equal(a.pool.stats().connections, 2);
  const third = await raw.connect(a, 2);
  await Promise.all([first.connection.closed, second.connection.closed]);
  assert.equal(a.pool.stats().connections, 1);
  assert.deepEqual(a.pool.current(raw.key.publicKey)?.there.nonce, third.here.nonce);
});

test('a node has a limited number of connections; the newest are kept', async () => {
  await using world = new LinkWorld();
  const [a, raw] = [await world.node({ limits: { connectionsPerKey: 100 } }), await RawPeer.in(world)];
  const sessions = [];
  for (let i = 0; i < MAX_PER_NODE + 2; i++) sessions.push(await raw.connect(a));
  await Promise.all(sessions.slice(0, 2).map(({ connection }) => connection.closed));
  await settle();
  assert.equal(a.pool.stats().connections, MAX_PER_NODE);
});

test('when the current connection closes, another open one replaces it', async () => {
  await using world = new LinkWorld();
  const [a, raw] = [await world.node(), await RawPeer.in(world)];
  await raw.connect(a);
  const older = a.pool.current(raw.key.publicKey);
  const newer = await raw.connect(a);
  newer.connection.close();
  await settle();
  assert.equal(a.pool.current(raw.key.publicKey), older);
});

test('a connection without streams closes after an idle timeout, one with a stream does not', async () => {
  const clock = new TestClock();
  await using world = new LinkWorld(clock);
  const [a, b] = [await world.node(), await world.node()];
  const [x, y] = [a.host(), b.host()];
  b.echo();
  const link = await a.links.open(x.aid, y.aid, 'tcp');
  clock.advance(2 * IDLE_MS);
  await settle();
  assert.equal(a.pool.stats().connections, 1);
  link.end();
  await readAll(link);
  await settle();
  clock.advance(IDLE_MS / 2);
  await settle();
  assert.equal(a.pool.stats().connections, 1);
  clock.advance(IDLE_MS);
  await settle();
  assert.equal(a.pool.stats().connections, 0);
  assert.equal(b.pool.stats().connections, 0);
  (await a.links.open(x.aid, y.aid, 'tcp')).destroy();
});

test('a stream that arrives before the answer to the hello is queued', async () => {
  await using world = new LinkWorld();
  const a = await world.node();
  a.requests.onRequest('record', async () => Buffer.from('served'));
  const eager = world.network.endpoint({ publicKey: new Uint8Array(32).fill(9) });
  const answered = new Promise<Buffer>((resolve) => {
    eager.onConnection((connection) => {
      connection.onStream((hello) => {
        const nonceAndInstance = new Uint8Array(48);
        void connection.openStream().then(async (early) => {
          early.end(Uint8Array.of(KIND.nodeRequest, 0, 0, 0, 0));
          await settle();
          hello.end(Buffer.concat([Uint8Array.of(STATUS.ok), nonceAndInstance]));
          resolve(await readAll(early));
        });
      });
    });
  });
  await eager.start();
  await a.pool.connect({ nodeKey: eager.publicKey, addresses: [eager.address], ...UNHELPED }, never);
  assert.deepEqual(await answered, Buffer.concat([Uint8Array.of(STATUS.ok, 0, 0, 0, 6), Buffer.from('served')]));
});

test('a node of another network receives the reason', async () => {
  await using world = new LinkWorld();
  const [a, b] = [await world.node({ network: 'home' }), await world.node({ network: 'work' })];
  await assert.rejects(a.pool.connect(placeOf(b), never), (error) => {
    assert.ok(error instanceof Error && /another network/.test(error.message));
    return withCode('connect_failed')(error);
  });
  await settle();
  assert.equal(b.pool.stats().connections, 0);
});

test('a node that accepts a connection and then stays silent is unreachable', async () => {
  const clock = new TestClock();
  await using world = new LinkWorld(clock);
  const a = await world.node();
  const mute = world.network.endpoint({ publicKey: new Uint8Array(32).fill(9) });
  mute.onConnection(() => {});
  await mute.start();
  const connecting = a.pool.connect({ nodeKey: mute.publicKey, addresses: [mute.address], ...UNHELPED }, never);
  const outcome = assert.rejects(connecting, withCode('connect_failed'));
  await settle();
  clock.advance(NODE_DIAL_TIMEOUT_MS);
  await outcome;
});

test('connections without a hello are closed, and a limited number may be pending', async () => {
  const clock = new TestClock();
  await using world = new LinkWorld(clock);
  const limits = { connections: 10_000, connectionsPerKey: 10_000 };
  const [a, raw] = [await world.node({ limits }), await RawPeer.in(world)];
  const silent = [];
  for (let i = 0; i < MAX_UNGREETED; i++) silent.push(await raw.dial(a));
  await settle();
  const oneMore = await raw.dial(a);
  await oneMore.closed;
  let closed = 0;
  for (const one of silent) void one.closed.then(() => closed++);
  clock.advance(HELLO_TIMEOUT_MS - 1);
  // While this process stalls, it cannot receive a hello.
  clock.jump(60_000);
  clock.advance(0);
  await settle();
  assert.equal(closed, 0);
  clock.advance(HELLO_TIMEOUT_MS);
  await Promise.all(silent.map(({ closed }) => closed));
  await raw.connect(a);
  await settle();
  assert.equal(a.pool.stats().connections, 1);
});

test('the totals outlive their connections, and each connection is listed', async () => {
  await using world = new LinkWorld();
  const [a, b] = [await world.node(), await world.node()];
  const session = await a.pool.connect(placeOf(b), never);
  const { bytesSent, bytesReceived } = a.pool.stats();
  assert.ok(bytesSent > 0 && bytesReceived > 0);
  const [view] = a.pool.connections();
  assert.ok(view);
  assert.equal(view.node, nativeAid(b.key.publicKey));
  assert.deepEqual(view.path.remote, b.endpoint.address);
  assert.ok(view.outbound && view.current);
  session.close();
  await settle();
  assert.deepEqual(a.pool.stats(), { connections: 0, streams: 0, bytesSent, bytesReceived });
  assert.deepEqual(a.pool.connections(), []);
});

test('a stop aborts running dials', async () => {
  await using world = new LinkWorld();
  const [a, b] = [await world.node(), await world.node()];
  world.network.silence(b.endpoint.address);
  const connecting = assert.rejects(a.pool.connect(placeOf(b), never), withCode('cancelled'));
  await settle();
  await a.stop();
  await connecting;
});
