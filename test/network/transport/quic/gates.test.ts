import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { type TestContext, test } from 'node:test';
import type { Address } from '../../../../src/foundation/address.ts';
import { systemClock } from '../../../../src/foundation/clock.ts';
import { KeyPair } from '../../../../src/foundation/identity/keys.ts';
import { silentLog } from '../../../../src/foundation/log.ts';
import {
  GATE_IDLE_MS,
  GATE_SPARE_MS,
  Gates,
  MAX_DIAL_GATES,
  MAX_LENT_GATES,
} from '../../../../src/network/transport/quic/gates.ts';
import { EngineLentPort } from '../../../../src/network/transport/quic/lent-port.ts';
import { NativeQuicEndpoint } from '../../../../src/network/transport/quic/native-endpoint.ts';
import { switchingSockets } from '../../../../src/network/transport/tls/socket.ts';
import type { Connection } from '../../../../src/network/transport/types.ts';
import { UdpLanes } from '../../../../src/network/transport/udp-lane/udp-lanes.ts';
import { type BorrowedPort, udxSockets } from '../../../../src/network/transport/udp-socket.ts';
import { borrowedPorts, connectTo } from '../../../support/borrowed-ports.ts';
import { eventually } from '../../../support/eventually.ts';
import { TestClock } from '../../../support/test-clock.ts';
import { TlsHelper } from '../../../support/tls-helper.ts';

const HOST = '127.0.0.1';
const SIGNAL = new AbortController().signal;

/** A node on borrowed ports, and another one that knows nothing of it. */
async function world(t: TestContext) {
  const helper = await TlsHelper.start(KeyPair.generate());
  t.after(() => helper[Symbol.asyncDispose]());
  const key = KeyPair.generate();
  const overTls = borrowedPorts(key);
  await connectTo(helper, overTls);
  t.after(() => overTls.disconnect());
  const inside = new NativeQuicEndpoint({ key, host: HOST, port: 0 }, { log: silentLog, borrowed: overTls });
  const otherKey = KeyPair.generate();
  const outside = new NativeQuicEndpoint({ key: otherKey, host: HOST, port: 0 }, { log: silentLog });
  const arrived: Connection[] = [];
  for (const one of [inside, outside]) {
    one.onConnection((connection) => {
      arrived.push(connection);
      connection.onStream((stream) => stream.pipe(stream));
    });
    await one.start();
    t.after(() => one.stop());
  }
  return { helper, overTls, inside, outside, key, otherKey, arrived };
}

async function echo(connection: Connection, bytes: Buffer): Promise<Buffer> {
  const stream = await connection.openStream();
  stream.end(bytes);
  return Buffer.concat(await stream.toArray());
}

test('a dial over TLS reports the remote node, which sees the helper', async (t) => {
  const { helper, inside, outside, otherKey, arrived } = await world(t);
  const connection = await inside.dial(outside.address, otherKey.publicKey);
  assert.deepEqual(
    [connection.path.kind, connection.path.remote, connection.path.mayBeWithdrawn],
    ['tls', outside.address, true],
  );
  const text = Buffer.alloc(300_000, 'over TLS ');
  assert.deepEqual(await echo(connection, text), text);
  const [seen] = arrived;
  assert.deepEqual(helper.lentPorts, [seen?.path.remote.port]);
  connection.close();
});

test('all dials use one borrowed port, and a plain dial uses none', async (t) => {
  const { helper, inside, outside, otherKey, arrived } = await world(t);
  const first = await inside.dial(outside.address, otherKey.publicKey);
  const second = await inside.dial(outside.address, otherKey.publicKey);
  assert.equal(helper.lentPorts.length, 1);
  const plain = await inside.dial(outside.address, otherKey.publicKey, { isFromOwnPort: true });
  assert.deepEqual([plain.path.kind, plain.path.mayBeWithdrawn], ['lan', undefined]);
  await eventually('all have arrived', () => arrived.length === 3);
  const isLent = arrived.map(({ path }) => helper.lentPorts.includes(path.remote.port));
  assert.equal(isLent.filter(Boolean).length, 2);
  for (const one of [first, second, plain]) one.close();
});

test('after a return to UDP, connections on borrowed ports live on and new ones use UDP', async (t) => {
  const { overTls, inside, outside, otherKey } = await world(t);
  const before = await inside.dial(outside.address, otherKey.publicKey);
  overTls.leave();
  const after = await inside.dial(outside.address, otherKey.publicKey);
  assert.deepEqual([before.path.kind, after.path.kind], ['tls', 'lan']);
  assert.equal(String(await echo(before, Buffer.from('still here'))), 'still here');
  for (const one of [before, after]) one.close();
});

