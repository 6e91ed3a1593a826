/** The routing id of a node depends on its address and little on its port. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toHex } from '../../../src/foundation/bytes.ts';
import { nodeId, PLACES_PER_ADDRESS } from '../../../src/network/records/node-address.ts';

/** The distinct prefixes of the ids of all ports of a host. */
function placesOf(host: string, bytes = 20): Set<string> {
  const ids = Array.from({ length: 2000 }, (_, i) => nodeId({ host, port: 1024 + i }));
  return new Set(ids.map((id) => Buffer.from(id.subarray(0, bytes)).toString('hex')));
}

test('all ports of a public address lead to eight id prefixes', () => {
  const places = placesOf('45.12.7.1');
  assert.equal(places.size, PLACES_PER_ADDRESS);
  assert.equal(PLACES_PER_ADDRESS, 8);
  assert.equal(places.intersection(placesOf('45.12.7.2')).size, 0, 'each address has its own prefixes');
});

test('nodes at different ports of an address have different, stable ids', () => {
  assert.equal(placesOf('45.12.7.1', 32).size, 2000);
  assert.deepEqual(nodeId({ host: '45.12.7.1', port: 4121 }), nodeId({ host: '45.12.7.1', port: 4121 }));
});

test('on this machine and in private networks every port has its own prefix', () => {
  for (const host of ['127.0.0.1', '192.168.1.5', '10.1.2.3']) assert.equal(placesOf(host).size, 2000, host);
});

/** Every node of the network must compute these values. Other values would split the network. */
const VECTORS = {
  public: '27f5ba0beeaa96a6b36d5d99430f3d5aad488f536d80ff1b185ba19f93bafed9',
  loopback: '700c56da81387637c78a01071a45d24bd305508d04585a9e82a12fb729f08f53',
};

test('every node computes the same id for an address', () => {
  const hex = (host: string, port: number) => Buffer.from(nodeId({ host, port })).toString('hex');
  assert.deepEqual([hex('45.12.7.1', 4121), hex('127.0.0.1', 4121)], [VECTORS.public, VECTORS.loopback]);
});

test('an id is the same each time, and changing a returned id has no effect on the cache', () => {
  const address = { host: '203.0.113.9', port: 4121 };
  const first = nodeId(address);
  const spelt = toHex(first);
  first.fill(0);
  assert.equal(toHex(nodeId(address)), spelt);
  assert.notEqual(toHex(nodeId({ ...address, port: 4122 })), spelt);
  // More than the cache holds.
  for (let port = 1; port <= 5000; port++) nodeId({ host: '203.0.113.10', port });
  assert.equal(toHex(nodeId(address)), spelt);
});
