/** Strangers that connect to the LAN TCP port, and peers that connect too often. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { type Clock, systemClock } from '../../../../src/foundation/clock.ts';
import {
  type AgreementAnswer,
  FrameWriter,
  GREETING_TIMEOUT_MS,
  greet,
  newRequest,
} from '../../../../src/network/transport/lan-tcp/greeting.ts';
import { MAX_CHANNELS } from '../../../../src/network/transport/lan-tcp/lan-tcp-dialer.ts';
import {
  LanTcpListener,
  MAX_AGREEMENTS,
  MAX_AGREEMENTS_PER_CONNECTION,
  MAX_UNMET,
} from '../../../../src/network/transport/lan-tcp/lan-tcp-listener.ts';
import type { Connection, Stream } from '../../../../src/network/transport/types.ts';
import { eventually } from '../../../support/eventually.ts';
import { LeapClock } from '../../../support/leap-clock.ts';
import { TcpServer } from '../../../support/tcp.ts';
import { inbox } from '../world.ts';
import { HOST, LanPeers, newUpgradeState, quicPair } from './world.ts';

const REQUEST = newRequest(HOST);
const MAX_ACCEPTED = 1_024;

/** A listener with one agreement. */
class Listening {
  readonly listener: LanTcpListener;
  readonly connection: Connection;
  readonly streams = inbox<Stream>();
  #answer: AgreementAnswer = { port: 0, name: new Uint8Array() };
  /** The number of received streams. */
  count = 0;

  private constructor(connection: Connection, clock: Clock) {
    this.connection = connection;
    this.listener = new LanTcpListener(() => MAX_ACCEPTED, { clock });
  }

  static async start(t: TestContext, clock: Clock = systemClock): Promise<Listening> {
    const it = new Listening((await quicPair(t)).server, clock);
    it.#answer = (await it.admit(it.connection)) ?? assert.fail();
    t.after(() => it.listener.dismiss(it.connection));
    return it;
  }

  get port(): number {
    return this.#answer.port;
  }

  get name(): Uint8Array {
    return this.#answer.name;
  }

  admit(connection: Connection): Promise<AgreementAnswer | null> {
    const onStream = (stream: Stream): void => {
      this.count++;
      this.streams.push(stream);
    };
    return this.listener.admit(REQUEST, { connection, state: newUpgradeState(), onStream });
  }

  async connect(): Promise<Socket> {
    const socket = connect({ host: HOST, port: this.port, allowHalfOpen: true });
    // The tests only check that it closes.
    socket.on('error', () => {});
    await once(socket, 'connect');
    return socket;
  }

  /** A TCP connection after the greeting. */
  async greeted({ name }: { readonly name: Uint8Array } = this): Promise<Socket> {
    const socket = await this.connect();
    const { promise, resolve } = Promise.withResolvers<void>();
    greet(socket, { ...REQUEST, name }, systemClock, () => resolve());
    await promise;
    socket.resume();
    return socket;
  }

  /** Fails if a LAN peer is no longer served. */
  async serves(): Promise<void> {
    const before = this.listener.channels;
    const socket = await this.greeted();
    socket.write(new FrameWriter().seal('data', Buffer.from('still there?')));
    const stream = await this.streams.next();
    assert.equal(String((await once(stream, 'data'))[0]), 'still there?');
    socket.destroy();
    await eventually('its slot is free again', () => this.listener.channels === before);
  }
}

/** Waits until the other side has closed a TCP connection. Returns the bytes received before that. */
async function closed(socket: Socket): Promise<Buffer> {
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  socket.once('end', () => socket.destroy());
  if (!socket.closed) await new Promise((resolve) => socket.once('close', resolve));
  return Buffer.concat(chunks);
}

test('a client that disconnects without data, or with a partial name, is dropped', async (t) => {
  const it = await Listening.start(t);
  for (const sent of [Buffer.alloc(0), Buffer.alloc(7), it.name, Buffer.concat([it.name, Buffer.alloc(15)])]) {
    const socket = await it.connect();
    socket.end(sent);
    assert.equal((await closed(socket)).length, 0);
  }
  await it.serves();
});

test('a client that names no agreement receives nothing', async (t) => {
  const it = await Listening.start(t);
  for (const name of [Buffer.alloc(16), Buffer.from(it.name).fill(0, 15), Buffer.from('GET / HTTP/1.1\r\n')]) {
    const socket = await it.connect();
    socket.write(Buffer.concat([name, Buffer.alloc(64)]));
    assert.equal((await closed(socket)).length, 0);
  }
  await it.serves();
});

