/** Pitfalls of the engine that the transport works around, with a test for each. */
import assert from 'node:assert/strict';
import { type ChildProcess, fork } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { networkInterfaces } from 'node:os';
import { type TestContext, test } from 'node:test';
import { fromHex, toHex } from '../../../../src/foundation/bytes.ts';
import { type Clock, systemClock } from '../../../../src/foundation/clock.ts';
import { KeyPair } from '../../../../src/foundation/identity/keys.ts';
import { silentLog } from '../../../../src/foundation/log.ts';
import { SPARE_ACCEPTS } from '../../../../src/network/transport/quic/acceptor.ts';
import { STUCK_GRACE_MS } from '../../../../src/network/transport/quic/native-connection.ts';
import { NativeQuicEndpoint } from '../../../../src/network/transport/quic/native-endpoint.ts';
import type { Connection } from '../../../../src/network/transport/types.ts';
import { eventually } from '../../../support/eventually.ts';
import { standsStill } from '../../../support/stands-still.ts';
import { clockWithoutDialTimeouts, connect, type Harness, openPair, readAll, startNode } from '../world.ts';
import type { Command, Reply } from './child-node.ts';

const MIB = 1024 * 1024;
/** Longer than a test may run … */
const LONG_IDLE_MS = 600_000;
/** … before it times out. */
const LIMITED = { timeout: 120_000 };

function harness(idleTimeoutMs: number, host = '127.0.0.1', clock: Clock = clockWithoutDialTimeouts): Harness {
  return {
    create: (key, options) =>
      new NativeQuicEndpoint({ key, host, port: 0, idleTimeoutMs, ...options }, { log: silentLog, clock }),
    silentAddress: async () => ({ host, port: 1 }),
  };
}

interface Child {
  readonly process: ChildProcess;
  readonly port: number;
  readonly key: Uint8Array;
  readonly exited: Promise<unknown>;
  ask(command: Command): Promise<Reply>;
}

async function startChild(t: TestContext, idleTimeoutMs: number): Promise<Child> {
  const child = fork(new URL('child-node.ts', import.meta.url), [String(idleTimeoutMs)]);
  t.after(() => child.kill('SIGKILL'));
  const exited = once(child, 'exit');
  const heard = (): Promise<Reply> => new Promise((resolve) => child.once('message', (reply: Reply) => resolve(reply)));
  const { port = 0, key = '' } = await heard();
  async function ask(command: Command): Promise<Reply> {
    child.send(command);
    return await heard();
  }
  return { process: child, port, key: fromHex(key) ?? new Uint8Array(), exited, ask };
}

/** Reproducible noise: the minimal standard generator of Park and Miller. */
function lehmer(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return state;
  };
}

test('with 96 MiB for a paused reader, memory stays flat on both sides and no byte is lost', async (t) => {
  const node = await startNode(t, harness(LONG_IDLE_MS));
  const child = await startChild(t, LONG_IDLE_MS);
  const connection = await node.endpoint.dial({ host: '127.0.0.1', port: child.port }, child.key);
  const stream = await connection.openStream();
  const before = { here: process.memoryUsage.rss(), there: (await child.ask({ do: 'memory' })).rss ?? 0 };
  const block = Buffer.alloc(MIB);
  let written = 0;
  const writing = (async () => {
    for (; written < 96; written++) if (!stream.write(block)) await once(stream, 'drain');
    stream.end();
  })();
  await child.ask({ do: 'accepted' });
  await standsStill(
    () => written,
    async () => {
      const other = await connection.openStream();
      other.end(block);
      assert.equal((await readAll(other)).length, MIB);
    },
  );
  const after = { here: process.memoryUsage.rss(), there: (await child.ask({ do: 'memory' })).rss ?? 0 };
  assert.ok(written < 32, `the writer ran ${written} MiB ahead`);
  assert.ok(after.there - before.there < 32 * MIB, `the reader grew by ${(after.there - before.there) / MIB} MiB`);
  assert.ok(after.here - before.here < 32 * MIB, `the writer grew by ${(after.here - before.here) / MIB} MiB`);
  const [{ bytes }] = await Promise.all([child.ask({ do: 'drain' }), writing]);
  assert.equal(bytes, 96 * MIB);
});

test('dozens of paused readers do not block other streams of their connection', async (t) => {
  const [a, b] = await Promise.all([startNode(t, harness(LONG_IDLE_MS)), startNode(t, harness(LONG_IDLE_MS))]);
  const pair = await connect(a, b);
  const block = Buffer.alloc(4 * MIB);
  for (let i = 0; i < 36; i++) {
    const { ours } = await openPair(pair);
    ours.on('error', () => {}).write(block);
  }
  const { ours, theirs } = await openPair(pair);
  ours.end(Buffer.alloc(8 * MIB, 7));
  assert.ok((await readAll(theirs)).equals(Buffer.alloc(8 * MIB, 7)));
});

