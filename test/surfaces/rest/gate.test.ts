import assert from 'node:assert/strict';
import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { hostname } from 'node:os';
import { test } from 'node:test';
import { SvcError } from '../../../src/foundation/errors.ts';
import { RequestGate } from '../../../src/surfaces/rest/gate.ts';
import { TestClock } from '../../support/test-clock.ts';
import { JSON_HEADERS, speak, startWorld } from './support.ts';

const TOKEN = 'correct-horse-battery';
const LONG_TOKEN = 'mT9vQ2xW7rK4pL8sZ1bN6c';

/** A request from an address from which the test cannot connect. */
function requestFrom(address: string, headers: Record<string, string>): IncomingMessage {
  const socket = new Socket();
  Object.defineProperty(socket, 'remoteAddress', { value: address });
  const request = new IncomingMessage(socket);
  Object.assign(request.headers, headers);
  return request;
}

function verdict(gate: RequestGate, address: string, headers: Record<string, string>): string {
  try {
    const { origin, authorized: authorised } = gate.admit(requestFrom(address, headers));
    return `${origin}${authorised ? '' : ' without token'}`;
  } catch (error) {
    if (error instanceof SvcError) return error.code;
    throw error;
  }
}

/** All kinds of requests: reads, writes, unknown paths, pages, wrong methods, malformed paths. */
const DOORS: readonly [string, string][] = [
  ['GET', '/ping'],
  ['HEAD', '/ping'],
  ['POST', '/things/x/echo'],
  ['DELETE', '/things/x'],
  ['GET', '/secret'],
  ['GET', '/nowhere'],
  ['POST', '/nowhere'],
  ['GET', '/openapi.json'],
  ['GET', '/docs'],
  ['GET', '/docs/swagger-ui.css'],
  ['GET', '/metrics'],
  ['OPTIONS', '/ping'],
  ['PUT', '/ping'],
  ['GET', '/%zz'],
  ['GET', '/aid/aid1x/'],
];

function code(json: unknown): unknown {
  return typeof json === 'object' && json !== null && 'error' in json ? json.error : undefined;
}

test('a foreign Host on a loopback connection is rejected for every kind of request', async (t) => {
  const world = await startWorld(t);
  for (const [method, path] of DOORS) {
    for (const host of ['evil.example', 'evil.example:2121', '192.168.1.5', 'localhost.evil.example', 'bad host', '']) {
      if (host === '' || host === 'bad host') continue;
      const answer = await world.request(method, path, { headers: { host } });
      assert.equal(answer.status, 403, `${method} ${path} ${host}`);
      if (method !== 'HEAD') assert.equal(code(answer.json), 'forbidden_host');
      assert.equal(answer.headers['access-control-allow-origin'], undefined);
    }
  }
});

test('the loopback names of this machine are accepted, with any port', async (t) => {
  const world = await startWorld(t);
  for (const host of ['127.0.0.1', 'localhost', 'localhost:9999', '[::1]:2121', 'LOCALHOST', '127.1.2.3'])
    assert.equal((await world.request('GET', '/ping', { headers: { host } })).status, 200, host);
});

test('a request with two hosts or HTTP/0.9 is rejected', async (t) => {
  const world = await startWorld(t);
  for (const request of [
    'GET /ping HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\nConnection: close\r\n\r\n',
    'GET /ping HTTP/1.1\r\nHost: localhost\r\nX: y\r\nHOST: evil.example\r\nConnection: close\r\n\r\n',
    'GET /ping HTTP/1.0\r\nHost: localhost\r\nhost: localhost\r\n\r\n',
    'GET /ping\r\n\r\n',
    'GET /ping HTTP/0.9\r\nHost: localhost\r\n\r\n',
  ])
    assert.match(
      await speak(world.host, world.port, request),
      /^HTTP\/1\.1 400 [\s\S]*"error":"invalid_request"/,
      request,
    );
});

