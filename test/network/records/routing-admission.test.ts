import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import type { Address } from '../../../src/foundation/address.ts';
import { COMMAND, encodeFindRequest } from '../../../src/network/records/messages.ts';
import { nodeId } from '../../../src/network/records/node-address.ts';
import { RoutingAdmission } from '../../../src/network/records/routing-admission.ts';
import { rawRequest, rawSocket } from '../../support/hostile-dht.ts';
import { TestClock } from '../../support/test-clock.ts';
import { DhtTestnet } from '../../support/testnet-dht.ts';

interface Greeting {
  readonly to: Address;
  readonly end: () => void;
}

function world(): { readonly clock: TestClock; readonly admission: RoutingAdmission; readonly greetings: Greeting[] } {
  const clock = new TestClock();
  const greetings: Greeting[] = [];
  const greet = (to: Address): Promise<void> => new Promise((end) => greetings.push({ to, end }));
  const admission = new RoutingAdmission(clock, (host) => host === '198.52.100.9', greet);
  return { clock, admission, greetings };
}

test('the routing table accepts few nodes of a public host, and any number on this machine or in its LAN', () => {
  const { admission } = world();
  const full = (host: string): boolean => {
    for (let port = 1; port <= 3; port++) admission.add({ host, port });
    return !admission.admits({ host, port: 4 });
  };
  assert.equal(full('198.52.100.1'), true);
  assert.equal(admission.admits({ host: '198.52.100.1', port: 2 }), true, 'an existing node stays');
  admission.remove({ host: '198.52.100.1', port: 2 });
  admission.remove({ host: '198.52.100.1', port: 2 });
  assert.equal(admission.admits({ host: '198.52.100.1', port: 4 }), true);
  for (const host of ['127.0.0.1', '10.0.0.1', '198.52.100.9']) assert.equal(full(host), false);
  for (const host of ['0.0.0.0', '224.0.0.1', '::1', 'example.org'])
    assert.equal(admission.admits({ host, port: 1 }), false);
  assert.equal(admission.admits({ host: '10.0.0.1', port: 0 }), false);
  admission.reset([]);
  assert.equal(admission.has({ host: '127.0.0.1', port: 1 }), false);
});

test('unknown nodes are pinged: a bounded number, each at a limited rate', async () => {
  const { clock, admission, greetings } = world();
  for (let i = 0; i < 100; i++) admission.onStranger({ host: `198.52.${i}.1`, port: 4121 }, false);
  assert.equal(greetings.length, 32);
  admission.onStranger({ host: '198.53.0.1', port: 4121 }, true);
  assert.equal(greetings.length, 33, 'forged addresses leave room for proven ones');
  for (const { end } of greetings) end();
  await Promise.resolve();
  await Promise.resolve();
  admission.onStranger({ host: '198.52.0.1', port: 4121 }, false);
  assert.equal(greetings.length, 33, 'it was pinged recently');
  clock.advance(10_000);
  admission.onStranger({ host: '198.52.0.1', port: 4121 }, false);
  assert.equal(greetings.length, 34);
});

test('a node with a forged address does not enter the routing table', async (t) => {
  const net = await DhtTestnet.start(2);
  t.after(() => net[Symbol.asyncDispose]());
  const { dht } = net.at(0);
  const socket = await rawSocket(t);
  const { port } = socket.address();
  const value = encodeFindRequest({ types: [], wantsRecords: false });
  const request = rawRequest(dht.address, { command: COMMAND.find, target: new Uint8Array(32), value });
  // The same with a routing id that matches the address of the socket: flag 1, and the id after the header.
  const head = Buffer.from(request.subarray(0, 18));
  head[9] = (head[9] ?? 0) | 1;
  const introduced = Buffer.concat([head, nodeId({ host: '127.0.0.1', port }), request.subarray(18)]);
  const answers = [once(socket, 'message')];
  socket.send(introduced, dht.address.port, dht.address.host);
  const [first] = await Promise.all(answers);
  assert.ok(first);
  await once(socket, 'message');
  assert.equal(dht.peers().length, 1, 'it was answered and pinged, and did not answer');
});
