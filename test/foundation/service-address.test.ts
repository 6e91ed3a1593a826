import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SvcError } from '../../src/foundation/errors.ts';
import {
  addressesOf,
  type OwnApi,
  parseServiceAddress,
  rejectOwnApi,
  rejectOwnLocalAddress,
} from '../../src/foundation/service-address.ts';
import { newIdentity } from '../support/identities.ts';

function isRefused(error: unknown): boolean {
  return error instanceof SvcError && error.code === 'bad_service_address' && error.status === 400;
}

test('reads the forms of a service address', () => {
  const cases = [
    ['127.0.0.1:80', 'tcp', '127.0.0.1', 80, '127.0.0.1:80'],
    [' localhost:9000 ', 'tcp', 'localhost', 9000, 'localhost:9000'],
    ['HTTP://Box.local:8080/', 'http', 'Box.local', 8080, 'http://Box.local:8080'],
    ['https://[2001:db8::1]:443', 'https', '2001:db8::1', 443, 'https://[2001:db8::1]:443'],
    ['[::1]:1', 'tcp', '::1', 1, '[::1]:1'],
    ['HTTPS+insecure://localhost:8443', 'https', 'localhost', 8443, 'https+insecure://localhost:8443'],
    ['TCP://localhost:22', 'tcp', 'localhost', 22, 'tcp://localhost:22'],
    ['http+TCP://localhost:80', 'http', 'localhost', 80, 'http+tcp://localhost:80'],
    ['https+tcp://localhost:443', 'https', 'localhost', 443, 'https+tcp://localhost:443'],
    ['HTTP+Proven://localhost:80', 'http', 'localhost', 80, 'http+proven://localhost:80'],
    ['https+insecure+tcp://localhost:443', 'https', 'localhost', 443, 'https+insecure+tcp://localhost:443'],
  ] as const;
  for (const [input, scheme, host, port, text] of cases) {
    const prefix = text.split('://').slice(0, -1).join('');
    assert.deepEqual(parseServiceAddress(input), {
      scheme,
      host,
      port,
      text,
      acceptsCalls: prefix !== 'tcp',
      tunnels: prefix === '' || prefix.endsWith('tcp') ? { host, port } : null,
      verifyCertificate: !text.includes('insecure'),
      provesItself: text.includes('proven'),
    });
    assert.equal(parseServiceAddress(text).text, text);
  }
});

test('calls may go to one port and tunnels to another', () => {
  const service = parseServiceAddress(' HTTP://localhost:8080/ , TCP://[::1]:50051 ');
  assert.deepEqual(service, {
    scheme: 'http',
    host: 'localhost',
    port: 8080,
    text: 'http://localhost:8080,tcp://[::1]:50051',
    acceptsCalls: true,
    tunnels: { host: '::1', port: 50051 },
    verifyCertificate: true,
    provesItself: false,
  });
  assert.equal(parseServiceAddress(service.text).text, service.text);
  assert.deepEqual(
    addressesOf(service).map(({ port }) => port),
    [8080, 50051],
  );
  for (const text of ['localhost:80', 'http://localhost:80', 'http+tcp://localhost:80'])
    assert.equal(addressesOf(parseServiceAddress(text)).length, 1);
});

test('refuses everything else', () => {
  const bad = [
    '127.0.0.1',
    ':80',
    'host:0',
    'host:65536',
    'host:http',
    'ftp://host:21',
    'http+insecure://host:80',
    'insecure://host:80',
    'tcp+http://host:80',
    'tcp+tcp://host:80',
    '+tcp://host:80',
    'http+tcp+tcp://host:80',
    'http+proven+tcp://host:80',
    'https+proven://host:80',
    'https+insecure+proven://host:80',
    'tcp+proven://host:80',
    'http://host',
    'http://host:80/path',
    'http://user:pw@host:80',
    'http://host:80?x',
    '::1:80',
    '127.1:80',
    '2130706433:80',
    '0x7f000001:80',
    'a b:80',
    `${'a'.repeat(300)}:80`,
    'http://http://host:80',
    'http://host:80,',
    ',tcp://host:81',
    'http://host:80,host:81',
    'http://host:80,http://host:81',
    'http+tcp://host:80,tcp://host:81',
    'host:80,tcp://host:81',
    'tcp://host:80,tcp://host:81',
    'tcp://host:80,http://host:81',
    'http://host:80,tcp://host:81,tcp://host:82',
  ];
  for (const input of bad) assert.throws(() => parseServiceAddress(input), isRefused, input);
});

const OWN: OwnApi = {
  api: () => ({ host: '127.0.0.1', port: 2121 }),
  interfaces: () => ['127.0.0.1', '192.168.1.5', '::1', 'FD00:0::5'],
  lookup: async (host) => {
    if (host === 'me.example') return ['192.168.1.5'];
    if (host === 'six.example') return ['::ffff:192.168.1.5', '2001:db8::1'];
    if (host === 'other.example') return ['203.0.113.9'];
    throw new Error('ENOTFOUND');
  },
};

test("refuses every spelling of the daemon's own API", async () => {
  const spellings = [
    '127.0.0.1:2121',
    '127.9.9.9:2121',
    'localhost:2121',
    'LOCALHOST:2121',
    'http://svc.localhost:2121',
    'https://[::1]:2121',
    '[0:0:0:0:0:0:0:1]:2121',
    '[::ffff:127.0.0.1]:2121',
    '[::ffff:7f00:1]:2121',
    '[::]:2121',
    '0.0.0.0:2121',
    '192.168.1.5:2121',
    '[::ffff:192.168.1.5]:2121',
    '[fd00:0::5]:2121',
    '[::127.0.0.1]:2121',
    '[64:ff9b::127.0.0.1]:2121',
    '[2002:7f00:1::1]:2121',
    '[::ffff:0:127.0.0.1]:2121',
    '[0000::FFFF:0.0.0.0]:2121',
    '0.1.2.3:2121',
    'me.example:2121',
    'six.example:2121',
    'http://127.0.0.1:2122,tcp://localhost:2121',
    'http://127.0.0.1:2121,tcp://localhost:2122',
  ];
  for (const text of spellings) await assert.rejects(rejectOwnApi(parseServiceAddress(text), OWN), isRefused, text);
});

test('accepts other ports, other machines and unknown names', async () => {
  for (const text of [
    '127.0.0.1:2122',
    '203.0.113.9:2121',
    '192.168.1.6:2121',
    '[fd00::6]:2121',
    '[2001:db8::1]:2121',
    'other.example:2121',
    'unknown.example:2121',
  ])
    await rejectOwnApi(parseServiceAddress(text), OWN);
  await rejectOwnApi(parseServiceAddress('127.0.0.1:2121'), { ...OWN, api: () => null });
});

test('rejects the local address of the agent itself, and accepts local addresses of other agents', () => {
  const [aid, other] = [newIdentity().aid, newIdentity().aid];
  const own = { ...OWN, localPorts: (one: string) => (one === aid ? [40_123] : []) };
  const refuse = (text: string, whose = aid) => rejectOwnLocalAddress(parseServiceAddress(text), whose, own);
  for (const text of ['http://127.0.0.1:40123', 'localhost:40123', 'http://127.0.0.1:1,tcp://[::1]:40123'])
    assert.throws(() => refuse(text), isRefused, text);
  refuse('http://127.0.0.1:40124');
  refuse('http://192.0.2.1:40123');
  refuse('http://127.0.0.1:40123', other);
});
