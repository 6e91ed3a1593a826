/** The bytes that a client sends before its link is answered save a round trip, and reach the service at most once. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { framedData } from '../../../src/capabilities/tunnels/frames.ts';
import { InboundConnections, USED_MS } from '../../../src/capabilities/tunnels/inbound-connections.ts';
import {
  drawTicket,
  EarlyBytes,
  FirstWords,
  MAX_EARLY_BYTES,
  OPENING,
  OPENING_BYTES,
  openingOf,
} from '../../../src/capabilities/tunnels/opening.ts';
import { NO_LANES } from '../../support/bulk.ts';
import { eventually } from '../../support/eventually.ts';
import { linkEnds } from '../../support/link-ends.ts';
import { readAll, settle, withCode } from '../../support/link-world.ts';
import { dial, endOf } from '../../support/tcp.ts';
import { TestClock } from '../../support/test-clock.ts';
import { TunnelWorld } from '../../support/tunnel-world.ts';

const HELLO = Buffer.from('hello');

const echo = (socket: Socket): void => void socket.pipe(socket);

/** The bytes that the service received on each connection, without probes. */
function recorder() {
  const got: string[] = [];
  const serve = (socket: Socket): void => {
    socket.on('error', () => {});
    let index = -1;
    socket.on('data', (chunk: Buffer) => {
      if (index < 0) index = got.push('') - 1;
      got[index] += chunk.toString();
      socket.write(chunk);
    });
    socket.on('end', () => socket.end());
  };
  return { got, serve };
}

async function ready(world: TunnelWorld): Promise<string> {
  const { tunnel } = await world.tunnels.open(world.request());
  const client = await dial(tunnel.listen);
  client.end('x');
  await readAll(client);
  return tunnel.listen;
}

test('the bytes of a client do not wait for the answer of the other side', async () => {
  await using world = await TunnelWorld.start(echo);
  const listen = await ready(world);
  // The called side checks the permission before it answers.
  world.far.authorize = async () => {
    await eventually('its bytes are sent', () => world.tunnels.list()[0]?.bytesUp === 1 + HELLO.length);
  };
  const client = await dial(listen);
  client.end(HELLO);
  assert.deepEqual(await readAll(client), HELLO);
  assert.equal(world.tunnels.list()[0]?.bytesUp, 1 + HELLO.length);
});

test('a client that ended before its link is open gets the whole answer', async () => {
  for (const size of [0, 1, 16 * 1024, 300 * 1024]) {
    await using world = await TunnelWorld.start(echo);
    const listen = await ready(world);
    const bytes = Buffer.alloc(size, 'y');
    const client = await dial(listen);
    client.end(bytes);
    assert.deepEqual(await readAll(client), bytes, `${size} bytes`);
  }
});

/** A client that says something, and its opening. */
function opening(...chunks: readonly Buffer[]) {
  const client = new PassThrough();
  for (const chunk of chunks) client.write(chunk);
  let taken = 0;
  const early = new EarlyBytes(client, (bytes) => {
    taken += bytes;
  });
  return { client, opened: new FirstWords(early), taken: () => taken };
}

const FRESH = { instance: 'a', isFresh: true } as const;
const STALE = { ...FRESH, isFresh: false } as const;

test('an attempt that may have arrived is repeated with its own ticket, at the same process only', () => {
  const { opened, taken } = opening(HELLO);
  const first = Buffer.from(opened.bytes(FRESH));
  assert.deepEqual(first.subarray(OPENING_BYTES), framedData(HELLO));
  assert.deepEqual(Buffer.from(opened.bytes(STALE)), first);
  const elsewhere = { ...FRESH, instance: 'b' };
  assert.throws(() => opened.bytes(elsewhere), withCode('connect_failed'));
  opened.refused();
  assert.throws(() => opened.bytes(elsewhere), withCode('connect_failed'), 'one may have arrived');
  opened.refused();
  const second = Buffer.from(opened.bytes(elsewhere));
  assert.notDeepEqual(second.subarray(0, OPENING_BYTES), first.subarray(0, OPENING_BYTES));
  assert.deepEqual(second.subarray(OPENING_BYTES), framedData(HELLO));
  assert.equal(taken(), HELLO.length);
});

