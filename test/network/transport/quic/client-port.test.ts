import assert from 'node:assert/strict';
import { networkInterfaces } from 'node:os';
import { test } from 'node:test';
import { base58 } from '@scure/base';
import { KeyPair } from '../../../../src/foundation/identity/keys.ts';
import { silentLog as log } from '../../../../src/foundation/log.ts';
import type { EngineConnection } from '../../../../src/network/transport/engine-connection.ts';
import { clientPort } from '../../../../src/network/transport/quic/dialer.ts';
import type { QuicEngine } from '../../../../src/network/transport/quic/engine.ts';
import { NativeQuicEndpoint } from '../../../../src/network/transport/quic/native-endpoint.ts';
import type { Connection } from '../../../../src/network/transport/types.ts';
import { idle } from '../../../support/idle.ts';
import { TestClock } from '../../../support/test-clock.ts';
import { clockWithoutDialTimeouts as clock } from '../world.ts';

const OURS = KeyPair.generate().publicKey;
const PEER_ID_HEADER = Uint8Array.of(0x00, 0x24, 0x08, 0x01, 0x12, 0x20);

/** An engine with a server that a node with this key reaches from this port, or no node. */
function engineReachedBy(key: Uint8Array | null, port: number) {
  const state = { aborted: 0, servers: 0 };
  const connection = (remoteKey: Uint8Array): EngineConnection => ({
    inboundStream: () => new Promise(() => {}),
    outboundStream: () => new Promise(() => {}),
    remoteMultiaddr: () =>
      `/ip6/::1/udp/${port}/quic-v1/p2p/${base58.encode(Buffer.concat([PEER_ID_HEADER, remoteKey]))}`,
    rtt: () => 0,
    stats: () => ({ udpTxDatagrams: 0, udpTxBytes: 0, udpRxBytes: 0, pathSentPackets: 0, pathLostPackets: 0 }),
    closed: () => new Promise(() => {}),
    abort: () => void state.aborted++,
  });
  class Server {
    inboundConnection = (): Promise<EngineConnection> =>
      key === null ? new Promise(() => {}) : Promise.resolve(connection(key));
    port = (): number => 1;
    stats = () => ({ acceptedHandshakes: 0 });
    abort = async (): Promise<void> => void state.servers++;
  }
  class Client {
    outboundConnection = (): Promise<EngineConnection> => Promise.resolve(connection(OURS));
    abort(): void {}
  }
  const engine: QuicEngine = { Client, Server, QuinnConfig: Server };
  return { state, client: new Client(), parts: { engine, config: {} } };
}

test('the port of IPv6 dials is the port that peers see', async (t) => {
  const isHere = Object.values(networkInterfaces()).some((all) => all?.some(({ address }) => address === '::1'));
  if (!isHere) return t.skip('needs IPv6 on this machine');
  const ours = new NativeQuicEndpoint({ key: KeyPair.generate(), host: '127.0.0.1', port: 0 }, { log, clock });
  const key = KeyPair.generate();
  const theirs = new NativeQuicEndpoint({ key, host: '::1', port: 0 }, { log, clock });
  const { promise: accepted, resolve } = Promise.withResolvers<Connection>();
  theirs.onConnection(resolve);
  await assert.rejects(ours.ipv6DialPort(), { code: 'connect_failed' });
  for (const endpoint of [ours, theirs]) {
    await endpoint.start();
    t.after(() => endpoint.stop());
  }
  const port = await ours.ipv6DialPort();
  await ours.dial(theirs.address, key.publicKey);
  assert.deepEqual((await accepted).path.remote, { host: '::1', port });
  assert.equal(await ours.ipv6DialPort(), port);
});

test('another program that connects first is rejected, and all sockets are closed', async () => {
  const own = engineReachedBy(OURS, 4000);
  assert.equal(await clientPort(own.client, own.parts, new TestClock()), 4000);
  const other = engineReachedBy(KeyPair.generate().publicKey, 4000);
  await assert.rejects(clientPort(other.client, other.parts, new TestClock()), { code: 'connect_failed' });
  for (const { state } of [own, other]) assert.deepEqual(state, { aborted: 2, servers: 1 });
});

test('without any connection it times out', async () => {
  const silent = engineReachedBy(null, 4000);
  const testClock = new TestClock();
  const failed = assert.rejects(clientPort(silent.client, silent.parts, testClock), { code: 'timeout' });
  await idle();
  await testClock.run(10_000);
  await failed;
  assert.deepEqual(silent.state, { aborted: 1, servers: 1 });
});
