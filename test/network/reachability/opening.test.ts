import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Address } from '../../../src/foundation/address.ts';
import {
  OPENING_HOPS,
  OPENING_PACKETS,
  RANDOM_PORTS,
  randomTargets,
  sendOpening,
} from '../../../src/network/reachability/opening.ts';
import { FIRST_MAPPED_PORT } from '../../../src/network/transport/udp-socket.ts';

const HOST = '203.0.113.5';

function recorder() {
  const sent: { readonly bytes: number; readonly to: Address; readonly ttl: number | undefined }[] = [];
  return {
    sent,
    send: async (datagram: Uint8Array, to: Address, ttl?: number) =>
      void sent.push({ bytes: datagram.length, to, ttl }),
  };
}

test('random ports have the expected number, are distinct, and exclude well-known ports', () => {
  const targets = randomTargets(HOST, Math.random);
  assert.equal(new Set(targets.map(({ port }) => port)).size, RANDOM_PORTS);
  assert.ok(targets.every(({ host, port }) => host === HOST && port >= FIRST_MAPPED_PORT && port < 65_536));
  let next = 0;
  const steps = randomTargets(HOST, () => (next++ % 2000) / 2000);
  assert.equal(steps[0]?.port, FIRST_MAPPED_PORT);
});

test('a single address receives several packets, with a low hop limit first', async () => {
  const socket = recorder();
  await sendOpening(socket, [{ host: HOST, port: 4000 }], OPENING_HOPS);
  const packet = { bytes: 1, to: { host: HOST, port: 4000 }, ttl: OPENING_HOPS };
  assert.deepEqual(
    socket.sent,
    Array.from({ length: OPENING_PACKETS }, () => packet),
  );
});

test('each of many ports receives one packet, and with a full hop limit on request', async () => {
  const socket = recorder();
  await sendOpening(socket, randomTargets(HOST, Math.random), null);
  assert.equal(socket.sent.length, RANDOM_PORTS);
  assert.ok(socket.sent.every(({ ttl }) => ttl === undefined));
});
