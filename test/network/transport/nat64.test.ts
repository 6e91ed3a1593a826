import assert from 'node:assert/strict';
import { test } from 'node:test';
import { canonicalIp } from '../../../src/foundation/ip.ts';
import { isIpv6Only, Nat64, prefixIn, translated } from '../../../src/network/transport/nat64.ts';
import { TestClock } from '../../support/test-clock.ts';

const IPV6_ONLY = [{ address: '::1' }, { address: '127.0.0.1' }, { address: 'fe80::1' }, { address: '2600:1::5' }];

/** The examples of RFC 6052, 2.4, for 192.0.2.33: the same prefix with 192.0.0.170, and the result. */
const EXAMPLES = [
  ['2001:db8:c000:aa::', '2001:db8:c000:221::'],
  ['2001:db8:1c0:0:aa::', '2001:db8:1c0:2:21::'],
  ['2001:db8:122:c000:0:aa00::', '2001:db8:122:c000:2:2100::'],
  ['2001:db8:122:3c0:0:aa::', '2001:db8:122:3c0:0:221::'],
  ['2001:db8:122:344:c0:0:aa00:0', '2001:db8:122:344:c0:2:2100:0'],
  ['2001:db8:122:344::c000:aa', '2001:db8:122:344::c000:221'],
] as const;

test('an IPv4 address is embedded as in the examples of RFC 6052', () => {
  for (const [known, expected] of EXAMPLES) {
    const prefix = prefixIn(known) ?? assert.fail(known);
    assert.equal(translated('192.0.2.33', prefix), canonicalIp(expected));
  }
});

test('an address without the known IPv4 address has no prefix', () => {
  for (const host of ['2001:db8::1', '64:ff9b::c000:1', '::']) assert.equal(prefixIn(host), null);
});

test('a machine has IPv6 only if it has a public IPv6 address and no IPv4 address for other machines', () => {
  assert.equal(isIpv6Only(IPV6_ONLY), true);
  assert.equal(isIpv6Only([...IPV6_ONLY, { address: '192.168.1.2' }]), false);
  assert.equal(isIpv6Only([{ address: '127.0.0.1' }, { address: 'fe80::1' }, { address: 'fd00::1' }]), false);
});

function nat64(interfaces: readonly { readonly address: string }[], found: readonly string[] | 'silent') {
  const clock = new TestClock();
  const asked: string[] = [];
  const lookupHost = async (name: string): Promise<readonly string[]> => {
    asked.push(name);
    return found === 'silent' ? await new Promise(() => {}) : found;
  };
  return { clock, asked, nat64: new Nat64({ clock, interfaces: () => interfaces, lookupHost }) };
}

test('with IPv6 only, public IPv4 addresses are reached through the prefix of the network', async () => {
  const found = ['2001:db8:122:344::c000:aa', '2001:db8:122:344::c000:ab'];
  const { nat64: one, asked } = nat64(IPV6_ONLY, found);
  const target = { host: '203.0.113.7', port: 443 };
  assert.deepEqual(await one.reachableForms(target), [{ host: '2001:db8:122:344::cb00:7107', port: 443 }]);
  await one.reachableForms(target);
  assert.deepEqual(asked, ['ipv4only.arpa']);
  for (const host of ['10.0.0.1', 'example.org', '2600:1::9'])
    assert.deepEqual(await one.reachableForms({ host, port: 1 }), [{ host, port: 1 }]);
});

test('without an answer from DNS, the usual prefix is tried', async () => {
  const { nat64: one, clock } = nat64(IPV6_ONLY, 'silent');
  const forms = one.reachableForms({ host: '203.0.113.7', port: 443 });
  await clock.run(1000);
  assert.deepEqual(await forms, [{ host: '64:ff9b::cb00:7107', port: 443 }]);
});

test('with IPv4, addresses are unchanged and no query is sent', async () => {
  const { nat64: one, asked } = nat64([...IPV6_ONLY, { address: '192.168.1.2' }], []);
  const target = { host: '203.0.113.7', port: 443 };
  assert.deepEqual(await one.reachableForms(target), [target]);
  assert.deepEqual(asked, []);
});
