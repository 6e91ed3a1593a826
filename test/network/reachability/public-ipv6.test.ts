import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  commonIpv6Address,
  isPublicIpv6,
  publicIpv6SourceFor,
} from '../../../src/network/reachability/interface-addresses.ts';

test('global IPv6 addresses are public', () => {
  const are = (...hosts: string[]) => hosts.map((host) => isPublicIpv6({ host }));
  assert.deepEqual(are('2001:db8::1', '2a02::1'), [true, true]);
  const others = are('::1', 'fe80::1', 'fd00::1', '203.0.113.1', '::ffff:203.0.113.1', 'ff02::1');
  assert.deepEqual(new Set(others), new Set([false]));
});

test('two nodes can connect over IPv6 if both have a public address', () => {
  const [v4, local, far] = ['203.0.113.1', 'fd00::2', '2001:db8::2'].map((host) => ({ host, port: 1 }));
  assert.ok(v4 !== undefined && local !== undefined && far !== undefined);
  assert.equal(commonIpv6Address([v4, local, far], [{ address: '10.0.0.1' }, { address: '2001:db8:1::1' }]), far);
  assert.equal(commonIpv6Address([v4, local, far], [{ address: '10.0.0.1' }, { address: 'fd00::1' }]), null);
  assert.equal(commonIpv6Address([v4, local], [{ address: '2001:db8:1::1' }]), null);
});

test('without a public source address of this machine, there is none', async () => {
  assert.equal(await publicIpv6SourceFor({ host: '::1', port: 4122 }), null);
  assert.equal(await publicIpv6SourceFor({ host: '203.0.113.1', port: 4122 }), null);
});