test('more unfinished handshakes than pending accept calls do not block others', LIMITED, async (t) => {
  const server = await startNode(t, harness(LONG_IDLE_MS));
  const [attacker, honest] = await Promise.all([
    startNode(t, harness(LONG_IDLE_MS)),
    startNode(t, harness(LONG_IDLE_MS)),
  ]);
  // Only the attacker's first datagrams reach the server.
  const trap = createSocket('udp4').bind(0, '127.0.0.1');
  await once(trap, 'listening');
  t.after(() => trap.close());
  const sources = new Set<string>();
  const flooded = new Promise<void>((resolve) => {
    trap.on('message', (datagram: Buffer) => {
      const connectionId = toHex(datagram.subarray(6, 6 + (datagram[5] ?? 0)));
      if (sources.has(connectionId)) return;
      sources.add(connectionId);
      trap.send(datagram, server.endpoint.address.port, '127.0.0.1');
      if (sources.size === 2 * SPARE_ACCEPTS) resolve();
    });
  });
  const giveUp = new AbortController();
  const address = { host: '127.0.0.1', port: trap.address().port };
  let ended = 0;
  const dials = Array.from({ length: 2 * SPARE_ACCEPTS }, async () => {
    await assert.rejects(attacker.endpoint.dial(address, server.key.publicKey, { signal: giveUp.signal }));
    ended++;
  });
  await flooded;
  await connect(honest, server);
  assert.equal(ended, 0, 'the unfinished handshakes timed out first');
  giveUp.abort();
  await Promise.all(dials);
});

test('noise on the port, similar to QUIC or not, has no effect', async (t) => {
  const server = await startNode(t, harness(LONG_IDLE_MS));
  const honest = await startNode(t, harness(LONG_IDLE_MS));
  const before = await connect(honest, server);
  const socket = createSocket('udp4');
  t.after(() => socket.close());
  const random = lehmer(1);
  for (let i = 0; i < 3_000; i++) {
    const datagram = Buffer.from(Array.from({ length: 1 + (random() % 1300) }, () => random() % 256));
    // A third starts like a long header of QUIC version 1, a third like a short header.
    if (i % 3 === 0) datagram[0] = 0xc0 | (random() % 64);
    if (i % 3 === 0 && datagram.length > 5) datagram.writeUInt32BE(1, 1);
    if (i % 3 === 1) datagram[0] = 0x40 | (random() % 64);
    await new Promise((resolve) => socket.send(datagram, server.endpoint.address.port, '127.0.0.1', resolve));
  }
  for (const pair of [before, await connect(honest, server)]) (await openPair(pair)).ours.destroy();
});

test('keep-alives keep an idle connection open, and a crashed peer is noticed', LIMITED, async (t) => {
  const idleTimeoutMs = 2000;
  const node = await startNode(t, harness(idleTimeoutMs));
  const accept = async () => {
    const child = await startChild(t, idleTimeoutMs);
    const dial = child.ask({ do: 'dial', port: node.endpoint.address.port, key: toHex(node.key.publicKey) });
    const [connection] = await Promise.all([node.accepted(), dial]);
    return { child, connection };
  };
  const alive = await accept();
  const frozen = await accept();
  let ended = false;
  void alive.connection.closed.then(() => {
    ended = true;
  });
  // The other connection is idle for longer and still sends keep-alives.
  frozen.child.process.kill('SIGSTOP');
  await frozen.connection.closed;
  assert.equal(ended, false);
  alive.child.process.kill('SIGKILL');
  await alive.child.exited;
  await alive.connection.closed;
});

for (const role of ['dialer', 'listener'] as const) {
  test(`a process that stops and exits immediately as ${role} closes its connections`, LIMITED, async (t) => {
    const node = await startNode(t, harness(LONG_IDLE_MS));
    const child = await startChild(t, LONG_IDLE_MS);
    let connection: Connection;
    if (role === 'listener') {
      connection = await node.endpoint.dial({ host: '127.0.0.1', port: child.port }, child.key);
    } else {
      const { port } = node.endpoint.address;
      const dial = child.ask({ do: 'dial', port, key: toHex(node.key.publicKey) });
      [connection] = await Promise.all([node.accepted(), dial]);
    }
    child.process.send({ do: 'stop', exit: true } satisfies Command);
    await child.exited;
    await connection.closed;
  });
}

test('after a stop the process exits, even with open streams and dials', LIMITED, async (t) => {
  const node = await startNode(t, harness(LONG_IDLE_MS));
  const child = await startChild(t, LONG_IDLE_MS);
  const pair = await node.endpoint.dial({ host: '127.0.0.1', port: child.port }, child.key);
  const stream = await pair.openStream();
  stream.write(Buffer.alloc(8 * MIB));
  await child.ask({ do: 'dial', port: node.endpoint.address.port, key: toHex(node.key.publicKey) });
  const silent = createSocket('udp4').bind(0, '127.0.0.1');
  await once(silent, 'listening');
  t.after(() => silent.close());
  await child.ask({ do: 'dial-silence', port: silent.address().port });
  child.process.send({ do: 'stop', exit: false } satisfies Command);
  assert.deepEqual(await child.exited, [0, null]);
});

