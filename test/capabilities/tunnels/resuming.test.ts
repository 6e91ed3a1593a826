/** Connections through tunnels whose QUIC connection goes away: both daemons find each other again, strangers find nothing. */
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { test } from 'node:test';
import { RESUME_MS } from '../../../src/capabilities/tunnels/connection.ts';
import { receivedFrame } from '../../../src/capabilities/tunnels/frames.ts';
import { InboundConnections } from '../../../src/capabilities/tunnels/inbound-connections.ts';
import { drawTicket, OPENING, openingOf } from '../../../src/capabilities/tunnels/opening.ts';
import { OutboundConnections } from '../../../src/capabilities/tunnels/outbound.ts';
import type { LinkStream } from '../../../src/network/links/types.ts';
import { StreamError } from '../../../src/network/transport/stream.ts';
import { NO_LANES } from '../../support/bulk.ts';
import { eventually } from '../../support/eventually.ts';
import { linkEnds } from '../../support/link-ends.ts';
import { readAll } from '../../support/link-world.ts';
import { dial, endOf } from '../../support/tcp.ts';
import { TestClock } from '../../support/test-clock.ts';
import { TunnelWorld } from '../../support/tunnel-world.ts';

const BYTES = randomBytes(6 * 1024 * 1024);

const echo = (socket: Socket): void => void socket.pipe(socket);

/** Takes the QUIC connection between the nodes away. */
function lose({ near, far }: TunnelWorld): void {
  const session = near.pool.current(far.key.publicKey);
  assert.ok(session);
  session.close();
}

test('an interactive connection and a bulk transfer survive lost paths', async () => {
  await using world = await TunnelWorld.start(echo);
  const { tunnel } = await world.tunnels.open(world.request());
  const [chat, bulk] = [await dial(tunnel.listen), await dial(tunnel.listen)];
  bulk.write(BYTES.subarray(0, 1000));
  await once(bulk, 'readable');
  const back = readAll(bulk);
  bulk.end(BYTES.subarray(1000));
  for (let i = 0; i < 5; i++) {
    chat.write(`line ${i}`);
    assert.equal(String((await once(chat, 'data'))[0]), `line ${i}`);
    lose(world);
  }
  assert.deepEqual(
    createHash('sha256')
      .update(await back)
      .digest(),
    createHash('sha256').update(BYTES).digest(),
  );
  chat.end('bye');
  assert.equal((await readAll(chat)).toString(), 'bye');
  await eventually('no connection remains', () => {
    const { known, waiting, keptBytes } = world.inbound.connections;
    return (
      known + waiting + keptBytes === 0 && world.tunnels.connections.open + world.tunnels.connections.keptBytes === 0
    );
  });
});

test('a tunnel says since when it has no path and how long its connections are held, and that they were given up', async () => {
  const clock = new TestClock();
  await using world = await TunnelWorld.start(echo, clock);
  const { tunnel } = await world.tunnels.open(world.request());
  const client = await dial(tunnel.listen);
  client.write('hello');
  await once(client, 'data');
  assert.equal(world.tunnels.get(tunnel.id).noPath, null);
  world.silent = true;
  const since = clock.now();
  lose(world);
  const held = { since, heldUntil: since + RESUME_MS, connections: 1 };
  await eventually('the loss is reported', () => world.tunnels.get(tunnel.id).noPath !== null);
  assert.deepEqual(world.tunnels.get(tunnel.id).noPath, held);
  const ended = endOf(client);
  const info = await eventually('it is given up', () => {
    clock.advance(1000);
    const now = world.tunnels.get(tunnel.id);
    return now.activeConns === 0 && now;
  });
  assert.equal(await ended, 'ECONNRESET');
  assert.equal(info.noPath, null);
  assert.equal(info.lastError?.code, 'connect_failed');
});

test('a direction that ended remains closed after a change of path', async () => {
  const ended: Socket[] = [];
  const serve = (socket: Socket): void => {
    const hash = createHash('sha256');
    // A probe sends no bytes.
    socket.once('data', () => {
      socket.once('end', () => {
        socket.write(hash.digest());
        ended.push(socket);
      });
    });
    socket.on('data', (chunk: Buffer) => hash.update(chunk));
  };
  await using world = await TunnelWorld.start(serve);
  const { tunnel } = await world.tunnels.open(world.request());
  const client = await dial(tunnel.listen);
  client.end('every byte');
  const served = await eventually('the service has read all', () => ended.at(-1));
  lose(world);
  served.end();
  assert.deepEqual(await readAll(client), createHash('sha256').update('every byte').digest());
});

