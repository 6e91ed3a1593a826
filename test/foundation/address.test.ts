import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import {
  formatAddress,
  hostOfUrl,
  isEveryInterface,
  isHost,
  isLoopbackHost,
  mayBeThisMachine,
  parseAddress,
} from '../../src/foundation/address.ts';
import { canonicalIp } from '../../src/foundation/ip.ts';

test('reads host:port, bracketed IPv6 and a bare port', () => {
  assert.deepEqual(parseAddress(':4121'), { host: '', port: 4121 });
  assert.deepEqual(parseAddress('127.0.0.1:0'), { host: '127.0.0.1', port: 0 });
  assert.deepEqual(parseAddress('[::1]:65535'), { host: '::1', port: 65_535 });
  assert.deepEqual(parseAddress('[2001:DB8:0::1]:1'), { host: '2001:db8::1', port: 1 });
  assert.deepEqual(parseAddress('[::ffff:192.0.2.1]:1'), { host: '192.0.2.1', port: 1 });
  assert.deepEqual(parseAddress('node.example.org:80'), { host: 'node.example.org', port: 80 });
});

test('rejects invalid addresses', () => {
  for (const text of [
    ...['', ':', '4121', 'host', 'host:', ':65536', ':-1', ':4121 ', ' :4121', ':4 1', 'a b:1', 'host:1:2'],
    ...['::1:80', '[::1]', '[]:1', '[127.0.0.1]:1', '[fe80::1%eth0]:1', '256.1.1.1:80', '1.2.3:80', '0x7f000001:80'],
    ...[
      '-a.example:1',
      'a..b:1',
      'a.:1',
      'http://a:1',
      'a/b:1',
      'a@b:1',
      ':1e3',
      ':+1',
      ':\u0661',
      ':1\n',
      'é.example:1',
    ],
    `${'a'.repeat(64)}.example:1`,
    `${'a.'.repeat(127)}example:1`,
  ]) {
    assert.equal(parseAddress(text), null, text);
  }
});

test('a host is an address or a name, never a number in disguise', () => {
  for (const text of ['10.0.0.1', '2001:db8::1', 'a', 'my_host', 'xn--bcher-kva.example', 'a1.b2']) {
    assert.equal(isHost(text), true, text);
  }
  for (const text of ['', '[::1]', '2130706433', '127.1', '0x7f.0x1', 'fe80::1%1', 'a:1', '*']) {
    assert.equal(isHost(text), false, text);
  }
});

test('only this machine is loopback', () => {
  for (const host of [
    '127.0.0.1',
    '127.8.9.10',
    '::1',
    '::ffff:127.0.0.1',
    'localhost',
    'LOCALHOST',
    'svc.localhost',
  ]) {
    assert.equal(isLoopbackHost(host), true, host);
  }
  for (const host of [
    '',
    '0.0.0.0',
    '::',
    '10.0.0.1',
    '::ffff:10.0.0.1',
    'localhost.example',
    'notlocalhost',
    '128.0.0.1',
    '126.255.255.255',
    '127.1',
    '127.0.0.01',
    '0177.0.0.1',
    '2130706433',
    '::127.0.0.1',
    '64:ff9b::7f00:1',
    '2002:7f00:1::1',
    '[::1]',
    'localhost.',
    '.localhost',
  ]) {
    assert.equal(isLoopbackHost(host), false, host);
  }
});

test('text of an address reads back, and equal addresses have equal texts', () => {
  const host = fc.oneof(fc.ipV4(), fc.ipV6(), fc.domain(), fc.constant(''));
  fc.assert(
    fc.property(host, fc.integer({ min: 0, max: 65_535 }), (name, port) => {
      const address = { host: canonicalIp(name) ?? name, port };
      assert.deepEqual(parseAddress(formatAddress(address)), address);
      assert.deepEqual(parseAddress(formatAddress({ host: name, port })), address);
    }),
    { seed: 3 },
  );
});

test('formats IPv6 with brackets', () => {
  assert.equal(formatAddress({ host: '192.0.2.1', port: 80 }), '192.0.2.1:80');
  assert.equal(formatAddress({ host: '2001:db8::1', port: 0 }), '[2001:db8::1]:0');
  assert.equal(formatAddress({ host: '', port: 4121 }), ':4121');
});

test('finds the host of a URL, brackets or not', () => {
  assert.equal(hostOfUrl(new URL('http://[::1]:80/')), '::1');
  assert.equal(hostOfUrl(new URL('http://127.1/')), '127.0.0.1');
  assert.equal(hostOfUrl(new URL('https://Example.org:8443/x')), 'example.org');
});

test('knows which hosts are every interface', () => {
  for (const host of ['', '0.0.0.0', '::']) assert.equal(isEveryInterface(host), true, host);
  for (const host of ['127.0.0.1', '::1', '0.0.0.1', 'a']) assert.equal(isEveryInterface(host), false, host);
});

test('mayBeThisMachine includes more than loopback', () => {
  for (const host of ['127.9.9.9', '::1', '::ffff:127.0.0.1', 'a.localhost', '0.0.0.0', '0.1.2.3', '::', '::127.0.0.1'])
    assert.equal(mayBeThisMachine(host), true, host);
  for (const host of ['64:ff9b::7f00:1', '2002:7f00:1::', '::ffff:0.0.0.0', '::ffff:0:127.0.0.1'])
    assert.equal(mayBeThisMachine(host), true, host);
  for (const host of ['', 'example.org', '192.168.0.1', '169.254.1.1', '8.8.8.8', '2001:db8::1', 'fe80::1', 'fd00::1'])
    assert.equal(mayBeThisMachine(host), false, host);
});
