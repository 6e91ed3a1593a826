import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '../../../../src/foundation/clock.ts';
import { requestGateway } from '../../../../src/network/reachability/port-mapping/gateway.ts';

test('a router that the system does not send to fails the request', async () => {
  // Sockets may not connect to this address, as to a router after the network is gone.
  const router = { host: '255.255.255.255', port: 9 };
  const request = { datagram: Uint8Array.of(1), waitsMs: [60_000], read: () => undefined };
  await assert.rejects(requestGateway(systemClock, router, request, new AbortController().signal), {
    code: 'connect_failed',
  });
});