test('a request without Host, as HTTP/1.0 allows, is local', async (t) => {
  const world = await startWorld(t);
  const answer = await speak(world.host, world.port, 'GET /ping HTTP/1.0\r\n\r\n');
  assert.match(answer, /^HTTP\/1\.1 200 /);
  assert.match(answer, /"origin":"local"/);
});

test('pages of other sites are rejected for every kind of request, pages of this site are not', async (t) => {
  const world = await startWorld(t);
  const own = `127.0.0.1:${world.port}`;
  const foreign = [
    { origin: 'https://evil.example' },
    { origin: 'null' },
    { origin: 'http://localhost:3000' },
    { origin: `http://localhost:${world.port}` },
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
    { origin: `http://${own}`, 'sec-fetch-site': 'cross-site' },
  ];
  for (const [method, path] of DOORS) {
    for (const headers of foreign) {
      const answer = await world.request(method, path, { headers: { ...JSON_HEADERS, ...headers } });
      assert.equal(answer.status, 403, `${method} ${path} ${JSON.stringify(headers)}`);
      if (method !== 'HEAD') assert.equal(code(answer.json), 'forbidden_origin');
    }
  }
  for (const headers of [
    { origin: `http://${own}` },
    { 'sec-fetch-site': 'same-origin' },
    { 'sec-fetch-site': 'none' },
  ])
    assert.equal((await world.request('GET', '/ping', { headers })).status, 200);
});

test('with require_local_token every kind of request needs the right token', async (t) => {
  const world = await startWorld(t, { token: TOKEN, requireLocalToken: true });
  for (const [method, path] of DOORS) {
    const answer = await world.request(method, path, { headers: JSON_HEADERS });
    assert.equal(answer.status, 401, `${method} ${path}`);
    assert.equal(answer.headers['www-authenticate'], 'Bearer realm="svcd"');
    if (method !== 'HEAD') assert.equal(code(answer.json), 'unauthorized');
  }
  for (const authorization of [`Bearer ${TOKEN}x`, `Bearer ${TOKEN.slice(1)}`, `Basic ${TOKEN}`, TOKEN, 'Bearer'])
    assert.equal((await world.request('GET', '/ping', { headers: { authorization } })).status, 401);
  for (const authorization of [`Bearer ${TOKEN}`, `bearer ${TOKEN}`])
    assert.equal((await world.request('GET', '/ping', { headers: { authorization } })).status, 200);
});

test("a connection of the daemon to an agent's service is always rejected", async (t) => {
  const ports = new Set<number>();
  const world = await startWorld(t, { isServiceConnection: ({ remotePort }) => ports.has(remotePort ?? 0) });
  for (const [method, path] of DOORS) {
    const answer = await world.request(method, path, { headers: JSON_HEADERS });
    assert.notEqual(answer.status, 403, `${method} ${path}`);
  }
  for (let port = 1; port < 65_536; port++) ports.add(port);
  for (const [method, path] of DOORS) {
    const answer = await world.request(method, path, { headers: JSON_HEADERS });
    assert.equal(answer.status, 403, `${method} ${path}`);
    if (method !== 'HEAD') assert.equal(code(answer.json), 'access_denied');
  }
});

test('the token is rejected in the query, because it would appear in logs', async (t) => {
  const world = await startWorld(t, { token: TOKEN, requireLocalToken: true });
  assert.equal((await world.request('GET', `/ping?token=${TOKEN}`)).status, 401);
});

test('a local program needs no token unless required, and a wrong token does no harm', async (t) => {
  const world = await startWorld(t, { token: TOKEN });
  assert.equal((await world.request('GET', '/ping')).status, 200);
  assert.equal((await world.request('GET', '/ping', { headers: { authorization: 'Bearer wrong' } })).status, 200);
});

test('a changed token is valid from the next request', async (t) => {
  let token = 'first-token';
  const world = await startWorld(t, { token: () => token, requireLocalToken: true });
  const headers = { authorization: 'Bearer first-token' };
  assert.equal((await world.request('GET', '/ping', { headers })).status, 200);
  token = 'second-token';
  assert.equal((await world.request('GET', '/ping', { headers })).status, 401);
  token = '';
  assert.equal((await world.request('GET', '/ping')).status, 200);
});

