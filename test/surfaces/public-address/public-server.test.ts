import assert from 'node:assert/strict';
import { createHmac, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { request as requestHttps } from 'node:https';
import type { Duplex } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { test } from 'node:test';
import { connect as connectTls } from 'node:tls';
import { eventually } from '../../support/eventually.ts';
import { HOST, PUBLIC_PROOF_KEY, publicWorld } from '../../support/public-world.ts';

test('a service sees a public caller, and nothing that the caller forged', async (t) => {
  const world = await publicWorld(t, (request, response) => response.end(JSON.stringify(request.rawHeaders)));
  const forged = {
    'svc-caller': 'owner',
    svc_caller_aid: 'aid1x',
    'svc-client': 'boss',
    forwarded: 'for=10.0.0.1',
    'x-forwarded-for': '10.0.0.1',
    'x-real-ip': '10.0.0.1',
    origin: `https://${HOST}`,
    'x-own': 'kept',
  };
  for (const version of [1, 2]) {
    let body: string;
    if (version === 1) body = (await world.ask('/a?b=1', { headers: forged })).body;
    else {
      const stream = world.http2().request({ ':path': '/a?b=1', ...forged });
      body = (await buffer(stream)).toString();
    }
    const raw: string[] = JSON.parse(body);
    const headers = new Map(raw.flatMap((name, i) => (i % 2 === 0 ? [[name.toLowerCase(), raw[i + 1] ?? '']] : [])));
    assert.equal(headers.get('svc-caller'), 'public');
    assert.equal(headers.get('svc-client'), undefined);
    assert.equal(headers.get('svc_caller_aid'), undefined);
    assert.equal(headers.get('host'), `127.0.0.1:${world.servicePort}`);
    assert.equal(headers.get('forwarded'), `by=_${world.aid};for="192.0.2.7:4000";host=${HOST};proto=https`);
    assert.equal(headers.get('x-forwarded-for'), undefined);
    assert.equal(headers.get('x-real-ip'), undefined);
    assert.equal(headers.get('origin'), undefined);
    assert.equal(headers.get('x-own'), 'kept');
    const [, at = '', mac] = /^t=(\d+),v1=(\w+)$/.exec(headers.get('svc-caller-proof') ?? '') ?? [];
    const text = ['v1', at, 'public', world.aid, 'GET', '/a?b=1'].join('\n');
    assert.equal(mac, createHmac('sha256', PUBLIC_PROOF_KEY).update(text).digest('hex'));
  }
});

test('a token is needed, is not shown to the service, and names the client', async (t) => {
  const world = await publicWorld(
    t,
    ({ headers }, response) => response.end(`${String(headers['svc-client'])} ${headers.authorization}`),
    { mode: 'tokens' },
  );
  const { token } = world.exposures.addToken(world.exposure.id, 'laptop', [], null);
  const without = await world.ask('/');
  assert.equal(without.status, 401);
  assert.equal(without.headers['www-authenticate'], 'Bearer realm="svcd"');
  assert.equal(without.headers['svc-error'], 'unauthorized');
  const right = await world.ask('/', { headers: { authorization: `Bearer ${token}` } });
  assert.deepEqual([right.status, right.body], [200, 'laptop undefined']);
  const wrong = await world.ask('/', { headers: { authorization: `Bearer ${token}x` } });
  assert.equal(wrong.status, 401);
  const stream = world.http2().request({ ':path': '/', authorization: `Bearer ${token}` });
  assert.equal((await buffer(stream)).toString(), 'laptop undefined');
});

test('wrong tokens are slowed down, and a right one of the same address passes', async (t) => {
  const world = await publicWorld(t, (_request, response) => response.end('ok'), { mode: 'tokens' });
  const { token } = world.exposures.addToken(world.exposure.id, 'laptop', [], null);
  const statuses: number[] = [];
  for (let i = 0; i < 7; i++) {
    world.client.address = `2001:db8:0:${i}::1`;
    statuses.push((await world.ask('/', { headers: { authorization: `Bearer svcp_${i}` } })).status);
  }
  // The addresses belong to one household (a /56).
  assert.deepEqual(statuses.slice(0, 5), [401, 401, 401, 401, 401]);
  assert.equal(statuses.at(-1), 429);
  const right = await world.ask('/', { headers: { authorization: `Bearer ${token}` } });
  assert.equal(right.status, 200);
});

test('uploads and responses of several megabytes pass in both versions, with trailers', async (t) => {
  const world = await publicWorld(t, (request, response) => {
    response.writeHead(200, { trailer: 'x-sum' });
    request.pipe(response, { end: false });
    request.on('end', () => {
      response.addTrailers({ 'x-sum': request.trailers['x-in'] ?? 'none' });
      response.end();
    });
  });
  const body = randomBytes(5 * 1024 * 1024);
  const request = requestHttps(world.options({ path: '/', method: 'POST', headers: { trailer: 'x-in' } }));
  request.addTrailers({ 'x-in': 'one' });
  request.write(body);
  request.end();
  const [response] = await once(request, 'response');
  assert.ok((await buffer(response)).equals(body));
  assert.equal(response.trailers['x-sum'], 'one');

  const stream = world.http2().request({ ':path': '/', ':method': 'POST' }, { waitForTrailers: true });
  stream.on('wantTrailers', () => stream.sendTrailers({ 'x-in': 'two' }));
  const trailers = once(stream, 'trailers');
  stream.end(body);
  assert.ok((await buffer(stream)).equals(body));
  assert.equal((await trailers)[0]['x-sum'], 'two');
});

test('headers and trailers that a service repeats pass in both versions', async (t) => {
  const world = await publicWorld(t, (_request, response) => {
    const repeated = ['X-Content-Type-Options', 'nosniff', 'X-Content-Type-Options', 'nosniff'];
    response.writeHead(200, [...repeated, 'Trailer', 'etag']);
    response.write('ok');
    response.addTrailers([
      ['etag', '"a"'],
      ['etag', '"b"'],
    ]);
    response.end();
  });
  const first = await world.ask('/');
  assert.deepEqual(
    [first.status, first.headers['x-content-type-options'], first.body],
    [200, 'nosniff, nosniff', 'ok'],
  );
  const stream = world.http2().request({ ':path': '/' });
  const trailers = once(stream, 'trailers');
  const [head, , raw] = await once(stream, 'response');
  assert.equal(head[':status'], 200);
  assert.equal(raw.filter((part: string) => part === 'nosniff').length, 2);
  assert.equal((await buffer(stream)).toString(), 'ok');
  assert.deepEqual((await trailers)[2].slice(0, 4), ['etag', '"a"', 'etag', '"b"']);
});

test('HEAD, statuses without a body, ranges and early hints', async (t) => {
  const world = await publicWorld(t, (request, response) => {
    if (request.url === '/hints') response.writeEarlyHints({ link: '</a.css>; rel=preload' });
    if (request.url === '/none') return void response.writeHead(204).end();
    if (request.headers.range === undefined) return void response.end('content');
    response.writeHead(206, { 'content-range': 'bytes 1-2/7', 'content-length': 2 }).end('on');
  });
  const session = world.http2();
  const ask = async (headers: Record<string, string>) => {
    const stream = session.request(headers);
    const hints: unknown[] = [];
    stream.on('headers', (sent) => hints.push(sent['link']));
    const [head] = await once(stream, 'response');
    return { status: head[':status'], body: (await buffer(stream)).toString(), hints };
  };
  assert.deepEqual(await ask({ ':path': '/', ':method': 'HEAD' }), { status: 200, body: '', hints: [] });
  assert.deepEqual(await ask({ ':path': '/none' }), { status: 204, body: '', hints: [] });
  assert.deepEqual(await ask({ ':path': '/', range: 'bytes=1-2' }), { status: 206, body: 'on', hints: [] });
  const hinted = await ask({ ':path': '/hints' });
  assert.deepEqual(hinted, { status: 200, body: 'content', hints: ['</a.css>; rel=preload'] });
  assert.deepEqual((await world.ask('/', { method: 'HEAD' })).status, 200);
  assert.equal((await world.ask('/none')).status, 204);
  const request = requestHttps(world.options({ path: '/hints' })).end();
  const [{ headers }] = await once(request, 'information');
  assert.equal(headers.link, '</a.css>; rel=preload');
  const [response] = await once(request, 'response');
  await buffer(response);
});

test('removing a token or the address cuts its open streams, and no others', async (t) => {
  const world = await publicWorld(
    t,
    (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write('data: 1\n\n');
    },
    { mode: 'tokens' },
  );
  const { id } = world.exposure;
  const follow = async (label: string, version: 1 | 2) => {
    const { token } = world.exposures.addToken(id, `${label}-${version}`, [], null);
    const headers = { authorization: `Bearer ${token}` };
    if (version === 2) {
      const stream = world.http2().request({ ':path': '/', ...headers });
      stream.on('error', () => {});
      await once(stream, 'data');
      return stream;
    }
    const [response] = await once(requestHttps(world.options({ headers })).end(), 'response');
    response.on('error', () => {});
    await once(response, 'data');
    return response;
  };
  const all = [];
  for (const version of [1, 2] as const) for (const label of ['a', 'b']) all.push(await follow(label, version));
  const [a1, b1, a2, b2] = all;
  const closing = (stream: Duplex) => new Promise((resolve) => stream.once('close', resolve));
  const isClosed = [a1, a2].map(closing);
  world.exposures.removeToken(id, 'a-1');
  world.exposures.removeToken(id, 'a-2');
  await Promise.all(isClosed);
  assert.deepEqual([b1.destroyed, b2.destroyed], [false, false]);
  const rest = [b1, b2].map(closing);
  world.exposures.off(id);
  await Promise.all(rest);
  await eventually('all requests ended', () => world.server.active === 0);
  await assert.rejects(world.ask('/'));
});

test('a connection for another name, or a request for another host, is not served', async (t) => {
  const world = await publicWorld(t, (_request, response) => response.end('ok'));
  const misdirected = await world.ask('/', { headers: { host: 'other.vps.test' } });
  assert.deepEqual([misdirected.status, misdirected.headers['svc-error']], [421, 'forbidden_host']);
  const session = world.http2();
  const [head] = await once(session.request({ ':path': '/', ':authority': 'other.vps.test' }), 'response');
  assert.equal(head[':status'], 421);
  const socket = connectTls({ ...world.options(), servername: 'other.vps.test' } as never);
  socket.on('error', () => {});
  await once(socket, 'close');
});

test('a redirect and cookies of the service stay at the address', async (t) => {
  const world = await publicWorld(t, (request, response) => {
    const location = `http://${request.headers.host}/next?a=1`;
    response.writeHead(302, { location, 'set-cookie': ['a=1; Domain=vps.test; Path=/', 'b=2'], 'alt-svc': 'h3=":1"' });
    response.end();
  });
  for (const { headers } of [await world.ask('/x')]) {
    assert.equal(headers.location, '/next?a=1');
    assert.deepEqual(headers['set-cookie'], ['a=1; Path=/', 'b=2']);
    assert.equal(headers['alt-svc'], undefined);
  }
  const [head] = await once(world.http2().request({ ':path': '/x' }), 'response');
  assert.deepEqual([head['location'], head['set-cookie']], ['/next?a=1', ['a=1; Path=/', 'b=2']]);
});

test('an upgrade switches protocols, and is cut with the address', async (t) => {
  const world = await publicWorld(t, (_request, response) => response.end());
  const { createServer } = await import('node:http');
  const service = createServer();
  service.on('upgrade', (request, socket) => {
    socket.write(`HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n`);
    socket.write(String(request.headers['svc-caller']));
    socket.pipe(socket);
    socket.on('error', () => {});
  });
  service.listen(0, '127.0.0.1');
  await once(service, 'listening');
  t.after(() => service.close());
  Object.assign(world.bound, { port: (service.address() as { port: number }).port });
  const request = requestHttps(world.options({ headers: { connection: 'upgrade', upgrade: 'echo' } })).end();
  const [response, socket, first] = await once(request, 'upgrade');
  assert.equal(response.statusCode, 101);
  let text = String(first);
  socket.on('data', (chunk: Buffer) => {
    text += chunk;
  });
  socket.on('error', () => {});
  socket.write(' and back');
  while (!text.includes('back')) await once(socket, 'data');
  assert.equal(text, 'public and back');
  const closed = once(socket, 'close');
  world.exposures.off(world.exposure.id);
  await closed;
});

test('an agent without a service, and a service that is down, give their errors', async (t) => {
  const world = await publicWorld(t, (_request, response) => response.end());
  Object.assign(world.bound, { port: 1 });
  const down = await world.ask('/');
  assert.deepEqual([down.status, down.headers['svc-error']], [502, 'inbound_unreachable']);
  Object.assign(world.bound, { acceptsCalls: false });
  const tunnels = await world.ask('/');
  assert.deepEqual([tunnels.status, tunnels.headers['svc-error']], [403, 'tunnels_only']);
});

test('a card and OAuth metadata name the public address, in both versions', async (t) => {
  const world = await publicWorld(t, (request, response) => {
    const own = `http://${request.headers.host}`;
    response.setHeader('content-type', 'application/json');
    if (request.url?.endsWith('agent-card.json')) response.end(JSON.stringify({ name: 'a', url: `${own}/a2a` }));
    else response.end(JSON.stringify({ resource: `${own}/mcp`, authorization_servers: [`${own}/`] }));
  });
  const card = '/.well-known/agent-card.json';
  const metadata = '/.well-known/oauth-protected-resource';
  const ask = async (path: string) => JSON.parse((await buffer(world.http2().request({ ':path': path }))).toString());
  for (const get of [ask, async (path: string) => JSON.parse((await world.ask(path)).body)]) {
    assert.equal((await get(card)).url, `https://${HOST}`);
    const { resource, authorization_servers: servers } = await get(metadata);
    assert.deepEqual([resource, servers], [`https://${HOST}/mcp`, [`https://${HOST}/`]]);
  }
});
