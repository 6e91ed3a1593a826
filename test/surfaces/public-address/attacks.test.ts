/** Clients of a public address that break the rules of HTTP and TLS. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect as connectTcp } from 'node:net';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { connect as connectTls } from 'node:tls';
import { HOST, publicWorld } from '../../support/public-world.ts';
import { TestClock } from '../../support/test-clock.ts';

/** Sends bytes over TLS and returns the response until the end of the connection. */
async function send(port: number, bytes: string): Promise<string> {
  const socket = connectTls({ host: '127.0.0.1', port, servername: HOST, rejectUnauthorized: false });
  socket.on('error', () => {});
  await once(socket, 'secureConnect');
  socket.write(bytes);
  return await text(socket).catch(() => '');
}

test('two readings of the end of a request reach the service at most as one request', async (t) => {
  const seen: string[] = [];
  const world = await publicWorld(t, (request, response) => {
    seen.push(`${request.method} ${request.url}`);
    request.resume().on('end', () => response.end('ok'));
  });
  const smuggled = 'GET /admin HTTP/1.1\r\nHost: x\r\n\r\n';
  const head = (lines: string) => `POST /a HTTP/1.1\r\nHost: ${HOST}\r\nConnection: close\r\n${lines}\r\n`;
  for (const bytes of [
    head('Content-Length: 5\r\nTransfer-Encoding: chunked\r\n') + `0\r\n\r\n${smuggled}`,
    head('Transfer-Encoding: xchunked\r\n') + `0\r\n\r\n${smuggled}`,
    head('Transfer-Encoding: chunked, identity\r\n') + `0\r\n\r\n${smuggled}`,
    head('Content-Length: 5\r\nContent-Length: 6\r\n') + `12345${smuggled}`,
    head('Content-Length: +5\r\n') + `12345${smuggled}`,
    `GET /a HTTP/1.1\r\nHost: ${HOST}\r\nHost: other\r\n\r\n`,
    `GET /a HTTP/1.1\r\nHost: ${HOST}\r\nX: a\rb\r\n\r\n`,
    `GET http://${HOST}/a HTTP/1.1\r\nHost: ${HOST}\r\nConnection: close\r\n\r\n`,
    `CONNECT ${HOST}:443 HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`,
    'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  ]) {
    const answer = await send(world.port, bytes);
    assert.doesNotMatch(answer, /HTTP\/1.1 2\d\d/, bytes);
  }
  assert.deepEqual(seen, []);
});

test('a request limited by a rule cannot name another path or method', async (t) => {
  const seen: (string | undefined)[] = [];
  const world = await publicWorld(t, (request, response) => response.end(String(seen.push(request.url))), {
    mode: 'only',
    rules: ['POST /hook'],
  });
  const ask = (path: string, headers: Record<string, string> = {}) =>
    world.ask(path, { method: 'POST', headers }).then(({ status }) => status);
  assert.equal(await ask('/hook'), 200);
  assert.equal(await ask('/hook/../admin'), 401);
  assert.equal(await ask('/hook/%2e%2e/admin'), 401);
  assert.equal(await ask('/hook', { 'x-http-method-override': 'DELETE' }), 401);
  assert.equal(await ask('/hook', { 'x-original-url': '/admin' }), 401);
  assert.equal(await ask('/hook?_method=DELETE'), 401);
  const stream = world.http2().request({ ':path': '/hook/..;/admin', ':method': 'POST' });
  assert.equal((await once(stream, 'response'))[0][':status'], 401);
  assert.deepEqual(seen, ['/hook']);
});

test('too many and too large headers are refused in both versions', async (t) => {
  const world = await publicWorld(t, (_request, response) => response.end('ok'));
  const many = Object.fromEntries(Array.from({ length: 140 }, (_, i) => [`x-${i}`, '1']));
  assert.equal((await world.ask('/', { headers: many })).status, 431);
  const stream = world.http2().request({ ':path': '/', ...many });
  await assert.rejects(once(stream, 'response'), /ENHANCE_YOUR_CALM/);
  const large = await send(world.port, `GET / HTTP/1.1\r\nHost: ${HOST}\r\nX: ${'a'.repeat(40_000)}\r\n\r\n`);
  assert.doesNotMatch(large, /HTTP\/1.1 2\d\d/);
});

test('a client without a request, and one between requests, is closed after a time', async (t) => {
  const clock = new TestClock();
  const world = await publicWorld(t, (_request, response) => response.end('ok'), {}, clock);
  const silent = connectTcp(world.port, '127.0.0.1');
  silent.on('error', () => {});
  await once(silent, 'connect');
  const idle = connectTls({ host: '127.0.0.1', port: world.port, servername: HOST, rejectUnauthorized: false });
  idle.on('error', () => {});
  await once(idle, 'secureConnect');
  idle.write(`GET / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`);
  await once(idle, 'data');
  const closed = once(silent, 'close');
  silent.resume();
  await clock.run(25_000);
  await closed;
  assert.equal(idle.destroyed, false);
  const ended = once(idle, 'close');
  idle.resume();
  await clock.run(80_000);
  await ended;
});