test('wrong tokens of one program never lock out the right token of another at the same address', () => {
  const clock = new TestClock();
  for (const address of ['127.0.0.1', '198.51.100.7']) {
    const gate = new RequestGate({ host: '', requireLocalToken: true }, { token: () => LONG_TOKEN, clock });
    const host = address === '127.0.0.1' ? address : '192.0.2.1:2121';
    for (let i = 0; i < 10; i++)
      assert.equal(verdict(gate, address, { host, authorization: `Bearer guess${i}` }), 'unauthorized');
    assert.equal(verdict(gate, address, { host, authorization: 'Bearer guess' }), 'rate_limited');
    for (let i = 0; i < 50; i++)
      assert.match(verdict(gate, address, { host, authorization: `Bearer ${LONG_TOKEN}` }), /^(?:local|remote)$/);
    assert.equal(verdict(gate, address, { host, authorization: 'Bearer guess' }), 'rate_limited');
  }
});

test('wrong tokens are rate-limited: then even a short right token is delayed, for that address only', () => {
  const clock = new TestClock();
  const gate = new RequestGate({ host: '', requireLocalToken: true }, { token: () => TOKEN, clock });
  const wrong = { host: '192.0.2.1:2121', authorization: 'Bearer guess' };
  const right = { host: '192.0.2.1:2121', authorization: `Bearer ${TOKEN}` };
  for (let i = 0; i < 10; i++) assert.equal(verdict(gate, '198.51.100.7', wrong), 'unauthorized');
  assert.equal(verdict(gate, '198.51.100.7', wrong), 'rate_limited');
  assert.equal(verdict(gate, '198.51.100.7', right), 'rate_limited');
  assert.equal(verdict(gate, '198.51.100.8', right), 'remote');
  clock.advance(10_000);
  assert.equal(verdict(gate, '198.51.100.7', right), 'remote');
});

test('the addresses of one IPv6 network share the limits for tokens and requests', () => {
  const gate = new RequestGate({ host: '', requireLocalToken: true }, { token: () => TOKEN, clock: new TestClock() });
  const host = '192.0.2.1:2121';
  const wrong = { host, authorization: 'Bearer guess' };
  for (let i = 0; i < 10; i++) assert.equal(verdict(gate, `2001:db8:1:2::${i}`, wrong), 'unauthorized');
  assert.equal(verdict(gate, '2001:db8:1:2::a', wrong), 'rate_limited');
  assert.equal(verdict(gate, '2001:db8:1:3::1', wrong), 'unauthorized');
  for (let i = 0; i < 200; i++) verdict(gate, `2001:db8:1:4:${i}::1`, { host });
  assert.equal(verdict(gate, '2001:db8:1:4:ffff::1', { host }), 'rate_limited');
  assert.notEqual(verdict(gate, '2001:db8:1:5::1', { host }), 'rate_limited');
});

test('changing the IPv6 /64 within one /48 gives few more attempts and does not block others', () => {
  const gate = new RequestGate({ host: '', requireLocalToken: true }, { token: () => TOKEN, clock: new TestClock() });
  const host = '192.0.2.1:2121';
  const wrong = { host, authorization: 'Bearer guess' };
  const verdicts = Array.from({ length: 500 }, (_, i) => verdict(gate, `2001:db8:1:${i.toString(16)}::1`, wrong));
  assert.equal(verdicts.filter((one) => one === 'unauthorized').length, 40);
  assert.equal(verdict(gate, '2001:db8:2::1', wrong), 'unauthorized');
  assert.equal(verdict(gate, '127.0.0.1', { host: '127.0.0.1', authorization: 'Bearer guess' }), 'unauthorized');
});

