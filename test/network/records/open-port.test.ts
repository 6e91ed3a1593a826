import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { test } from 'node:test';
import { OBSERVE_TIMEOUT_MS } from '../../../src/network/reachability/port-lender.ts';
import { LossyPath } from '../../support/lossy-path.ts';
import { DhtTestnet } from '../../support/testnet-dht.ts';

const LOOPBACK = '127.0.0.1';

test('asked nodes see an additional port, and the port is free again once closed', async () => {
  await using net = await DhtTestnet.start(2);
  const [{ dht }, other] = [net.at(0), net.at(1)];
  const opened = dht.openPort(4);
  const { port } = opened;
  assert.deepEqual(await opened.seenBy(other.dht.address), { host: LOOPBACK, port });
  assert.deepEqual(await opened.identify(other.dht.address), await dht.identify(other.dht.address));
  assert.deepEqual(await opened.neighbors(other.dht.address), [dht.address]);

  const stranger = createSocket('udp4');
  stranger.bind(0, LOOPBACK);
  await once(stranger, 'listening');
  const from = { host: LOOPBACK, port: stranger.address().port };
  const arrived = once(stranger, 'message');
  await opened.send(Uint8Array.of(1, 2, 3), from);
  const [datagram]: unknown[] = await arrived;
  assert.deepEqual(datagram, Buffer.of(1, 2, 3), 'the datagram has no prefix');

  const token = Uint8Array.of(4, 5, 6);
  const received = opened.waitForDatagram(token, from, AbortSignal.timeout(OBSERVE_TIMEOUT_MS * 10));
  stranger.send(Buffer.of(9, 9), port, LOOPBACK);
  stranger.send(token, port, LOOPBACK);
  assert.equal(await received, true);
  assert.equal(await opened.waitForDatagram(token, from, AbortSignal.abort()), false);

  await opened.close();
  stranger.close();
  const next = createSocket('udp4');
  next.bind(port, LOOPBACK);
  await once(next, 'listening');
  next.close();
});

for (const [ipBytes, carries] of [
  [1200, false],
  [1227, false],
  [1228, true],
] as const)
  test(`a path for IP packets of ${ipBytes} bytes ${carries ? 'carries' : 'does not carry'} QUIC, and records pass`, async () => {
    await using net = await DhtTestnet.start(2);
    const [{ dht }, other] = [net.at(0), net.at(1)];
    const headers = 28;
    using path = await LossyPath.open({ target: other.dht.address, oneWayMs: 0, loss: 0, maxBytes: ipBytes - headers });
    const opened = dht.openPort(4);
    assert.deepEqual((await opened.seenBy(path.address))?.host, LOOPBACK);
    await opened.close();
    assert.equal(await dht.carriesQuic([path.address]), carries);
  });
