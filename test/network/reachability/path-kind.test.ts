import assert from 'node:assert/strict';
import { test } from 'node:test';
import { kindOfPath } from '../../../src/network/reachability/dial-guard.ts';
import type { OwnAddress } from '../../../src/network/reachability/own-addresses.ts';

const INTERFACES = [
  { address: '203.0.113.7', cidr: '203.0.113.7/24' },
  { address: '2001:db8:1:2::7', cidr: '2001:db8:1:2::7/64' },
  { address: '10.0.0.1', cidr: null },
];

function own(host: string, source: OwnAddress['source'], verifiedBy: OwnAddress['verifiedBy'] = null): OwnAddress {
  return { address: { host, port: 4122 }, source, verifiedBy };
}

function kinds(host: string, known: readonly OwnAddress[] = []): string[] {
  return [true, false].map((outbound) => kindOfPath({ host, port: 1 }, outbound, INTERFACES, known));
}

test('this machine, private networks and the networks of its interfaces are LAN paths', () => {
  for (const host of ['127.0.0.1', '::1', '192.168.9.9', 'fe80::1', '203.0.113.200', '2001:db8:1:2:ffff::1'])
    assert.deepEqual(kinds(host), ['lan', 'lan'], host);
  for (const host of ['203.0.114.1', '198.51.100.1', '2001:db8:1:3::1'])
    assert.deepEqual(kinds(host), ['direct', 'direct'], host);
});

test('an inbound path from the Internet is `mapped` if only a mapped port is reachable', () => {
  const behind = [own('198.51.100.9', 'mapped', 'helper'), own('192.168.1.7', 'lan'), own('198.51.100.9', 'observed')];
  assert.deepEqual(kinds('198.51.100.1', behind), ['direct', 'mapped']);
  assert.deepEqual(kinds('192.168.1.9', behind), ['lan', 'lan']);
  assert.deepEqual(kinds('2001:db8:1:3::1', behind), ['direct', 'direct'], 'the mapped port is an IPv4 port');
  for (const also of [own('203.0.113.7', 'interface'), own('198.51.100.9', 'observed', 'peers')])
    assert.deepEqual(kinds('198.51.100.1', [...behind, also]), ['direct', 'direct']);
  assert.deepEqual(
    kinds('198.51.100.1', [own('198.51.100.9', 'mapped')]),
    ['direct', 'direct'],
    'no node reached it yet',
  );
});
