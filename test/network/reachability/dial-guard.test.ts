import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DialGuard, type InterfaceAddress } from '../../../src/network/reachability/dial-guard.ts';

const LOOPBACK = { address: '127.0.0.1', cidr: '127.0.0.1/8' };
const LAN = { address: '192.168.1.7', cidr: '192.168.1.7/24' };
const VPN = { address: '100.64.7.7', cidr: '100.64.7.7/32' };
const ULA = { address: 'fd12::7', cidr: 'fd12::7/64' };

/** The hosts of the list that may be dialed. */
function dialed(interfaces: readonly InterfaceAddress[], hosts: readonly string[], usesLoopback = false): string[] {
  const guard = new DialGuard({ interfaces: () => interfaces, usesLoopback: () => usesLoopback });
  return hosts.filter((host) => guard.mayDial({ host, port: 4122 }));
}

test('loopback, link-local, multicast and broadcast addresses in a record are not dialed', () => {
  const hosts = ['127.0.0.1', '127.9.9.9', '::1', '169.254.169.254', 'fe80::1', '224.0.0.251', 'ff02::fb'];
  const unusable = ['255.255.255.255', '0.0.0.0', '::', '::ffff:127.0.0.1', 'node.example'];
  assert.deepEqual(dialed([LOOPBACK, LAN], [...hosts, ...unusable]), []);
  const own = dialed([LOOPBACK], [...hosts, ...unusable], true);
  assert.deepEqual(own, ['127.0.0.1', '127.9.9.9', '::1', '::ffff:127.0.0.1'], 'nodes use loopback here');
});

test('private addresses are dialed only if this machine is in these networks', () => {
  const hosts = ['192.168.1.9', '192.168.2.9', '10.0.0.9', '172.16.0.9', '100.100.0.9', 'fd12::9', 'fd99::9'];
  assert.deepEqual(dialed([LOOPBACK, { address: '203.0.113.7', cidr: '203.0.113.7/24' }], hosts), []);
  assert.deepEqual(dialed([LOOPBACK, LAN], hosts), ['192.168.1.9', '192.168.2.9']);
  assert.deepEqual(dialed([LOOPBACK, VPN, ULA], hosts), ['100.100.0.9', 'fd12::9', 'fd99::9']);
  const odd = { address: '172.16.9.9', cidr: '172.16.9.9/8' };
  assert.ok(dialed([odd], ['172.16.0.9']).length === 1);
});

test('an IPv4-mapped IPv6 address is treated as its IPv4 address', () => {
  const hosts = ['::ffff:10.0.0.9', '::ffff:a00:9', '64:ff9b::a00:9', '2002:a00:9::1', 'fe80::1%eth0', 'fd12::9%eth0'];
  assert.deepEqual(dialed([LAN, ULA], hosts), []);
  assert.deepEqual(dialed([LAN], ['::ffff:192.168.1.9']), ['::ffff:192.168.1.9']);
});

test('well-known service ports are not dialed, except HTTPS', () => {
  const guard = new DialGuard({ interfaces: () => [LAN], usesLoopback: () => true });
  const ports = [0, 1, 22, 53, 123, 443, 1023, 1024, 1900, 65_535];
  for (const host of ['203.0.113.9', '192.168.1.9', '127.0.0.1'])
    assert.deepEqual(
      ports.filter((port) => guard.mayDial({ host, port })),
      [443, 1024, 1900, 65_535],
    );
});