test('a client that knows the name but not the secret gets no further than the greeting', async (t) => {
  const it = await Listening.start(t);
  for (const hello of [Buffer.alloc(20), Buffer.from('0000110000', 'hex'), Buffer.alloc(5000, 0xff)]) {
    const socket = await it.connect();
    socket.write(Buffer.concat([it.name, Buffer.alloc(16), hello, new FrameWriter().seal('data', Buffer.alloc(9))]));
    if (hello.length < 20) socket.end();
    assert.ok((await closed(socket)).length <= 36);
  }
  const socket = await it.connect();
  const { promise, resolve } = Promise.withResolvers<void>();
  greet(socket, { name: it.name, secret: new Uint8Array(32), host: HOST }, systemClock, () => assert.fail());
  socket.once('close', resolve);
  await promise;
  assert.equal(it.count + it.listener.channels, 0);
  await it.serves();
});

test('a reflected hello is rejected', async (t) => {
  const it = await Listening.start(t);
  const socket = await it.connect();
  socket.once('data', (sent: Buffer) => socket.write(sent.subarray(16)));
  socket.write(Buffer.concat([it.name, Buffer.alloc(16)]));
  await closed(socket);
  assert.equal(it.listener.channels, 0);
  await it.serves();
});

test('the replay of a recorded connection fails at either side', async (t) => {
  const recordings: { readonly there: Buffer[]; readonly back: Buffer[] }[] = [];
  let replay: Buffer | null = null;
  let target = 0;
  await using proxy = await TcpServer.start((socket) => {
    if (replay !== null) return void socket.resume().write(replay);
    const on = connect({ host: HOST, port: target, allowHalfOpen: true });
    on.on('error', () => {});
    on.on('close', () => socket.destroy());
    socket.on('close', () => on.destroy());
    const recording = { there: new Array<Buffer>(), back: new Array<Buffer>() };
    recordings.push(recording);
    socket.on('data', (chunk: Buffer) => {
      recording.there.push(Buffer.from(chunk));
      on.write(chunk);
    });
    on.on('data', (chunk: Buffer) => {
      recording.back.push(Buffer.from(chunk));
      socket.write(chunk);
    });
  });
  const change = async (answer: AgreementAnswer): Promise<AgreementAnswer> => {
    target = answer.port;
    return { ...answer, port: proxy.port };
  };
  const pair = await LanPeers.start(t, { change });
  const opened: Stream[] = [];
  for (let i = 0; i < 4; i++) {
    const stream = await pair.stream();
    stream.write('buy one');
    opened.push(stream);
    await once(await pair.incoming(), 'data');
  }
  const recorded = recordings.find(({ there }) => String(Buffer.concat(there)).includes('buy one')) ?? assert.fail();
  const again = connect({ host: HOST, port: target, allowHalfOpen: true });
  again.on('error', () => {});
  again.write(Buffer.concat(recorded.there));
  assert.equal((await closed(again)).length, 36);
  replay = Buffer.concat(recorded.back);
  // Its other connections are not opened again.
  await eventually('no connection is ready', () => pair.local.open(pair.to) === null && !pair.to.state.isReady);
  assert.ok(opened.every((stream) => !stream.destroyed));
  let more = 0;
  void pair.incoming().then(() => more++);
  await quicPair(t);
  assert.equal(more, 0);
});

test('an incomplete greeting times out', async (t) => {
  const clock = new LeapClock();
  const it = await Listening.start(t, clock);
  const sockets: Socket[] = [];
  for (const sent of [Buffer.alloc(0), it.name, Buffer.concat([it.name, Buffer.alloc(16)])]) {
    const socket = await it.connect();
    socket.write(sent);
    sockets.push(socket);
  }
  await once(sockets[2] ?? assert.fail(), 'data');
  clock.pass(GREETING_TIMEOUT_MS);
  await Promise.all(sockets.map(closed));
  await it.serves();
});

test('a greeting that arrives byte by byte succeeds', async (t) => {
  const it = await Listening.start(t);
  await using slow = await TcpServer.start((socket) => {
    const on = connect({ host: HOST, port: it.port, noDelay: true });
    on.on('error', () => {});
    on.on('data', (chunk: Buffer) => chunk.forEach((_, i) => socket.write(chunk.subarray(i, i + 1))));
    socket.on('data', (chunk: Buffer) => chunk.forEach((_, i) => on.write(chunk.subarray(i, i + 1))));
    socket.on('end', () => on.end());
  });
  const socket = connect({ host: HOST, port: slow.port });
  socket.on('error', () => {});
  const { promise, resolve } = Promise.withResolvers<void>();
  greet(socket, { ...REQUEST, name: it.name }, systemClock, () => resolve());
  await promise;
  await eventually('the connection is open', () => it.listener.channels === 1);
  socket.destroy();
  await eventually('the connection is closed', () => it.listener.channels === 0);
});