test('a called agent that refuses its caller now resets what would be resumed', async () => {
  await using world = await TunnelWorld.start(echo);
  const { tunnel } = await world.tunnels.open(world.request());
  const client = await dial(tunnel.listen);
  client.write('x');
  await once(client, 'data');
  world.refused = true;
  lose(world);
  assert.equal(await endOf(client), 'ECONNRESET');
});

test('a node that no longer knows the connection resets it', async () => {
  await using world = await TunnelWorld.start(echo);
  const { tunnel } = await world.tunnels.open(world.request());
  const client = await dial(tunnel.listen);
  client.write('x');
  await once(client, 'data');
  const ended = endOf(client);
  world.inbound.stop();
  lose(world);
  assert.equal(await ended, 'ECONNRESET');
});

test('only its own caller can resume a connection', async () => {
  await using world = await TunnelWorld.start(echo);
  const { near, local, remote } = world;
  const ticket = drawTicket();
  const first = await near.links.open(local, remote, 'tcp');
  first.write(openingOf(OPENING.connect, ticket));
  const [status]: Buffer[] = await once(first, 'data');
  assert.ok(status !== undefined);
  const stranger = near.host().aid;
  const resets: Promise<unknown>[] = [];
  for (const [caller, shown] of [
    [stranger, ticket],
    [local, drawTicket()],
    [local, new Uint8Array(16)],
  ] as const) {
    const link = await near.links.open(caller, remote, 'tcp');
    resets.push(once(link, 'error'));
    link.resume().write(openingOf(OPENING.resume, shown));
  }
  await Promise.all(resets);
  assert.equal(first.destroyed, false);
  // A flood of them costs the connection nothing either.
  const flood = await Promise.all(Array.from({ length: 200 }, () => near.links.open(stranger, remote, 'tcp')));
  for (const link of flood) link.resume().write(openingOf(OPENING.resume, ticket));
  await eventually('all are cut off', () => flood.every((link) => link.destroyed));
  assert.equal(first.destroyed, false);
  assert.equal(world.inbound.connections.known, 1);
  first.destroy();
});

test('an unknown first byte is refused', async () => {
  await using world = await TunnelWorld.start(echo);
  const link = await world.near.links.open(world.local, world.remote, 'tcp');
  const broken = once(link, 'error');
  link.resume().write(Buffer.concat([Buffer.of(9), drawTicket()]));
  await broken;
  assert.equal(world.entered, 0);
});

/** Begins a connection at the called side. */
async function begin(called: InboundConnections, ticket: Uint8Array) {
  const [near, far] = linkEnds();
  near.write(openingOf(OPENING.connect, ticket));
  const connection = await called.take(far);
  assert.ok(connection !== null);
  return { near, far, connection };
}

test('a connection waits for another link for a limited time, and releases everything', async () => {
  const clock = new TestClock();
  const called = new InboundConnections(clock, NO_LANES, () => false);
  const { far, connection } = await begin(called, drawTicket());
  connection.write(Buffer.from('kept'));
  far.destroy(new StreamError('stream_reset'));
  await eventually('the reset is seen', () => connection.destroyed);
  assert.deepEqual(called.counts, { known: 0, waiting: 0, keptBytes: 0 });

  const { far: lost, connection: other } = await begin(called, drawTicket());
  other.write(Buffer.from('kept'));
  lost.destroy(new StreamError('connection_lost'));
  await eventually('it waits', () => called.counts.waiting === 1);
  assert.ok(called.counts.keptBytes > 0);
  clock.advance(RESUME_MS - 1);
  assert.equal(other.destroyed, false);
  clock.advance(1);
  assert.equal(other.destroyed, true);
  assert.deepEqual(called.counts, { known: 0, waiting: 0, keptBytes: 0 });
});

