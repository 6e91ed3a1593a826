import assert from 'node:assert/strict';
import { isIP, isIPv4, SocketAddress } from 'node:net';
import { test } from 'node:test';
import * as fc from 'fast-check';
import {
  canonicalIp,
  IP_SCOPE,
  type IpScope,
  inIpv4Network,
  ipScope,
  ipv4Scope,
  ipv4Text,
  subscriberOf,
} from '../../src/foundation/ip.ts';

const { none, loopback, link, private: privately, public: everywhere } = IP_SCOPE;

/** The IPv6 forms of an IPv4 address that lead to it, or name it. */
const mapped = (ip: string): string[] => [`::ffff:${ip}`, `::FFFF:${ip}`, `0:0:0:0:0:ffff:${ip}`, hex(ip, '::ffff:')];

/** An IPv4 address in two groups of hexadecimal digits. */
function hex(ip: string, prefix: string, suffix = ''): string {
  const [a = 0, b = 0, c = 0, d = 0] = ip.split('.').map(Number);
  return `${prefix}${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}${suffix}`;
}

/** The first and the last address of each IPv4 class; between them there is no other class. */
const IPV4_CLASSES: readonly (readonly [first: string, last: string, scope: IpScope])[] = [
  ['0.0.0.0', '0.255.255.255', none],
  ['1.0.0.0', '9.255.255.255', everywhere],
  ['10.0.0.0', '10.255.255.255', privately],
  ['11.0.0.0', '100.63.255.255', everywhere],
  ['100.64.0.0', '100.127.255.255', privately],
  ['100.128.0.0', '126.255.255.255', everywhere],
  ['127.0.0.0', '127.255.255.255', loopback],
  ['128.0.0.0', '169.253.255.255', everywhere],
  ['169.254.0.0', '169.254.255.255', link],
  ['169.255.0.0', '172.15.255.255', everywhere],
  ['172.16.0.0', '172.31.255.255', privately],
  ['172.32.0.0', '192.167.255.255', everywhere],
  ['192.168.0.0', '192.168.255.255', privately],
  ['192.169.0.0', '223.255.255.255', everywhere],
  ['224.0.0.0', '255.255.255.255', none],
];