test('the number of pending greetings is limited', async (t) => {
  const it = await Listening.start(t);
  const waiting = await Promise.all(Array.from({ length: MAX_UNMET }, () => it.connect()));
  await closed(await it.connect());
  assert.ok(waiting.every((socket) => !socket.destroyed && !socket.readableEnded));
  waiting[0]?.destroy();
  await eventually('a slot is free again', async () => {
    const socket = await it.connect();
    socket.write(Buffer.concat([it.name, Buffer.alloc(16)]));
    return (await Promise.race([once(socket, 'data'), closed(socket).then(() => [])])).length > 0;
  });
  for (const socket of waiting) socket.destroy();
  await eventually('the listener serves again', async () => {
    const socket = await it.connect();
    socket.write(Buffer.concat([it.name, Buffer.alloc(16)]));
    return (await Promise.race([once(socket, 'data'), closed(socket).then(() => [])])).length > 0;
  });
  await it.serves();
});

test('an agreement has a limited number of connections, and a closed one frees its slot', async (t) => {
  const it = await Listening.start(t);
  const sockets: Socket[] = [];
  for (let i = 0; i < MAX_CHANNELS; i++) sockets.push(await it.greeted());
  await eventually('all connections are open', () => it.listener.channels === MAX_CHANNELS);
  await closed(await it.greeted());
  assert.equal(it.listener.channels, MAX_CHANNELS);
  sockets[7]?.destroy();
  await eventually('one connection is closed', () => it.listener.channels === MAX_CHANNELS - 1);
  await it.serves();
  it.listener.dismiss(it.connection);
  assert.equal(it.listener.channels, 0);
  await Promise.all(sockets.map(closed));
});

test('removing the last agreement closes the port and all its connections', async (t) => {
  const it = await Listening.start(t);
  const other = (await quicPair(t)).server;
  const second = (await it.admit(other)) ?? assert.fail();
  assert.equal(second.port, it.port);
  const [first, kept, unmet] = [await it.greeted(), await it.greeted(second), await it.connect()];
  await eventually('both connections are open', () => it.listener.channels === 2);
  it.listener.dismiss(it.connection);
  await closed(first);
  assert.equal(it.listener.channels, 1);
  assert.ok(!kept.destroyed);
  await it.greeted(second);
  it.listener.dismiss(other);
  await Promise.all([closed(kept), closed(unmet)]);
  assert.equal(it.listener.channels, 0);
  await assert.rejects(once(connect({ host: HOST, port: it.port }), 'connect'), { code: 'ECONNREFUSED' });
  it.listener.dismiss(other);
});

test('a new request replaces an unused agreement and keeps used ones', async (t) => {
  const it = await Listening.start(t);
  const again = (await it.admit(it.connection)) ?? assert.fail();
  const socket = await it.connect();
  socket.write(Buffer.concat([it.name, Buffer.alloc(16)]));
  assert.equal((await closed(socket)).length, 0);
  let last = again;
  for (let i = 1; i < MAX_AGREEMENTS_PER_CONNECTION; i++) {
    await it.greeted(last);
    await eventually('the agreement is used', () => it.listener.channels === i);
    last = (await it.admit(it.connection)) ?? assert.fail();
  }
  const used = await it.greeted(last);
  await eventually('the agreement is used', () => it.listener.channels === MAX_AGREEMENTS_PER_CONNECTION);
  assert.equal(await it.admit(it.connection), null);
  used.destroy();
  await eventually('the agreement is no longer used', () => it.listener.channels < MAX_AGREEMENTS_PER_CONNECTION);
  assert.notEqual(await it.admit(it.connection), null);
});

test('the number of agreements is limited, even for concurrent requests', async (t) => {
  const it = await Listening.start(t);
  const connections: Connection[] = [];
  for (let i = 0; i <= MAX_AGREEMENTS; i++) connections.push((await quicPair(t)).server);
  t.after(() => connections.forEach((one) => it.listener.dismiss(one)));
  const answers = await Promise.all(connections.map((one) => it.admit(one)));
  assert.equal(answers.filter((answer) => answer === null).length, 2);
  await it.serves();
  const [first] = connections;
  it.listener.dismiss(first ?? assert.fail());
  assert.notEqual(await it.admit(connections.at(-1) ?? assert.fail()), null);
});
