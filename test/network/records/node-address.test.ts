import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hostKeyOf, sourceKeyOf } from '../../../src/network/records/node-address.ts';
import { plainPath } from '../../../src/network/transport/path.ts';

test('a client on a connection counts by its IPv4 address or IPv6 network, and by its port on this machine', () => {
  const key = (host: string, port = 1): string => sourceKeyOf(plainPath('direct', { host, port }));
  assert.equal(key('192.0.2.1', 1), key('192.0.2.1', 2));
  assert.equal(key('192.0.2.1'), hostKeyOf({ host: '192.0.2.1', port: 3 }));
  assert.equal(key('2001:db8:1:2::1'), key('2001:db8:1:2:ffff::9'));
  assert.notEqual(key('2001:db8:1:2::1'), key('2001:db8:1:3::1'));
  assert.notEqual(key('127.0.0.1', 1), key('127.0.0.1', 2));
  assert.equal(key('127.0.0.1', 1), hostKeyOf({ host: '127.0.0.1', port: 1 }));
});