const IPV6_CLASSES: readonly (readonly [first: string, last: string, scope: IpScope])[] = [
  ['::', '::', none],
  ['::1', '::1', loopback],
  ['::2', '::fffe:ffff:ffff', none],
  ['::1:0:0:0', '64:ff9a:ffff:ffff:ffff:ffff:ffff:ffff', none],
  ['64:ff9b:0:0:0:1::', '64:ff9b:0:ffff:ffff:ffff:ffff:ffff', none],
  ['64:ff9b:1::', '64:ff9b:1:ffff:ffff:ffff:ffff:ffff', privately],
  ['64:ff9b:2::', '1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', none],
  ['2000::', '2001:ffff:ffff:ffff:ffff:ffff:ffff:ffff', everywhere],
  ['2003::', '3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', everywhere],
  ['4000::', 'fbff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', none],
  ['fc00::', 'fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', privately],
  ['fe00::', 'fe7f:ffff:ffff:ffff:ffff:ffff:ffff:ffff', none],
  ['fe80::', 'febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff', link],
  ['fec0::', 'feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', privately],
  ['ff00::', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', none],
];

const NO_ADDRESSES = [
  ...[
    '',
    ' ',
    '.',
    '...',
    ':',
    ':::',
    '1',
    '1.2.3',
    '1.2.3.',
    '.1.2.3',
    '1.2.3.4.',
    '1.2.3.4.5',
    '1..2.3',
    '1.2.3.256',
  ],
  ...['01.2.3.4', '1.2.3.00', '0177.0.0.1', '0x7f.0.0.1', '0x7f000001', '2130706433', '127.1', '1.2.3.4 ', ' 1.2.3.4'],
  ...[
    '1.2.3.4\n',
    '1.2.3.-4',
    '1.2.3.+4',
    '1.2.3.1e1',
    '1.2.3.\u0661',
    '1.2.3.4/8',
    '1.2.3.4:80',
    '1,2,3,4',
    '/.0.0.1',
  ],
  ...[
    '[::1]',
    '::1]',
    '::1]:80/[',
    '::1/64',
    '1:2:3:4:5:6:7',
    '1:2:3:4:5:6:7:8:9',
    '1::2::3',
    '12345::',
    'g::',
    '::1.2.3',
  ],
  ...['1.2.3.4::', '::1.2.3.256', '::01.2.3.4', '::ffff:1.2.3.4.5', 'localhost', 'a.b.c.d', '::1 ', '@::1', '::1\\'],
];

test('one address has one spelling', () => {
  const spellings = {
    '192.0.2.7': ['192.0.2.7', ...mapped('192.0.2.7')],
    '0.0.0.0': ['0.0.0.0', '::ffff:0:0'],
    '255.255.255.255': ['255.255.255.255', '::ffff:ffff:ffff'],
    '::': ['::', '0::', '::0', '0:0:0:0:0:0:0:0', '0000::0.0.0.0'],
    '::1': ['::1', '0:0:0:0:0:0:0:1', '::0001', '::0.0.0.1'],
    '::7f00:1': ['::127.0.0.1', '0::7F00:1'],
    '::fffe:7f00:1': ['::fffe:127.0.0.1'],
    '::ffff:0:7f00:1': ['::ffff:0:127.0.0.1'],
    '1::ffff:7f00:1': ['1::ffff:127.0.0.1'],
    '2001:db8::1': ['2001:DB8::1', '2001:0db8:0:0:0:0:0:1', '2001:db8:0::0:1'],
    '2001:db8:0:1:1:1:1:1': ['2001:db8::1:1:1:1:1', '2001:db8:0:1:1:1:1:1'],
    '64:ff9b::c000:207': ['64:ff9b::192.0.2.7'],
  };
  for (const [ip, texts] of Object.entries(spellings))
    for (const text of texts) assert.equal(canonicalIp(text), ip, text);
});

test('invalid addresses have no canonical form and scope none', () => {
  for (const text of NO_ADDRESSES) {
    assert.equal(isIP(text), 0, `${text}, says Node`);
    assert.equal(canonicalIp(text), null, text);
    assert.equal(ipScope(text), none, text);
    assert.equal(subscriberOf(text), text, text);
  }
  assert.equal(canonicalIp('fe80::1%eth0'), null, 'a zone is no part of an address');
});

test('reads the same addresses as Node, and spells them alike', () => {
  const character = fc.constantFrom(...'0123456789abcdefF:.:.%-x '.split(''));
  const part = fc.oneof(
    fc.ipV4(),
    fc.ipV6(),
    fc.constantFrom('::', ':', '.', '0', '00', '255', '256', 'ffff', '1.2.3.4'),
  );
  const text = fc.oneof(
    fc.ipV4(),
    fc.ipV6(),
    fc.string({ unit: character, maxLength: 20 }),
    fc.array(part, { maxLength: 4 }).map((parts) => parts.join('')),
  );
  fc.assert(
    fc.property(text, (ip) => {
      const canonical = canonicalIp(ip);
      if (isIP(ip) === 0 || ip.includes('%')) assert.equal(canonical, null);
      else if (isIPv4(ip)) assert.equal(canonical, ip);
      else {
        const { address } = new SocketAddress({ address: ip, family: 'ipv6' });
        const plain = /^::ffff:([\d.]+)$/.exec(address)?.[1];
        assert.equal(canonical, plain ?? (address.includes('.') ? canonicalIp(address) : address));
        assert.equal(canonicalIp(canonical ?? ''), canonical);
      }
    }),
    { seed: 5, numRuns: 20_000 },
  );
});

test('every IPv4 range has exact bounds, in every form', () => {
  for (const [first, last, scope] of IPV4_CLASSES)
    for (const ip of [first, last]) {
      for (const text of [ip, ...mapped(ip)]) assert.equal(ipScope(text), scope, text);
      assert.equal(ipv4Scope(Buffer.from(ip.split('.').map(Number)).readUInt32BE()), scope, ip);
      const beyond = scope === everywhere ? everywhere : none;
      for (const text of [`64:ff9b::${ip}`, hex(ip, '64:ff9b::'), hex(ip, '2002:', '::1'), hex(ip, '2002:', ':ffff::')])
        assert.equal(ipScope(text), beyond, text);
    }
});

test('every IPv6 range has exact bounds', () => {
  for (const [first, last, scope] of IPV6_CLASSES)
    for (const ip of [first, last]) {
      assert.equal(ipScope(ip), scope, ip);
      assert.equal(ipScope(`${ip}%eth0`), scope, ip);
    }
});

test('classes hold between their ends', () => {
  const number = (ip: string): number => Buffer.from(ip.split('.').map(Number)).readUInt32BE();
  for (const [first, last, scope] of IPV4_CLASSES)
    fc.assert(
      fc.property(fc.integer({ min: number(first), max: number(last) }), (value) => {
        assert.equal(ipv4Scope(value), scope);
        assert.equal(ipScope(ipv4Text(value)), scope);
      }),
      { seed: 9, numRuns: 50 },
    );
});

test('the text of four bytes is that of their number', () => {
  fc.assert(
    fc.property(fc.ipV4(), (ip) => {
      assert.equal(ipv4Text(Buffer.from(ip.split('.').map(Number)).readUInt32BE()), ip);
    }),
    { seed: 11 },
  );
});

test('a subscriber is an IPv4 address however it is spelled, or a /64', () => {
  for (const ip of ['192.0.2.7', '127.0.0.1', '255.255.255.255'])
    for (const text of [ip, ...mapped(ip), `64:ff9b::${ip}`, hex(ip, '2002:', '::'), hex(ip, '2002:', ':7:8::9')])
      assert.equal(subscriberOf(text), ip, text);
  for (const text of ['2001:db8:1:2::', '2001:DB8:1:2:aaaa::1', '2001:db8:1:2:ffff:ffff:ffff:ffff', '2001:db8:1:2::%4'])
    assert.equal(subscriberOf(text), '2001:db8:1:2::/64', text);
  assert.equal(subscriberOf('2001:db8:1:3::'), '2001:db8:1:3::/64');
  assert.equal(subscriberOf('2001:db8::1'), '2001:db8:0:0::/64');
  assert.equal(subscriberOf('1::2:3:4:5:6:7'), '1:0:2:3::/64');
  assert.equal(subscriberOf('fe80::1%eth0'), 'fe80:0:0:0::/64');
  assert.equal(subscriberOf('::127.0.0.1'), '0:0:0:0::/64');
});

test('a subscriber of a shorter prefix has more addresses', () => {
  assert.equal(subscriberOf('2001:db8:1:2ff::1', 56), '2001:db8:1:200::/56');
  assert.equal(subscriberOf('2001:db8:1:200::1', 56), '2001:db8:1:200::/56');
  assert.equal(subscriberOf('2001:db8:1:300::1', 56), '2001:db8:1:300::/56');
  assert.equal(subscriberOf('192.0.2.7', 56), '192.0.2.7');
});

test('a network holds the addresses from its first to its last', () => {
  const networks: [string, string, string, string, string][] = [
    ['192.0.2.0/24', '192.0.1.255', '192.0.2.0', '192.0.2.255', '192.0.3.0'],
    ['192.0.2.77/24', '192.0.1.255', '192.0.2.0', '192.0.2.255', '192.0.3.0'],
    ['10.32.0.0/11', '10.31.255.255', '10.32.0.0', '10.63.255.255', '10.64.0.0'],
    ['192.0.2.5/32', '192.0.2.4', '192.0.2.5', '192.0.2.5', '192.0.2.6'],
  ];
  for (const [network, before, first, last, after] of networks) {
    for (const ip of [first, last]) assert.equal(inIpv4Network(ip, network), true, `${ip} in ${network}`);
    for (const ip of [before, after]) assert.equal(inIpv4Network(ip, network), false, `${ip} in ${network}`);
  }
  assert.equal(inIpv4Network('255.255.255.255', '0.0.0.0/0'), true);
  for (const [ip, network] of [
    ['::1', '::1/128'],
    ['fe80::1', 'fe80::1/64'],
    ['', '0.0.0.0/0'],
    ['192.0.2.1', '192.0.2.0'],
    ['192.0.2.1', ''],
    ['192.0.2.1', '::/0'],
  ] as const)
    assert.equal(inIpv4Network(ip, network), false, `${ip} in ${network}`);
});
