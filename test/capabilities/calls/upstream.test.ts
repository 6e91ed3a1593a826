import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer as createHttpServer, type ServerResponse } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { type BoundService, hostHeaderOf, Upstreams } from '../../../src/capabilities/calls/upstream.ts';
import { systemClock } from '../../../src/foundation/clock.ts';
import { callWorld, textOf, webService } from '../../support/call-world.ts';
import { eventually } from '../../support/eventually.ts';
import { newIdentity } from '../../support/identities.ts';
import { SELF_SIGNED } from '../../support/self-signed.ts';
import { TestClock } from '../../support/test-clock.ts';

async function listening(t: TestContext, server: Server, scheme: 'http' | 'https'): Promise<BoundService> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => sockets.add(socket.on('error', () => {})));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return {
    scheme,
    host: '127.0.0.1',
    port: (server.address() as AddressInfo).port,
    acceptsCalls: true,
    verifyCertificate: true,
  };
}

test('the Host of a service omits the default port and puts brackets around IPv6', () => {
  const service = (scheme: 'http' | 'https', host: string, port: number) =>
    hostHeaderOf({ scheme, host, port, acceptsCalls: true, verifyCertificate: true });
  assert.equal(service('http', 'localhost', 80), 'localhost');
  assert.equal(service('http', 'localhost', 443), 'localhost:443');
  assert.equal(service('https', 'localhost', 443), 'localhost');
  assert.equal(service('https', '::1', 443), '[::1]');
  assert.equal(service('http', '::1', 8080), '[::1]:8080');
});

test('an https service needs a trusted certificate, unless its agent disables the check', async (t) => {
  const world = await callWorld(t);
  const server = createHttpsServer(SELF_SIGNED, (request, response) => response.end(`secure ${request.url}`));
  const service = await listening(t, server, 'https');
  world.bound.set(world.remote, service);
  await assert.rejects(world.call(), { code: 'inbound_unreachable' });
  world.bound.set(world.remote, { ...service, verifyCertificate: false });
  assert.equal(await textOf(await world.call({ path: '/a' })), 'secure /a');
  world.bound.set(world.remote, service);
  await assert.rejects(world.call(), { code: 'inbound_unreachable' }, 'no unverified connection is reused');
});

test('a service that never completes its TLS handshake times out after 10 s', async (t) => {
  const clock = new TestClock();
  const world = await callWorld(t, { clock });
  const silent = createServer();
  const service = await listening(t, silent, 'https');
  world.bound.set(world.remote, service);
  const connected = once(silent, 'connection');
  const outcome = assert.rejects(world.call(), {
    code: 'inbound_unreachable',
    message: /does not accept a connection in time/,
  });
  await connected;
  clock.advance(10_000);
  await outcome;
});

test('requests share connections to a service', async (t) => {
  const world = await callWorld(t);
  const service = await webService(t, (_request, response) => response.end('ok'));
  let connections = 0;
  service.server.on('connection', () => connections++);
  world.bound.set(world.remote, service.bound);
  for (let i = 0; i < 5; i++) await textOf(await world.call({ method: 'POST', body: Buffer.from('x') }));
  assert.equal(connections, 1);
});

test('a repeated request leaves no extra connection open', async (t) => {
  const world = await callWorld(t);
  const output: (string | undefined)[] = [];
  const service = await webService(t, (request, response) => {
    output.push(request.headers.connection);
    // The second request uses the connection of the first, which is dead by then.
    if (output.length === 2) request.socket.destroy();
    else response.end('ok');
  });
  world.bound.set(world.remote, service.bound);
  for (let i = 0; i < 2; i++) assert.equal(await textOf(await world.call()), 'ok');
  assert.deepEqual(output, ['keep-alive', 'keep-alive', 'close']);
});

test('a newly bound service is called immediately', async (t) => {
  const world = await callWorld(t);
  for (const name of ['first', 'second']) {
    const service = await webService(t, (_request, response) => response.end(name));
    world.bound.set(world.remote, service.bound);
    assert.equal(await textOf(await world.call()), name);
  }
});

test('an invalid HTTP response is reported as an error of the service', async (t) => {
  const world = await callWorld(t);
  const answers = [
    'nonsense\r\n\r\n',
    'HTTP/1.1 101 OK\r\nContent-Length: 0\r\n\r\n',
    'HTTP/1.1 099 OK\r\nContent-Length: 0\r\n\r\n',
    'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok!',
    `HTTP/1.1 200 OK\r\n${'X: 1\r\n'.repeat(200)}\r\n`,
    `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(40_000)}\r\n\r\n`,
    'HTTP/1.1 200 OK\r\nX: a\0b\r\n\r\n',
  ];
  let next = 0;
  const server = createServer((socket) => socket.once('data', () => socket.write(answers[next++] ?? '')));
  world.bound.set(world.remote, await listening(t, server, 'http'));
  for (const answer of answers)
    await assert.rejects(world.call(), { code: 'bad_response' }, JSON.stringify(answer.slice(0, 60)));
  await eventually('all slots are free', () => world.server.active === 0);
});

test('each new connection is observed, and a destroyed one carries no request', async (t) => {
  const { aid: caller } = newIdentity();
  const callerKey = new Uint8Array(32);
  const request = {
    owner: caller,
    called: caller,
    callerKey,
    method: 'GET',
    path: '/',
    headers: ['Host', 'x'],
    body: null,
  };
  const plain = createHttpServer();
  const secure = createHttpsServer(SELF_SIGNED);
  for (const [server, scheme] of [
    [plain, 'http'],
    [secure, 'https'],
  ] as const) {
    let asked = 0;
    server.on('request', (_request, response: ServerResponse) => {
      asked++;
      response.end();
    });
    const service = { ...(await listening(t, server, scheme)), verifyCertificate: false };
    let ends = false;
    const upstreams = new Upstreams(systemClock, (socket) => {
      if (ends) socket.prependOnceListener('connect', () => socket.destroy(new Error('it led elsewhere')));
    });
    t.after(() => upstreams.stop());
    const first = await upstreams.send(service, request);
    first.message.resume();
    ends = true;
    await assert.rejects(upstreams.send(service, { ...request, owner: newIdentity().aid }), /no response/);
    assert.equal(asked, 1, scheme);
  }
});

test('a response that is delimited by the end of its connection arrives completely', async (t) => {
  const world = await callWorld(t);
  const server = createServer((socket) => socket.once('data', () => socket.end('HTTP/1.0 200 OK\r\n\r\nold school')));
  world.bound.set(world.remote, await listening(t, server, 'http'));
  assert.equal(await textOf(await world.call()), 'old school');
});
