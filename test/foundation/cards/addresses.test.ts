/** Addresses in a card must lead to the service itself. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type CardPlace, rewriteAddresses } from '../../../src/foundation/cards/addresses.ts';
import type { Card } from '../../../src/foundation/cards/card.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import { newIdentity } from '../../support/identities.ts';

const { aid } = newIdentity();
const other = newIdentity().aid;
const HERE = 'http://127.0.0.1:40123';
const AT = { host: '127.0.0.1', port: 41241 };
const PLACE: CardPlace = { aid, service: { ...AT, tunnels: AT }, to: HERE };

function v10(...urls: readonly string[]): Card {
  return { name: 'x', supportedInterfaces: urls.map((url) => ({ url, protocolBinding: 'JSONRPC' })) };
}

function urlsOf({ card }: { readonly card: Card }): unknown[] {
  const list = card['supportedInterfaces'];
  assert.ok(Array.isArray(list));
  return list.map(({ url }: { url: unknown }) => url);
}

function reasonOf(card: Card, place: CardPlace = PLACE): unknown {
  try {
    rewriteAddresses(card, place);
  } catch (error) {
    assert.ok(error instanceof SvcError, String(error));
    assert.equal(error.code, 'bad_card');
    return error.details?.['reason'];
  }
  return 'let in';
}

test('whatever the service calls itself on its machine leads to the local address, with path and query', () => {
  const table: readonly (readonly [string, string])[] = [
    ['http://127.0.0.1:41241', HERE],
    ['http://127.0.0.1:41241/', `${HERE}/`],
    ['http://localhost:41241/a2a/jsonrpc?x=1', `${HERE}/a2a/jsonrpc?x=1`],
    ['http://LOCALHOST.:41241/a', `${HERE}/a`],
    ['http://0.0.0.0:41241/a', `${HERE}/a`],
    ['http://[::1]:41241/a', `${HERE}/a`],
    ['http://[::ffff:127.0.0.1]:41241/a', `${HERE}/a`],
    ['http://2130706433:41241/a', `${HERE}/a`],
    ['https://localhost:41241/a', `${HERE}/a`],
    ['grpc://localhost:41241', HERE],
    ['localhost:41241', '127.0.0.1:40123'],
    ['[::1]:41241', '127.0.0.1:40123'],
    ['/a2a/v1?tenant=x', `${HERE}/a2a/v1?tenant=x`],
    [`svc://${aid}`, HERE],
    [`svc://${aid}/a2a?y=2`, `${HERE}/a2a?y=2`],
  ];
  for (const [url, led] of table) assert.deepEqual(urlsOf(rewriteAddresses(v10(url), PLACE)), [led], url);
});

test('handles cards of A2A 0.3 and MCP servers, and addresses in other places', () => {
  const card = {
    protocolVersion: '0.3.0',
    url: 'http://localhost:41241/rpc',
    preferredTransport: 'JSONRPC',
    additionalInterfaces: [
      { url: 'http://localhost:41241/rest', transport: 'HTTP+JSON' },
      { url: 'localhost:41241', transport: 'GRPC' },
    ],
    iconUrl: 'http://localhost:41241/icon.png',
    documentationUrl: 'https://words.example/docs',
    provider: { organization: 'Words', url: 'https://words.example/' },
    description: 'Not an address: http://localhost:3000',
    capabilities: { extensions: [{ uri: 'http://localhost/ext' }] },
    securitySchemes: { o: { flows: { clientCredentials: { tokenUrl: 'http://127.0.0.1:41241/token' } } } },
  };
  assert.deepEqual(rewriteAddresses(card, PLACE), {
    card: {
      ...card,
      url: `${HERE}/rpc`,
      additionalInterfaces: [
        { url: `${HERE}/rest`, transport: 'HTTP+JSON' },
        { url: '127.0.0.1:40123', transport: 'GRPC' },
      ],
      iconUrl: `${HERE}/icon.png`,
      securitySchemes: { o: { flows: { clientCredentials: { tokenUrl: `${HERE}/token` } } } },
    },
    skipped: [],
  });
  const mcp = { name: 'files', remotes: [{ type: 'streamable-http', url: 'http://localhost:41241/mcp' }] };
  assert.deepEqual(rewriteAddresses(mcp, { ...PLACE, to: `svc://${aid}` }).card, {
    name: 'files',
    remotes: [{ type: 'streamable-http', url: `svc://${aid}/mcp` }],
  });
  const old = { serverInfo: { name: 'files' }, transport: { type: 'http', endpoint: '/mcp' } };
  assert.deepEqual(rewriteAddresses(old, PLACE).card['transport'], { type: 'http', endpoint: `${HERE}/mcp` });
});

test('a rewritten card leads back when it is read at a local address', () => {
  const interfaces = [
    { url: 'http://localhost:41241/rpc', protocolBinding: 'JSONRPC' },
    { url: 'localhost:41241', protocolBinding: 'GRPC' },
  ];
  const published = rewriteAddresses({ supportedInterfaces: interfaces }, { ...PLACE, to: `svc://${aid}` });
  assert.deepEqual(urlsOf(published), [`svc://${aid}/rpc`, `svc://${aid}`]);
  assert.deepEqual(urlsOf(rewriteAddresses(published.card, PLACE)), [`${HERE}/rpc`, '127.0.0.1:40123']);
});

test('the attack table: rejects addresses that bypass the service', () => {
  const special = [
    'http://127.0.0.1:22/',
    'http://localhost/',
    'http://169.254.169.254/latest/meta-data/',
    'http://[fe80::1]/',
    'http://[::ffff:169.254.169.254]/',
    'http://2852039166/',
    'http://0xa9fea9fe/',
    'http://169.254.169.254.:80/',
    'http://metadata.google.internal/computeMetadata/v1/',
    'http://100.100.100.200/',
    'http://[fd00:ec2::254]/',
    'http://10.0.0.1:41241/',
    'http://192.168.1.1/',
    'http://printer.local/',
    'http://router/',
    '169.254.169.254:80',
  ];
  for (const url of special) assert.match(String(reasonOf(v10(url))), /^special_address$/, url);
  const foreign = [
    'https://evil.example/a2a',
    'http://8.8.8.8:41241/',
    'evil.example:41241',
    'http://localhost:41241@evil.example/',
    'http://user:password@localhost:41241/',
    '//evil.example/',
    'http://localhost:41241\\@evil.example/',
    'file:///etc/passwd',
    'javascript:alert(1)',
    'data:application/json,{}',
    '',
    'a2a',
  ];
  for (const url of foreign) assert.match(String(reasonOf(v10(url))), /^(foreign|special)_address$/, url);
  assert.equal(reasonOf(v10(`svc://${other}/a2a`)), 'swapped');
  assert.equal(reasonOf({ url: 5, skills: [] }), 'not_a_card');
  assert.equal(reasonOf({ additionalInterfaces: { url: 'https://evil.example/' } }), 'not_a_card');
  // One bad interface among good ones, in each place where clients look.
  const good = 'http://localhost:41241/';
  for (const key of ['supportedInterfaces', 'supported_interfaces', 'additionalInterfaces', 'remotes'])
    assert.equal(
      reasonOf({ url: good, [key]: [{ url: good }, { url: 'https://evil.example/' }] }),
      'foreign_address',
      key,
    );
  assert.equal(reasonOf({ ...v10(good), url: 'https://evil.example/' }), 'foreign_address');
});

test('addresses outside of interfaces may only be public', () => {
  const besides = (url: string): Card => ({
    ...v10('http://localhost:41241/'),
    securitySchemes: { o: { tokenUrl: url } },
  });
  for (const url of [
    'https://login.example/token',
    'urn:x',
    'mailto:a@b.example',
    '/token',
    'data:image/png;base64,AA',
  ])
    assert.equal(reasonOf(besides(url)), 'let in', url);
  const bad = [
    'http://169.254.169.254/token',
    'ht\ttp://169.254.169.254/token',
    ' http://169.254.169.254/',
    'http:/169.254.169.254/',
    'http:\\\\127.0.0.1\\x',
    '//169.254.169.254/token',
    'http://127.0.0.1:9/',
    'http://user@127.0.0.1:41241/',
    'ws://10.0.0.1/',
  ];
  for (const url of bad) assert.equal(reasonOf(besides(url)), 'special_address', url);
  assert.equal(reasonOf(besides('https://user@login.example/')), 'foreign_address');
});

test('omits interfaces on other ports of the machine if one interface is the service', () => {
  const led = rewriteAddresses(v10('http://localhost:41241/', 'localhost:50051'), PLACE);
  const left = [{ binding: 'JSONRPC', host: 'localhost', port: 50051, servicePort: 41241 }];
  assert.deepEqual([urlsOf(led), led.skipped], [[`${HERE}/`], left]);
  assert.equal(reasonOf(v10('localhost:50051')), 'special_address');
  assert.equal(
    reasonOf({ url: 'http://localhost:50051/', additionalInterfaces: [{ url: 'http://localhost:41241/' }] }),
    'special_address',
  );
});

test('gRPC on a separate port is the service if tunnels lead there', () => {
  const grpc = { host: 'localhost', port: 50051 };
  const place = { ...PLACE, service: { ...AT, tunnels: grpc } };
  const ways = (...list: readonly (readonly [string, string])[]): Card => ({
    supportedInterfaces: list.map(([protocolBinding, url]) => ({ protocolBinding, url })),
  });
  const led = rewriteAddresses(ways(['JSONRPC', 'http://127.0.0.1:41241/rpc'], ['GRPC', '127.0.0.1:50051']), place);
  assert.deepEqual([urlsOf(led), led.skipped], [[`${HERE}/rpc`, '127.0.0.1:40123'], []]);
  const others = rewriteAddresses(
    ways(['GRPC', 'localhost:50051'], ['GRPC', 'localhost:41241'], ['JSONRPC', 'http://localhost:50051/rpc']),
    place,
  );
  assert.deepEqual(urlsOf(others), ['127.0.0.1:40123']);
  assert.deepEqual(
    others.skipped.map(({ binding, port, servicePort }) => [binding, port, servicePort]),
    [
      ['GRPC', 41241, 50051],
      ['JSONRPC', 50051, 41241],
    ],
  );
  const old = { url: 'localhost:50051', preferredTransport: 'GRPC', protocolVersion: '0.3.0' };
  assert.equal(rewriteAddresses(old, place).card['url'], '127.0.0.1:40123');
  assert.equal(reasonOf({ ...old, preferredTransport: 'JSONRPC' }, place), 'special_address');
  assert.equal(reasonOf(ways(['GRPC', 'grpc.example:50051']), place), 'foreign_address');
});

test('if the service of the agent is unknown, any address of its machine is accepted', () => {
  const place = { ...PLACE, service: null };
  assert.deepEqual(urlsOf(rewriteAddresses(v10('http://127.0.0.1:9/x'), place)), [`${HERE}/x`]);
  assert.equal(reasonOf(v10('http://169.254.169.254/'), place), 'special_address');
  assert.equal(reasonOf(v10('https://evil.example/'), place), 'foreign_address');
});

test('a service on another machine is known by its host', () => {
  const place = { ...PLACE, service: { host: 'agent.example', port: 443, tunnels: null } };
  assert.deepEqual(urlsOf(rewriteAddresses(v10('https://Agent.Example/a2a'), place)), [`${HERE}/a2a`]);
  assert.equal(reasonOf(v10('https://other.example/a2a'), place), 'foreign_address');
});

test('any interface leads to the local address, or the card is rejected', () => {
  const text = fc.oneof(
    fc.webUrl(),
    fc.string({ unit: 'binary' }),
    fc.constantFrom('http://localhost:41241', '//', 'svc://', '/\\', ':80'),
  );
  fc.assert(
    fc.property(fc.array(text, { minLength: 1, maxLength: 3 }), (parts) => {
      const card = v10(parts.join(''));
      if (reasonOf(card) !== 'let in') return;
      for (const url of urlsOf(rewriteAddresses(card, PLACE))) {
        const led = String(url);
        assert.equal(URL.parse(led.includes('://') ? led : `http://${led}`)?.origin, HERE, led);
      }
    }),
    { seed: 7, numRuns: 2000 },
  );
});