test('a rate-limited response has Retry-After', async (t) => {
  const world = await startWorld(t, { token: TOKEN, requireLocalToken: true });
  const headers = { authorization: 'Bearer guess' };
  for (let i = 0; i < 10; i++) assert.equal((await world.request('GET', '/ping', { headers })).status, 401);
  const answer = await world.request('GET', '/ping', { headers });
  assert.equal(answer.status, 429);
  assert.match(answer.headers['retry-after'] ?? '', /^[1-9]\d?$/);
});

test('a web page with DNS rebinding cannot use up the attempts of its user', () => {
  const gate = new RequestGate(
    { host: '127.0.0.1', requireLocalToken: true },
    { token: () => TOKEN, clock: new TestClock() },
  );
  for (let i = 0; i < 50; i++) {
    const headers = { host: 'evil.example', authorization: 'Bearer guess' };
    assert.equal(verdict(gate, '127.0.0.1', headers), 'forbidden_host');
  }
  const headers = { host: '127.0.0.1', authorization: `Bearer ${TOKEN}` };
  assert.equal(verdict(gate, '127.0.0.1', headers), 'local');
});

test('remote clients need the token and are never local', () => {
  const gate = new RequestGate({ host: '', requireLocalToken: false }, { token: () => TOKEN, clock: new TestClock() });
  const host = '192.0.2.1:2121';
  assert.equal(verdict(gate, '198.51.100.7', { host }), 'remote without token');
  assert.equal(verdict(gate, '198.51.100.7', { host, authorization: `Bearer ${TOKEN}` }), 'remote');
  assert.equal(verdict(gate, '198.51.100.7', { host: '127.0.0.1' }), 'remote without token');
  assert.equal(verdict(gate, '198.51.100.7', {}), 'remote without token');
  assert.equal(verdict(gate, '::ffff:127.0.0.1', { host: 'localhost' }), 'local');
});

test('remote clients with an unknown host name need the token, because of DNS rebinding', () => {
  const gate = new RequestGate(
    { host: 'box.example', requireLocalToken: false },
    { token: () => TOKEN, clock: new TestClock() },
  );
  const from = '198.51.100.7';
  assert.equal(verdict(gate, from, { host: 'evil.example' }), 'forbidden_host');
  assert.equal(verdict(gate, from, { host: 'bad host' }), 'forbidden_host');
  assert.equal(verdict(gate, from, { host: 'evil.example', authorization: `Bearer ${TOKEN}` }), 'remote');
  for (const host of ['box.example:2121', 'BOX.example', '192.0.2.1', '[2001:db8::1]:2121', hostname()])
    assert.equal(verdict(gate, from, { host }), 'remote without token', host);
});

test('the configured name is accepted on a loopback connection too, but is not local', () => {
  const gate = new RequestGate(
    { host: 'box.example', requireLocalToken: false },
    { token: () => TOKEN, clock: new TestClock() },
  );
  assert.equal(verdict(gate, '127.0.1.1', { host: 'box.example:2121' }), 'remote without token');
  assert.equal(verdict(gate, '127.0.1.1', { host: 'other.example' }), 'forbidden_host');
});

test('strangers are rate-limited, token holders and local programs are not', () => {
  const clock = new TestClock();
  const gate = new RequestGate({ host: '', requireLocalToken: false }, { token: () => TOKEN, clock });
  const host = '192.0.2.1';
  const many = (address: string, headers: Record<string, string>): Set<string> =>
    new Set(Array.from({ length: 1000 }, () => verdict(gate, address, headers)));
  assert.deepEqual(many('198.51.100.7', { host }), new Set(['remote without token', 'rate_limited']));
  assert.deepEqual(many('198.51.100.8', { host, authorization: `Bearer ${TOKEN}` }), new Set(['remote']));
  assert.deepEqual(many('127.0.0.1', { host: '127.0.0.1' }), new Set(['local']));
  clock.advance(1000);
  assert.equal(verdict(gate, '198.51.100.7', { host }), 'remote without token');
});

test('without an API token access is open', () => {
  const gate = new RequestGate({ host: '', requireLocalToken: false }, { token: () => '', clock: new TestClock() });
  assert.equal(verdict(gate, '198.51.100.7', { host: '192.0.2.1' }), 'remote');
});