test('the address can still be read after a stop, although the engine would abort the process', async (t) => {
  const node = await startNode(t, harness(LONG_IDLE_MS));
  const { port } = node.endpoint.address;
  await node.stop();
  assert.equal(node.endpoint.address.port, port);
});

test('destroying a stream with an open half resets it at the other side immediately', async (t) => {
  const [a, b] = await Promise.all([startNode(t, harness(LONG_IDLE_MS)), startNode(t, harness(LONG_IDLE_MS))]);
  const { ours, theirs } = await openPair(await connect(a, b));
  // A pending read in the engine delays "stop sending", and the reset must not wait for it.
  ours.resume();
  theirs.resume();
  const closed = new Promise((resolve) => theirs.once('close', resolve));
  ours.destroy();
  await closed;
  assert.equal(Reflect.get(theirs.errored ?? {}, 'code'), 'stream_reset');
});

/** Gives stuck streams no grace period. */
const noGraceClock: Clock = {
  now: () => systemClock.now(),
  monotonic: () => systemClock.monotonic(),
  after: (ms, run) => clockWithoutDialTimeouts.after(ms === STUCK_GRACE_MS ? 0 : ms, run),
};

test('a peer that does not release destroyed streams loses the connection', LIMITED, async (t) => {
  const [a, b] = await Promise.all([
    startNode(t, harness(LONG_IDLE_MS, '127.0.0.1', noGraceClock)),
    startNode(t, harness(LONG_IDLE_MS, '127.0.0.1', noGraceClock)),
  ]);
  const pair = await connect(a, b);
  for (let i = 0; i <= 128; i++) {
    const ours = await pair.client.openStream();
    ours.end('?');
    await once(ours.resume(), 'finish');
    ours.destroy();
  }
  await pair.server.closed;
});

test('many streams that end together do not cost the connection', async (t) => {
  /** Running grace periods: on a busy machine the streams may need several. */
  const graces = new Set<object>();
  const clock: Clock = {
    now: () => systemClock.now(),
    monotonic: () => systemClock.monotonic(),
    after(ms, run) {
      if (ms !== STUCK_GRACE_MS) return clockWithoutDialTimeouts.after(ms, run);
      const grace = { cancel: () => void graces.delete(grace) };
      graces.add(grace);
      return grace;
    },
  };
  const slow = harness(LONG_IDLE_MS, '127.0.0.1', clock);
  const [a, b] = await Promise.all([startNode(t, slow), startNode(t, slow)]);
  const pair = await connect(a, b);
  const pairs = await Promise.all(Array.from({ length: 1000 }, () => openPair(pair)));
  const ended = pairs.map(({ theirs }) => new Promise((resolve) => theirs.once('close', resolve)));
  for (const { ours, theirs } of pairs) {
    theirs.resume();
    ours.resume().destroy();
  }
  await Promise.all(ended);
  await eventually('the last grace period ended', () => graces.size === 0);
  const { ours, theirs } = await openPair(pair);
  ours.end('still here');
  assert.equal(String(await readAll(theirs)), 'still here');
});

test('an empty host listens on IPv6 if available, and on IPv4 at the same port', async (t) => {
  const loopbacks = Object.values(networkInterfaces())
    .flatMap((found) => found ?? [])
    .filter(({ internal }) => internal);
  const everywhere = await startNode(t, harness(LONG_IDLE_MS, ''));
  const caller = await startNode(t, harness(LONG_IDLE_MS));
  const { port } = everywhere.endpoint.address;
  for (const host of ['127.0.0.1', ...(loopbacks.some(({ address }) => address === '::1') ? ['::1'] : [])]) {
    const [client, server] = await Promise.all([
      caller.endpoint.dial({ host, port }, everywhere.key.publicKey),
      everywhere.accepted(),
    ]);
    assert.equal(client.path.remote.host, host);
    assert.equal(server.path.remote.host, host);
  }
});

test('an address in use, or of another machine, is a clear error', async (t) => {
  const node = await startNode(t, harness(LONG_IDLE_MS));
  const { port } = node.endpoint.address;
  const key = KeyPair.generate();
  const second = new NativeQuicEndpoint({ key, host: '127.0.0.1', port }, { log: silentLog });
  await assert.rejects(second.start(), {
    code: 'address_in_use',
    message: new RegExp(`127\\.0\\.0\\.1:${port}.*quic_listen_addr`),
  });
  const elsewhere = new NativeQuicEndpoint({ key, host: '192.0.2.1', port: 0 }, { log: silentLog });
  await assert.rejects(elsewhere.start(), { code: 'network_unavailable', exit: 1 });
});

test("the garbage collector accounts for the engine's memory of a connection", LIMITED, async (t) => {
  const [here, there] = [await startNode(t, harness(LONG_IDLE_MS)), await startNode(t, harness(LONG_IDLE_MS))];
  const before = process.memoryUsage().external;
  const pairs = [await connect(here, there), await connect(here, there)];
  const counted = process.memoryUsage().external - before;
  assert.ok(counted > 2 * pairs.length * 370_000, `${counted} bytes`);
});