test('a caller that gives a new link up before it uses it keeps the old one', async () => {
  const called = new InboundConnections(new TestClock(), NO_LANES, () => false);
  const ticket = drawTicket();
  const { near, connection } = await begin(called, ticket);
  const [again, resumed] = linkEnds();
  again.write(openingOf(OPENING.resume, ticket));
  const taken = called.take(resumed);
  assert.deepEqual(await once(again, 'data'), [Buffer.of(0)]);
  again.destroy();
  await assert.rejects(taken, { code: 'protocol_error' });
  connection.resume();
  connection.write(Buffer.from('still here'));
  await once(near, 'data');
  assert.equal(connection.destroyed, false);
  // A caller that uses the link moves the connection.
  const [third, last] = linkEnds();
  third.write(openingOf(OPENING.resume, ticket));
  const moved = called.take(last);
  await once(third, 'data');
  third.write(receivedFrame(0));
  assert.equal(await moved, null);
  const [frames]: Buffer[] = await once(third, 'data');
  assert.deepEqual(frames?.subarray(0, 7), receivedFrame(0));
  assert.equal(near.destroyed || near.readableEnded || (await once(near, 'error')).length > 0, true);
  connection.destroy();
});

test('an acknowledgement on a link that its caller has given up does not move the connection, however late it arrives', async () => {
  const called = new InboundConnections(new TestClock(), NO_LANES, () => false);
  const ticket = drawTicket();
  const { near, connection } = await begin(called, ticket);
  connection.resume();
  const resume = async () => {
    const [there, here] = linkEnds();
    there.write(openingOf(OPENING.resume, ticket));
    const taken = called.take(here);
    await once(there, 'data');
    return { there, taken };
  };
  const lost = await resume();
  const next = await resume();
  next.there.write(receivedFrame(0));
  await next.taken;
  await eventually('the old link has closed', () => near.destroyed);
  const broken = once(lost.there, 'error');
  lost.there.write(receivedFrame(0));
  await lost.taken;
  await broken;
  assert.deepEqual([next.there.destroyed, connection.destroyed], [false, false]);
  connection.destroy();
});

test('a connection that keeps no bytes refuses another link immediately, so its caller stays on the present one', async () => {
  const called = new InboundConnections(new TestClock(), NO_LANES, () => false);
  const ticket = drawTicket();
  const { near, connection } = await begin(called, ticket);
  connection.resume();
  connection.end(Buffer.of(1));
  for (const what of [OPENING.resume, OPENING.lane]) {
    const [there, here] = linkEnds();
    there.write(openingOf(what, ticket));
    await assert.rejects(called.take(here), { code: 'protocol_error' });
    assert.equal(there.readableLength, 0);
  }
  assert.deepEqual([near.destroyed, connection.destroyed], [false, false]);
  connection.destroy();
});

test('a node that ends each new link before both sides use it gets the next one after a pause, and for 60 seconds at most', async () => {
  const clock = new TestClock();
  const opened: LinkStream[] = [];
  const links = {
    accept: () => {},
    reset: () => {},
    path: () => null,
    onPathChange: () => () => {},
    open: async () => {
      const [near, far] = linkEnds();
      opened.push(near);
      if (opened.length === 1) return near;
      far.write(Buffer.of(0));
      // The acknowledgement is the answer.
      far.once('data', () => near.destroy(new StreamError('connection_lost')));
      return near;
    },
  };
  const outbound = new OutboundConnections(clock, links, NO_LANES);
  const { caller, called } = linkEnds()[0];
  const connection = await outbound.open(caller, called, {});
  connection.resume();
  opened[0]?.destroy(new StreamError('connection_lost'));
  for (let turn = 0; turn < 20; turn++) await clock.run(0);
  assert.equal(opened.length, 2, 'immediately, and then after a pause');
  for (let ms = 0; ms < RESUME_MS && !connection.destroyed; ms += 50) {
    await clock.run(50);
    for (let turn = 0; turn < 10; turn++) await clock.run(0);
  }
  await eventually('it is given up', () => clock.advance(50) === undefined && connection.destroyed);
  assert.equal(outbound.isGivenUp(connection), true);
  assert.deepEqual([outbound.counts, clock.timers], [{ open: 0, keptBytes: 0 }, 0]);
});
