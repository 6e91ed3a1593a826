import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readProxyHeader } from '../../../src/capabilities/entry/proxy-header.ts';

const SIGNATURE = Buffer.from('0d0a0d0a000d0a515549540a', 'hex');

function v2(command: number, family: number, body: Uint8Array): Buffer {
  return Buffer.concat([SIGNATURE, Uint8Array.of(command, family, body.length >> 8, body.length & 0xff), body]);
}

const IPV4 = Buffer.from([203, 0, 113, 9, 192, 0, 2, 1, 0x12, 0x67, 1, 0xbb]);
const IPV6 = Buffer.from(
  '20010db80000000000000000000000090000000000000000000000000000000112670 1bb'.replace(' ', ''),
  'hex',
);

test('reads headers of both versions, and leaves the bytes after them', () => {
  const cases: readonly (readonly [Buffer, { address: string; port: number } | null])[] = [
    [Buffer.from('PROXY TCP4 203.0.113.9 192.0.2.1 4711 443\r\n'), { address: '203.0.113.9', port: 4711 }],
    [Buffer.from('PROXY TCP6 2001:DB8::9 2001:db8::1 4711 443\r\n'), { address: '2001:db8::9', port: 4711 }],
    [Buffer.from('PROXY UNKNOWN\r\n'), null],
    [Buffer.from('PROXY UNKNOWN ffff::1 ffff::1 1 2\r\n'), null],
    [v2(0x21, 0x11, IPV4), { address: '203.0.113.9', port: 4711 }],
    [v2(0x21, 0x21, IPV6), { address: '2001:db8::9', port: 4711 }],
    [v2(0x21, 0x11, Buffer.concat([IPV4, Buffer.from([3, 0, 4, 1, 2, 3, 4])])), { address: '203.0.113.9', port: 4711 }],
    [v2(0x20, 0, Buffer.alloc(0)), null],
  ];
  for (const [header, client] of cases) {
    assert.deepEqual(readProxyHeader(Buffer.concat([header, Buffer.from('rest')])), { length: header.length, client });
    for (let end = 0; end < header.length; end++) assert.equal(readProxyHeader(header.subarray(0, end)), 'more');
  }
});

test('refuses everything else', () => {
  for (const bytes of [
    Buffer.from([22, 3, 1, 0, 4]),
    Buffer.from('PROXI'),
    Buffer.from('GET / HTTP/1.1\r\n'),
    Buffer.from('PROXY TCP4 203.0.113.09 192.0.2.1 4711 443\r\n'),
    Buffer.from('PROXY TCP4 localhost 192.0.2.1 4711 443\r\n'),
    Buffer.from('PROXY TCP4 203.0.113.9 192.0.2.1 99999 443\r\n'),
    Buffer.from('PROXY TCP4 203.0.113.9 192.0.2.1\r\n'),
    Buffer.from(`PROXY UNKNOWN ${'a'.repeat(200)}\r\n`),
    v2(0x31, 0x11, IPV4),
    v2(0x22, 0x11, IPV4),
    v2(0x21, 0x12, IPV4),
    v2(0x21, 0x31, Buffer.alloc(216)),
    v2(0x21, 0x11, IPV4.subarray(1)),
    v2(0x21, 0x21, IPV4),
    v2(0x21, 0x11, Buffer.alloc(2000)),
  ])
    assert.equal(readProxyHeader(bytes), 'invalid', bytes.toString('latin1'));
});
