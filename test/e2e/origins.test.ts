/** The local address of a remote agent: its use by programs and browsers, through two daemons. */
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, request as httpRequest, type IncomingMessage, type Server } from 'node:http';
import { connect as connectHttp2, createServer as createHttp2Server, type ServerHttp2Stream } from 'node:http2';
import { connect, type Server as NetServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { svcOk } from '../support/cli.ts';
import { TestDaemon } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { ready } from '../support/network.ts';
import { quietPort } from '../support/programs.ts';

interface Origin {
  readonly id: string;
  readonly url: string;
  readonly is_served: boolean;
  readonly served: number;
  readonly last_error?: { readonly code: string };
}

function portOf(server: NetServer): number {
  const address = server.address();
  assert.ok(address !== null && typeof address === 'object');
  return address.port;
}

async function listening<T extends NetServer>(server: T): Promise<T> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

/** Sends a request as any program does, with headers that `fetch` would not send. */
function ask(url: string, headers: Record<string, string | string[]> = {}, method = 'GET'): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    httpRequest(url, { method, headers, agent: false }, resolve).on('error', reject).end();
  });
}

async function textOf(message: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of message) text += String(chunk);
  return text;
}

/** Headers that a browser adds to a request of a script on a page. */
function fromPage(site: string, origin?: string): Record<string, string> {
  const own = { 'sec-fetch-site': site, 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' };
  return origin === undefined ? own : { ...own, origin };
}

describe('the local address of a remote agent', () => {
  let near: TestDaemon;
  let far: TestDaemon;
  let service: Server;
  let aid: string;
  let origin: Origin;
  /** The last request that the service saw. */
  let seen: IncomingMessage;
  const events: (() => void)[] = [];
  const dataDir = mkdtempSync(join(tmpdir(), 'svcd-origins-'));

  function answer(request: IncomingMessage, response: Parameters<NonNullable<Parameters<typeof createServer>[1]>>[1]) {
    seen = request;
    switch (request.url) {
      case '/events':
        response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
        events.push(() => response.write('data: one\n\n'));
        return;
      case '/login':
        response.setHeader('set-cookie', ['sid=1; Path=/; Domain=example.org; Secure', 'nameless']);
        response.setHeader('strict-transport-security', 'max-age=1');
        response.setHeader('clear-site-data', '"*"');
        response.setHeader('content-security-policy', 'img-src data:');
        response.setHeader('access-control-allow-origin', '*');
        return void response.writeHead(401, { 'www-authenticate': 'Basic realm="x"' }).end();
      case '/.well-known/oauth-protected-resource/mcp': {
        const own = `http://127.0.0.1:${portOf(service)}`;
        const metadata = { resource: `${own}/mcp`, authorization_servers: [own, 'https://login.example.org/'] };
        return void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(metadata));
      }
      case '/mcp': {
        const at = `http://127.0.0.1:${portOf(service)}/.well-known/oauth-protected-resource/mcp`;
        const challenge = `Bearer error="invalid_token", resource_metadata="${at}"`;
        return void response.writeHead(401, { 'www-authenticate': challenge }).end();
      }
      case '/elsewhere':
        return void response.writeHead(302, { location: `http://127.0.0.1:${portOf(service)}/there?x=1` }).end();
      default:
        request.pipe(response);
    }
  }

  before(async () => {
    service = await listening(createServer(answer));
    service.on('upgrade', (_request, socket) => {
      socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
      socket.pipe(socket);
    });
    far = await TestDaemon.start();
    near = await TestDaemon.start({ dataDir, bootstrap: [far.dhtAddress] });
    await Promise.all([ready(near), ready(far)]);
    aid = await far.newAgent(`127.0.0.1:${portOf(service)}`);
    await far.call('POST', `/agents/${aid}/publish`);
    await near.newAgent();
    // The daemon restarts at this port, so no other process may get it meanwhile.
    origin = await near.call<Origin>('POST', `/origins/${aid}`, { local_port: await quietPort() });
  });

  after(async () => {
    await Promise.all([near.stop(), far.stop()]);
    service.closeAllConnections();
    service.close();
    rmSync(dataDir, { recursive: true, force: true });
  });

  test('a program uses it like a local service: credentials, cookies, bodies in both directions', async () => {
    const response = await fetch(`${origin.url}/echo?q=1`, {
      method: 'POST',
      body: 'hello',
      headers: { authorization: 'Bearer mine', cookie: 'sid=1', 'content-type': 'text/plain' },
    });
    assert.equal(await response.text(), 'hello');
    assert.equal(seen.url, '/echo?q=1');
    assert.equal(seen.headers.authorization, 'Bearer mine');
    assert.equal(seen.headers.cookie, 'sid=1');
    assert.match(String(seen.headers['svc-caller-aid']), /^aid1/);
    const refused = await ask(`${origin.url}/login`);
    assert.equal(refused.statusCode, 401);
    assert.equal(refused.headers['www-authenticate'], 'Basic realm="x"');
    assert.deepEqual(refused.headers['set-cookie'], ['sid=1; Path=/; Secure', 'nameless']);
    assert.equal(refused.headers['access-control-allow-origin'], '*');
    assert.equal(refused.headers['content-security-policy'], 'img-src data:');
    refused.resume();
  });

  test('large bodies arrive byte for byte, in both directions at the same time', async () => {
    const body = randomBytes(24 * 1024 * 1024);
    const hashes: string[] = [];
    for (const chunked of [false, true]) {
      const sent = chunked ? new ReadableStream({ start: (to) => (to.enqueue(body), to.close()) }) : body;
      const response = await fetch(`${origin.url}/large`, { method: 'POST', body: sent, duplex: 'half' });
      const hash = createHash('sha256');
      for await (const chunk of response.body ?? []) hash.update(chunk);
      hashes.push(hash.digest('hex'));
    }
    const expected = createHash('sha256').update(body).digest('hex');
    assert.deepEqual(hashes, [expected, expected]);
  });

  test('no response of an agent affects the host that all local addresses share', async () => {
    const { headers } = await ask(`${origin.url}/login`, { 'sec-fetch-site': 'same-origin' });
    assert.deepEqual(headers['set-cookie'], [`${origin.id}.sid=1; Secure; Path=/; HttpOnly`]);
    for (const name of ['strict-transport-security', 'clear-site-data']) assert.equal(headers[name], undefined);
    // Both policies apply: the agent's own policy, and the policy of svcd, which blocks its pages from other ports of this
    // machine.
    assert.match(String(headers['content-security-policy']), /^img-src data:, default-src 'self' https: /);
    const cookie = `other.sid=2; ${origin.id}.sid=1; sid=3; ${origin.id}.b=x=y`;
    (await ask(`${origin.url}/x`, { cookie, 'sec-fetch-site': 'same-origin' })).resume();
    assert.equal(seen.headers.cookie, 'sid=1; b=x=y');
    (await ask(`${origin.url}/x`, { cookie: 'other.sid=2', 'sec-fetch-site': 'same-origin' })).resume();
    assert.equal(seen.headers.cookie, undefined);
  });

  test('a server that requires authorization names the local address in its challenge and its metadata', async () => {
    const refused = await ask(`${origin.url}/mcp`);
    const at = `${origin.url}/.well-known/oauth-protected-resource/mcp`;
    assert.equal(refused.headers['www-authenticate'], `Bearer error="invalid_token", resource_metadata="${at}"`);
    refused.resume();
    const metadata = await ask(at, { 'accept-encoding': 'gzip' });
    assert.equal(seen.headers['accept-encoding'], 'identity');
    assert.deepEqual(JSON.parse(await textOf(metadata)), {
      resource: `${origin.url}/mcp`,
      authorization_servers: [`${origin.url}/`, 'https://login.example.org/'],
    });
  });

  test('a redirect points to the same address, not to the port of the service', async () => {
    const { headers } = await ask(`${origin.url}/elsewhere`);
    assert.equal(headers.location, '/there?x=1');
  });

  test('pages of other sites cannot act as the local agent', async () => {
    const own = new URL(origin.url).origin;
    const allowed: Record<string, string>[] = [
      {},
      { origin: own },
      fromPage('same-origin', own),
      { 'sec-fetch-site': 'none', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' },
      { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' },
      { host: 'localhost:1' },
    ];
    for (const headers of allowed) {
      const { statusCode } = await ask(`${origin.url}/x`, headers);
      assert.equal(statusCode, 200, JSON.stringify(headers));
    }
    const refused: [string, Record<string, string>, string?][] = [
      ['forbidden_origin', fromPage('cross-site', 'https://example.org')],
      ['forbidden_origin', fromPage('same-site', 'http://127.0.0.1:1')],
      ['forbidden_origin', fromPage('cross-site')],
      ['forbidden_origin', { origin: 'null' }],
      ['forbidden_origin', { origin: 'https://example.org' }],
      ['forbidden_origin', { origin: 'https://example.org', 'access-control-request-method': 'PUT' }, 'OPTIONS'],
      [
        'forbidden_origin',
        { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' },
      ],
      [
        'forbidden_origin',
        { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' },
        'POST',
      ],
      ['forbidden_host', { host: 'rebound.example.org' }],
      ['forbidden_host', { host: `127.0.0.1.example.org:${new URL(origin.url).port}` }],
    ];
    for (const [code, headers, method] of refused) {
      const { statusCode, headers: output } = await ask(`${origin.url}/x`, headers, method);
      assert.equal(statusCode, 403, JSON.stringify(headers));
      assert.equal(output['svc-error'], code);
    }
  });

  test('events arrive as they are sent', async () => {
    const stream = await ask(`${origin.url}/events`);
    assert.equal(stream.headers['content-type'], 'text/event-stream');
    for (const send of events) send();
    const [chunk] = (await once(stream, 'data')) as [Buffer];
    assert.equal(String(chunk), 'data: one\n\n');
    stream.destroy();
  });

  test('a WebSocket goes through, and requests for other protocols get HTTP/1.1', async () => {
    const socket = connect(Number(new URL(origin.url).port), '127.0.0.1');
    const head = (protocol: string): string =>
      `GET /ws HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: ${protocol}\r\n\r\n`;
    socket.write(head('websocket'));
    let text = '';
    socket.setEncoding('latin1').on('data', (chunk: string) => (text += chunk));
    await eventually('the switch', () => text.includes('101 Switching'));
    socket.write('ping');
    await eventually('the echo', () => text.endsWith('\r\n\r\nping'));
    socket.destroy();
    const plain = connect(Number(new URL(origin.url).port), '127.0.0.1');
    plain.write(head('h2c'));
    const [first] = (await once(plain, 'data')) as [Buffer];
    assert.match(String(first), /^HTTP\/1\.1 200 /);
    plain.destroy();
  });

  test('HTTP/2 without an upgrade goes through byte by byte, with streams and trailers', async () => {
    const http2 = createHttp2Server();
    http2.on('stream', (stream: ServerHttp2Stream) => {
      stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
      stream.pipe(stream);
    });
    await listening(http2);
    const grpc = await far.newAgent(`127.0.0.1:${portOf(http2)}`);
    await far.call('POST', `/agents/${grpc}/publish`);
    const { url, id } = await near.call<Origin>('POST', `/origins/${grpc}`);
    const session = connectHttp2(url);
    const stream = session.request({ ':method': 'POST', ':path': '/svc.Test/Echo' }, { endStream: false });
    const trailers = once(stream, 'trailers');
    stream.write('a frame');
    const [frame] = (await once(stream, 'data')) as [Buffer];
    assert.equal(String(frame), 'a frame');
    stream.end();
    stream.resume();
    const [output] = (await trailers) as [Record<string, string>];
    assert.equal(output['grpc-status'], '0');
    session.destroy();
    http2.close();
    await near.call('DELETE', `/origins/${id}`);
  });

  test('a local address is opened once, listed, and closed', async () => {
    const again = await near.request('POST', `/origins/${aid}`);
    assert.equal(again.status, 200);
    const { origins } = await near.call<{ origins: Origin[] }>('GET', '/origins');
    assert.deepEqual(
      origins.map(({ id, url }) => ({ id, url })),
      [{ id: origin.id, url: origin.url }],
    );
    assert.equal((await near.request('POST', `/origins/${aid}`, { local_port: portOf(service) })).status, 409);
    assert.equal(await textOf(await ask(`${origin.url}/x`)), '');
    assert.equal((await near.request('DELETE', '/origins/0000000000000000')).status, 404);
  });

  test('a refusal by the called side names its source and is recorded', async () => {
    await far.call('PATCH', `/agents/${aid}/acl`, { default: 'deny' });
    const refused = await ask(`${origin.url}/x`);
    assert.equal(refused.statusCode, 403);
    assert.equal(refused.headers['svc-error'], 'access_denied');
    refused.resume();
    const { origins } = await near.call<{ origins: Origin[] }>('GET', '/origins');
    assert.equal(origins[0]?.last_error?.code, 'access_denied');
    await far.call('PATCH', `/agents/${aid}/acl`, { default: 'public' });
    assert.equal((await ask(`${origin.url}/x`)).statusCode, 200);
  });

  test('a local address works again after the daemon was killed and restarted', async () => {
    await near.kill('SIGKILL');
    near = await TestDaemon.start({ dataDir, bootstrap: [far.dhtAddress] });
    await ready(near);
    await eventually('it answers again', async () => {
      const message = await ask(`${origin.url}/x`).catch(() => null);
      message?.resume();
      return message?.statusCode === 200;
    });
    const listed = await svcOk(near, 'origin', 'list');
    assert.match(listed, new RegExp(`${origin.url}[\\s\\S]*serves`));
    await near.call('DELETE', `/origins/${origin.id}`);
    await assert.rejects(ask(`${origin.url}/x`));
  });
});
