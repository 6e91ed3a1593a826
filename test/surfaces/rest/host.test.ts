import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hostOf, isLoopbackPeer, isSameSite } from '../../../src/surfaces/rest/host.ts';

test('a Host header is parsed, a malformed one gives null', () => {
  const good: [string, string][] = [
    ['127.0.0.1:2121', '127.0.0.1'],
    ['LOCALHOST', 'localhost'],
    ['[::1]:2121', '::1'],
    ['[2001:DB8:0::1]', '2001:db8::1'],
    ['[::ffff:127.0.0.1]:1', '127.0.0.1'],
    ['example.org:80', 'example.org'],
  ];
  for (const [header, host] of good) assert.equal(hostOf(header), host);
  const bad = [
    '',
    '::1',
    '[::1',
    '[zz]:1',
    'a b',
    'a/b',
    'user@host',
    'host:port',
    'host:123456',
    '127.0.0.1:80:80',
    '[127.0.0.1]',
    '[fe80::1%25eth0]',
  ];
  for (const header of bad) assert.equal(hostOf(header), null, header);
});

test('loopback peers are distinguished from all others', () => {
  for (const address of ['127.0.0.1', '127.8.9.10', '::1', '::ffff:127.0.0.1', '::ffff:7f00:1', '::1%lo'])
    assert.ok(isLoopbackPeer(address), address);
  const others = [
    undefined,
    '',
    '10.0.0.1',
    '::ffff:10.0.0.1',
    'fe80::1%lo',
    'localhost',
    '128.0.0.1',
    '126.255.255.255',
    '0.0.0.0',
    '::',
    '::2',
    '::127.0.0.1',
    '64:ff9b::7f00:1',
    '2002:7f00:1::1',
    '127.1',
    '0177.0.0.1',
    '127.0.0.01',
    '::ffff:0:127.0.0.1',
  ];
  for (const address of others) assert.ok(!isLoopbackPeer(address), String(address));
});

test('an origin is the same site only if host and port match', () => {
  assert.ok(isSameSite('http://127.0.0.1:2121', '127.0.0.1:2121'));
  assert.ok(isSameSite('http://LocalHost:2121', 'localhost:2121'));
  assert.ok(!isSameSite('ht\ttp://localhost:2121', 'localhost:2121'), 'whitespace that no browser sends');
  assert.ok(isSameSite('https://panel.example', 'panel.example:443'));
  for (const origin of [
    'null',
    '',
    'http://127.0.0.1',
    'http://127.0.0.1:2122',
    'http://localhost:2121',
    'chrome-extension://127.0.0.1:2121',
  ])
    assert.ok(!isSameSite(origin, '127.0.0.1:2121'), origin);
  assert.ok(!isSameSite('http://a', undefined));
});