test('bytes during an attempt go out on it, and on the next attempt from the start', async () => {
  const { client, opened } = opening();
  assert.equal(opened.bytes(FRESH).length, OPENING_BYTES);
  const more: Buffer[] = [];
  opened.follow((bytes) => void more.push(Buffer.from(bytes)));
  client.write(HELLO);
  await eventually('it is sent', () => more.length === 1);
  assert.deepEqual(more, [framedData(HELLO)]);
  // Now both carry the same bytes, and later bytes wait.
  assert.deepEqual(Buffer.from(opened.bytes(FRESH)).subarray(OPENING_BYTES), framedData(HELLO));
  opened.follow((bytes) => void more.push(Buffer.from(bytes)));
  client.write(HELLO);
  await settle();
  assert.equal(more.length, 1);
  assert.deepEqual(opened.chunks, [HELLO]);
});

test('after an attempt without bytes, any other may follow', () => {
  const { opened } = opening();
  const tickets = ['a', 'b', 'b'].map((instance) => Buffer.from(opened.bytes({ ...FRESH, instance })).toString('hex'));
  assert.equal(new Set(tickets).size, 3);
});

test('the early bytes are limited', async () => {
  const { client, opened, taken } = opening(Buffer.alloc(MAX_EARLY_BYTES - 1), HELLO);
  await settle();
  opened.bytes(FRESH);
  assert.equal(taken(), MAX_EARLY_BYTES);
  assert.equal(client.readableLength, HELLO.length - 1);
});

test('a node without a recent packet gets a ticket only', async () => {
  const { client, opened, taken } = opening(HELLO);
  assert.equal(opened.bytes(STALE).length, OPENING_BYTES);
  opened.follow(() => assert.fail('nothing goes out'));
  client.write(HELLO);
  await settle();
  assert.equal(opened.bytes({ ...STALE, instance: 'b' }).length, OPENING_BYTES);
  assert.equal(taken(), 0);
  assert.equal(opened.isEarly, false);
});

test('refused first bytes still belong to the next attempt, even if it may send nothing early', () => {
  const { opened } = opening(HELLO);
  opened.bytes(FRESH);
  opened.refused();
  assert.equal(opened.bytes({ ...STALE, instance: 'b' }).length, OPENING_BYTES);
  assert.deepEqual([opened.isEarly, opened.chunks], [false, [HELLO]]);
});

test('a ticket is taken once, also for a while after the end of its connection', async () => {
  const clock = new TestClock();
  const called = new InboundConnections(clock, NO_LANES, () => false);
  const ticket = drawTicket();
  const accept = async () => {
    const [near, far] = linkEnds();
    near.write(openingOf(OPENING.connect, ticket));
    return await called.take(far);
  };
  const connection = await accept();
  await assert.rejects(accept(), withCode('protocol_error'));
  connection?.destroy();
  await assert.rejects(accept(), withCode('protocol_error'));
  clock.advance(USED_MS + 1);
  (await accept())?.destroy();
});

test('a service gets the first bytes once, whenever the connection is lost that brought them', async () => {
  const { got, serve } = recorder();
  await using world = await TunnelWorld.start(serve);
  const listen = await ready(world);
  const answered: string[] = [];
  const chunks = Array.from({ length: 12 }, (_, turns) => `hello ${turns};`);
  for (const [turns, text] of chunks.entries()) {
    world.far.authorized.length = 0;
    const client = connect(Number(listen.split(':')[1]), '127.0.0.1');
    const outcome = Promise.race([once(client, 'data').then(String), endOf(client)]);
    client.write(text);
    await eventually('the header arrives', () => world.far.authorized.length > 0);
    await settle(turns);
    world.near.pool.current(world.far.key.publicKey)?.close();
    if ((await outcome) === text) answered.push(text);
    client.destroy();
  }
  for (const text of chunks) assert.ok(got.filter((one) => one.includes(text)).length <= 1, got.join(' '));
  assert.ok(answered.length > 0 && answered.every((text) => got.includes(text)), `${answered.join()} of ${got.join()}`);
});
