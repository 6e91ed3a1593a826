import assert from 'node:assert/strict';
import { test } from 'node:test';
import { selectObservers } from '../../../src/network/reachability/nat.ts';

const node = (host: string, lastSeen: number, port = 4121) => ({ host, port, lastSeen });

test('observers are public nodes, one per host, the most recent first', () => {
  const nodes = [
    node('203.0.113.1', 1),
    node('192.168.1.7', 9),
    node('127.0.0.1', 8),
    node('203.0.113.2', 5, 5000),
    node('203.0.113.2', 7, 5001),
    node('203.0.113.3', 3),
  ];
  assert.deepEqual(selectObservers(nodes, 2), [
    { host: '203.0.113.2', port: 5001 },
    { host: '203.0.113.3', port: 4121 },
  ]);
  assert.equal(selectObservers(nodes, 9).length, 3);
  assert.deepEqual(selectObservers([], 9), []);
});
