import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { type Duplex, Readable } from 'node:stream';
import { type TestContext, test } from 'node:test';
import { LOOK_MS } from '../../../src/network/peers/path-health.ts';
import { callWorld, webService } from '../../support/call-world.ts';
import { eventually } from '../../support/eventually.ts';
import { scaled } from '../../support/scale.ts';
import { TestClock } from '../../support/test-clock.ts';

const MIB = 1024 * 1024;
const BIG_BYTES = scaled(40, 200) * MIB;
/** Limit on the bytes of a call that two daemons buffer: link windows and some buffers. */
const MAX_HELD_BYTES = 8 * MIB;
const CHUNK = Buffer.alloc(64 * 1024, 'x');

/** A source of 200 MB that reports how much was read. */
function bigSource(): { readonly source: Readable; readonly taken: () => number } {
  let taken = 0;
  const source = new Readable({
    read() {
      if (taken >= BIG_BYTES) this.push(null);
      else {
        taken += CHUNK.length;
        this.push(CHUNK);
      }
    },
  });
  return { source, taken: () => taken };
}

/** The sockets to bound services, which show bytes in system buffers. */
function upstreamSockets(t: TestContext): readonly Socket[] {
  const sockets: Socket[] = [];
  const onSocket = (message: unknown): void => {
    const { socket } = message as { readonly socket: Socket };
    sockets.push(socket);
  };
  subscribe('net.client.socket', onSocket);
  t.after(() => unsubscribe('net.client.socket', onSocket));
  return sockets;
}

function sum(sockets: readonly Socket[], bytes: (socket: Socket) => number): number {
  return sockets.reduce((total, socket) => total + bytes(socket), 0);
}

/** Waits until a number stops changing. */
async function settled(value: () => number): Promise<number> {
  let last = -1;
  await eventually('a number stops changing', () => {
    const same = value() === last;
    last = value();
    return same;
  });
  return last;
}

test('a paused reader throttles a large download, which arrives completely', async (t) => {
  const world = await callWorld(t);
  const upstream = upstreamSockets(t);
  const big = bigSource();
  const service = await webService(t, (_request, response) => big.source.pipe(response));
  world.bound.set(world.remote, service.bound);
  const { body } = await world.call();
  let read = 0;
  let most = 0;
  const pauses = [0, MIB, BIG_BYTES * 0.25, BIG_BYTES * 0.6];
  for await (const chunk of body as AsyncIterable<Buffer>) {
    if (pauses[0] !== undefined && read >= pauses[0]) {
      pauses.shift();
      await settled(big.taken);
    }
    most = Math.max(most, sum(upstream, ({ bytesRead }) => bytesRead) - read);
    read += chunk.length;
  }
  assert.equal(read, BIG_BYTES);
  assert.ok(most > 0 && most < MAX_HELD_BYTES, `${(most / MIB).toFixed(1)} MiB were buffered`);
});

test('a slow service throttles a large upload, which arrives completely', async (t) => {
  const world = await callWorld(t);
  const upstream = upstreamSockets(t);
  const big = bigSource();
  let read = 0;
  let most = 0;
  const held = (): number => big.taken() - sum(upstream, (socket) => socket.bytesWritten - socket.writableLength);
  const service = await webService(t, (request, response) => {
    const pauses = [0, MIB, BIG_BYTES * 0.6];
    request.on('data', (chunk: Buffer) => {
      most = Math.max(most, held());
      read += chunk.length;
      if (pauses[0] === undefined || read < pauses[0]) return;
      pauses.shift();
      request.pause();
      void settled(big.taken).then(() => {
        most = Math.max(most, held());
        request.resume();
      });
    });
    request.once('end', () => response.end('done'));
  });
  world.bound.set(world.remote, service.bound);
  const { body } = await world.call({ method: 'POST', body: big.source });
  assert.equal((await body.setEncoding('utf8').toArray()).join(''), 'done');
  assert.equal(read, BIG_BYTES);
  assert.ok(most > 0 && most < MAX_HELD_BYTES, `${(most / MIB).toFixed(1)} MiB were buffered`);
});

test('a long upload does not count as a dead path', async (t) => {
  const clock = new TestClock();
  const world = await callWorld(t, { clock });
  let read = 0;
  const service = await webService(t, (request, response) => {
    // Check the path after each part. Only acknowledgements come back during this time.
    request.on('data', (chunk: Buffer) => {
      read += chunk.length;
      clock.advance(LOOK_MS);
    });
    request.once('end', () => response.end('done'));
  });
  world.bound.set(world.remote, service.bound);
  const { body } = await world.call({ method: 'POST', body: Readable.from(Array<Buffer>(200).fill(CHUNK)) });
  assert.equal((await body.setEncoding('utf8').toArray()).join(''), 'done');
  assert.equal(read, 200 * CHUNK.length);
});

test('bytes stream in both directions concurrently', async (t) => {
  const world = await callWorld(t);
  const service = await webService(t, (request, response) => {
    response.flushHeaders();
    request.pipe(response);
  });
  world.bound.set(world.remote, service.bound);
  const upload = new Readable({ read: () => {} });
  const { body } = await world.call({ method: 'POST', body: upload });
  for (const word of ['one', 'two', 'three']) {
    upload.push(word);
    const [chunk] = (await once(body, 'data')) as [Buffer];
    assert.equal(chunk.toString(), word);
  }
  upload.push(null);
  await once(body, 'end');
});

test('a reader that disconnects aborts the work of the service', async (t) => {
  const world = await callWorld(t);
  const big = bigSource();
  const gone = Promise.withResolvers<void>();
  const service = await webService(t, (_request, response) => {
    response.once('close', () => gone.resolve());
    big.source.pipe(response);
  });
  world.bound.set(world.remote, service.bound);
  const { body } = await world.call();
  await once(body, 'data');
  body.destroy();
  await gone.promise;
  assert.ok(big.taken() < BIG_BYTES);
  await eventually('the slot is free', () => world.server.active === 0);
});

test('the head of a response and the first bytes of its body are written together', async (t) => {
  const world = await callWorld(t);
  const service = await webService(t, (_request, response) => response.end('all there is'));
  world.bound.set(world.remote, service.bound);
  // The engine combines writes; links in memory do not.
  const link = await world.near.links.open(world.local, world.remote, 'http');
  const streams = Reflect.getPrototypeOf(link);
  assert.ok(streams);
  const writeOne: unknown = Reflect.get(streams, '_write');
  assert.ok(typeof writeOne === 'function');
  const together: string[] = [];
  Reflect.set(
    streams,
    '_writev',
    function writev(this: Duplex, pieces: readonly { chunk: Buffer }[], done: () => void) {
      const bytes = Buffer.concat(pieces.map(({ chunk }) => chunk));
      together.push(bytes.toString('latin1'));
      Reflect.apply(writeOne, this, [bytes, 'utf8', done]);
    },
  );
  t.after(() => Reflect.deleteProperty(streams, '_writev'));
  const { body } = await world.call();
  assert.equal((await body.setEncoding('utf8').toArray()).join(''), 'all there is');
  assert.match(together.join('\n'), /^HTTP\/1\.1 200 OK[^]*\r\n\r\nall there is$/);
  link.destroy();
});