test('a borrowed port leads a caller to a lent port', async (t) => {
  const { helper, overTls, inside, outside, key, otherKey, arrived } = await world(t);
  const socket = switchingSockets(udxSockets(), overTls)();
  socket.bind(0, '0.0.0.0');
  const port = socket.address()?.port ?? 0;
  // The first datagram opens it.
  await socket.send(Uint8Array.of(0), outside.address.port, HOST);
  const via = socket.handOver?.() ?? undefined;
  await socket.close();
  await eventually('the helper opens the port', () => helper.lentPorts.length === 1);
  const [outer = 0] = helper.lentPorts;
  const lent = new EngineLentPort(
    { host: HOST, port, expectedKey: otherKey.publicKey, via },
    inside.parts,
    systemClock,
  );
  const dialled = await outside.dial({ host: HOST, port: outer }, key.publicKey);
  const echoed = echo(dialled, Buffer.from('hello'));
  const native = await lent.connection();
  const adopted = inside.adopt(native, { outbound: false, way: { kind: 'punched' } });
  assert.equal(String(await echoed), 'hello');
  assert.equal(adopted.path.kind, 'tls');
  assert.notEqual(adopted.path.remote.port, port);
  assert.equal(arrived.length, 1);
  dialled.close();
  await adopted.closed;
  await eventually('the borrowed port is closed with it', () => helper.lentPorts.length === 0);
});

test('another program of this machine cannot send through a gate', async (t) => {
  const { helper, overTls } = await world(t);
  const seen: string[] = [];
  const remote = createSocket('udp4').bind(0, HOST);
  await once(remote, 'listening');
  remote.on('message', (datagram) => seen.push(String(datagram)));
  const [engine, other] = [createSocket('udp4'), createSocket('udp4')];
  t.after(() => [remote, engine, other].map((one) => one.close()));
  const borrowed = overTls.borrow();
  assert.ok(borrowed !== null);
  const gates = new Gates(borrowed, null, systemClock);
  const gate = await gates.gateTo({ host: HOST, port: remote.address().port });
  await eventually('the engine gets through', () => {
    engine.send('engine', gate.port, gate.host);
    return seen.length > 0;
  });
  other.send('other', gate.port, gate.host);
  engine.send('last', gate.port, gate.host);
  await eventually('the last datagram', () => seen.includes('last'));
  assert.equal(seen.includes('other'), false);
  gates.close();
  await eventually('its port is closed', () => helper.lentPorts.length === 0);
});

test('gates are limited: idle ones are evicted, and close after a while', async () => {
  const clock = new TestClock();
  let receive: (datagram: Uint8Array, from: Address) => void = () => {};
  const port: BorrowedPort = {
    isOpen: true,
    send: () => true,
    receive: (handler) => {
      receive = handler;
    },
    close: () => {},
  };
  const dials = new Gates(port, null, clock);
  const at = (n: number): Address => ({ host: '203.0.113.1', port: 1024 + n });
  const first = await dials.gateTo(at(0));
  for (let n = 1; n < MAX_DIAL_GATES; n++) await dials.gateTo(at(n));
  await assert.rejects(dials.gateTo(at(MAX_DIAL_GATES)), /too many/);
  clock.advance(GATE_SPARE_MS);
  await dials.gateTo(at(1));
  await dials.gateTo(at(MAX_DIAL_GATES));
  assert.equal(dials.remoteAt(first), null, 'the one that was idle longest');
  clock.advance(GATE_IDLE_MS);
  assert.notDeepEqual(dials.remoteAt(await dials.gateTo(at(1))), null);
  dials.close();
  const lent = new Gates(port, 9, clock);
  for (let n = 0; n <= MAX_LENT_GATES; n++) receive(Uint8Array.of(1), at(n));
  const known = await Promise.all([lent.gateTo(at(0)), lent.gateTo(at(MAX_LENT_GATES)).catch(() => null)]);
  assert.deepEqual([known[0] === null, known[1]], [false, null]);
  lent.close();
  assert.equal(clock.timers, 0);
});

test('bulk lanes are refused on borrowed ports', async (t) => {
  const { overTls, inside, outside, otherKey } = await world(t);
  const create = switchingSockets(udxSockets(), overTls);
  const openSocket = create();
  openSocket.bind(0, HOST);
  const lanes = new UdpLanes({
    clock: systemClock,
    records: { openSocket, plainSocket: create },
    outerPort: () => 0,
  });
  t.after(async () => {
    await lanes.stop();
    await openSocket.close();
  });
  const overPort = await inside.dial(outside.address, otherKey.publicKey);
  assert.equal(lanes.offer(overPort.path), null);
  assert.equal(lanes.take(new Uint8Array(lanes.offerBytes), overPort.path, SIGNAL), null);
  const plain = await inside.dial(outside.address, otherKey.publicKey, { isFromOwnPort: true });
  const offered = lanes.offer(plain.path);
  assert.notEqual(offered, null, 'a path in the LAN still has lanes');
  offered?.cancel();
  for (const one of [overPort, plain]) one.close();
});
