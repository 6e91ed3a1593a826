/** Real floods of first packets, from another address of this machine. */
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
import { patient } from '../world.ts';

const FLOODER = '127.0.0.9';
const FLOODER_HEX = '7f000009';

/** So soon the engine gives up what is unfinished, and comes to what waits behind it. */
const IDLE_TIMEOUT_MS = 5_000;

/** Sends first packets to a port, a few each millisecond, until the test ends. */
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

test('who floods is found and kept out by the kernel until that is over; others come through', async (t) => {
  const clock = new TestClock();
  // A socket that nobody reads: what comes in stays to be seen.
  const victim = createSocket('udp4').bind(0, '127.0.0.1');
  await once(victim, 'listening');
  t.after(() => victim.close());
  const came = new Tally();
  victim.on('message', (_, { address }) => came.add(address));
  const { port } = victim.address();
  const guard = new InitialGuard(() => udpDescriptors(port), clock, silentLog);
  t.after(() => guard.stop());
  await flood(t, port);
  await eventually('the flooder is refused', async () => {
    clock.advance(5_000);
    await guard.alarm();
    return guard.refused.has(FLOODER_HEX);
  });
  assert.deepEqual([...guard.refused], [FLOODER_HEX]);
  const other = createSocket('udp4').bind(0, '127.0.0.1');
  await once(other, 'listening');
  t.after(() => other.close());
  const forge = await InitialForge.create();
  const others = () => came.of('127.0.0.1');
  other.send(forge.next(), port, '127.0.0.1');
  await eventually('the packet of somebody else', () => others() === 1);
  // What stood in the queue before came before it; behind it there is nothing but ours.
  const before = came.of(FLOODER);
  other.send(forge.next(), port, '127.0.0.1');
  await eventually('another one', () => others() === 2);
  assert.equal(came.of(FLOODER), before);
  clock.advance(600_000);
  await eventually('the flooder is let in again', () => came.of(FLOODER) > before + 10);
  assert.equal(guard.refused.size, 0);
});

test('an endpoint under a flood of first packets serves the connections that stand, and lets others in', async (t) => {
  const node = async (): Promise<NativeQuicEndpoint> => {
    const options = { key: KeyPair.generate(), host: '127.0.0.1', port: 0 };
    const endpoint = new NativeQuicEndpoint(options, { log: silentLog, clock: patient });
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
    { log, clock: patient },
  );
  server.onConnection((connection) => connection.onStream((stream) => stream.pipe(stream)));
  await server.start();
  t.after(() => server.stop());
  const [standing, late] = [await node(), await node()];
  const connection = await standing.dial(server.address, key.publicKey);
  await flood(t, server.address.port);
  await eventually('the flood is noticed', () => warned.some((message) => message.includes('flood')));
  const stream = await connection.openStream();
  stream.end('still served');
  assert.equal(String(await stream.toArray().then((chunks) => Buffer.concat(chunks))), 'still served');
  await eventually('somebody else gets in', () =>
    late.dial(server.address, key.publicKey).then(
      () => true,
      () => false,
    ),
  );
});
