/** Real floods of first packets from another local address. */
import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { type TestContext, test } from 'node:test';
import { KeyPair } from '../../../../src/foundation/identity/keys.ts';
import { silentLog } from '../../../../src/foundation/log.ts';
import { Tally } from '../../../../src/foundation/tally.ts';
import { InitialGuard } from '../../../../src/network/transport/quic/initial-guard.ts';
import { NativeQuicEndpoint } from '../../../../src/network/transport/quic/native-endpoint.ts';
import { udpDescriptors } from '../../../../src/network/transport/quic/receive-memory.ts';
import { eventually } from '../../../support/eventually.ts';
import { InitialForge } from '../../../support/quic-initial.ts';
import { TestClock } from '../../../support/test-clock.ts';
import { clockWithoutDialTimeouts } from '../world.ts';

const FLOODER = '127.0.0.9';
const FLOODER_HEX = '7f000009';

/** A short timeout of the engine for unfinished handshakes, so that it soon processes the next ones. */
const IDLE_TIMEOUT_MS = 5_000;

/** Sends a few first packets per millisecond to a port until the test ends. */
async function flood(t: TestContext, port: number): Promise<void> {
  const forge = await InitialForge.create();
  const socket = createSocket('udp4').bind(0, FLOODER);
  await once(socket, 'listening');
  const timer = setInterval(() => {
    for (let i = 0; i < 3; i++) socket.send(forge.next(), port, '127.0.0.1');
  }, 1);
  t.after(() => {
    clearInterval(timer);
    socket.close();
  });
}

test('a flooding source is detected and blocked in the kernel until it stops; other sources pass', async (t) => {
  const clock = new TestClock();
  // A socket without a reader, so that received packets stay visible.
  const victim = createSocket('udp4').bind(0, '127.0.0.1');
  await once(victim, 'listening');
  t.after(() => victim.close());
  const received = new Tally();
  victim.on('message', (_, { address }) => received.add(address));
  const { port } = victim.address();
  const guard = new InitialGuard(() => udpDescriptors(port), clock, silentLog);
  t.after(() => guard.stop());
  await flood(t, port);
  await eventually('the flooding source is blocked', async () => {
    clock.advance(5_000);
    await guard.alarm();
    return guard.refused.has(FLOODER_HEX);
  });
  assert.deepEqual([...guard.refused], [FLOODER_HEX]);
  const other = createSocket('udp4').bind(0, '127.0.0.1');
  await once(other, 'listening');
  t.after(() => other.close());
  const forge = await InitialForge.create();
  const others = () => received.of('127.0.0.1');
  other.send(forge.next(), port, '127.0.0.1');
  await eventually('the packet of another source', () => others() === 1);
  // Packets received earlier were queued before it. After it only packets of this test arrive.
  const before = received.of(FLOODER);
  other.send(forge.next(), port, '127.0.0.1');
  await eventually('another packet of it', () => others() === 2);
  assert.equal(received.of(FLOODER), before);
  clock.advance(600_000);
  await eventually('the flooding source is accepted again', () => received.of(FLOODER) > before + 10);
  assert.equal(guard.refused.size, 0);
});

test('during a flood of first packets an endpoint serves open connections and accepts new ones', async (t) => {
  const node = async (): Promise<NativeQuicEndpoint> => {
    const options = { key: KeyPair.generate(), host: '127.0.0.1', port: 0 };
    const endpoint = new NativeQuicEndpoint(options, { log: silentLog, clock: clockWithoutDialTimeouts });
    endpoint.onConnection((connection) => connection.onStream((stream) => stream.pipe(stream)));
    await endpoint.start();
    t.after(() => endpoint.stop());
    return endpoint;
  };
  const key = KeyPair.generate();
  const warned: string[] = [];
  const log = { ...silentLog, warn: (_fields: object, message: string) => void warned.push(message) };
  const server = new NativeQuicEndpoint(
    { key, host: '127.0.0.1', port: 0, idleTimeoutMs: IDLE_TIMEOUT_MS },
    { log, clock: clockWithoutDialTimeouts },
  );
  server.onConnection((connection) => connection.onStream((stream) => stream.pipe(stream)));
  await server.start();
  t.after(() => server.stop());
  const [connected, late] = [await node(), await node()];
  const connection = await connected.dial(server.address, key.publicKey);
  await flood(t, server.address.port);
  await eventually('the flood is detected', () => warned.some((message) => message.includes('flood')));
  const stream = await connection.openStream();
  stream.end('still served');
  assert.equal(String(await stream.toArray().then((chunks) => Buffer.concat(chunks))), 'still served');
  await eventually('another node connects', () =>
    late.dial(server.address, key.publicKey).then(
      () => true,
      () => false,
    ),
  );
});
