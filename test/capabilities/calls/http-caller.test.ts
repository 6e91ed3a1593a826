import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { type TestContext, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { pairs } from '../../../src/capabilities/calls/headers.ts';
import { HttpCaller, MAX_CALLS_PER_TARGET } from '../../../src/capabilities/calls/http-caller.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import type { LinkStream } from '../../../src/network/links/types.ts';
import { callWorld, headerOf, textOf, webService } from '../../support/call-world.ts';
import { newIdentity } from '../../support/identities.ts';
import { TestClock } from '../../support/test-clock.ts';

interface Seen {
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly headers: readonly string[];
  readonly body: string;
  readonly trailers: readonly string[];
}

/** A service that records its requests and responds `ok`. */
async function recorder(t: TestContext) {
  const seen: Seen[] = [];
  const service = await webService(t, (request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (text: string) => {
      body += text;
    });
    request.once('end', () => {
      const { method, url, rawHeaders, rawTrailers } = request;
      seen.push({ method, url, headers: rawHeaders, body, trailers: rawTrailers });
      response.end('ok');
    });
  });
  return { ...service, seen };
}

async function recorded(t: TestContext) {
  const world = await callWorld(t);
  const service = await recorder(t);
  world.bound.set(world.remote, service.bound);
  return { world, ...service };
}

/** A raw TCP service that runs `handle` on each connection. */
async function rawService(t: TestContext, handle: (socket: Socket, n: number) => void) {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    socket.on('error', () => {});
    sockets.push(socket);
    handle(socket, sockets.length);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const address = server.address();
  assert.ok(typeof address === 'object' && address !== null);
  return {
    sockets,
    bound: {
      scheme: 'http',
      host: '127.0.0.1',
      port: address.port,
      acceptsCalls: true,
      verifyCertificate: true,
    } as const,
  };
}

test("method, path, query, body and end-to-end headers arrive with the caller's identity", async (t) => {
  const { world, seen, bound } = await recorded(t);
  const answer = await world.call({
    method: 'PUT',
    path: '/a%20b/?q=%2F&r',
    headers: [
      'X-One',
      '1',
      'x-one',
      '2',
      'Connection',
      'X-Gone',
      'X-Gone',
      '3',
      'Expect',
      '100-continue',
      'Host',
      'evil',
    ],
    body: Buffer.from('hello'),
  });
  assert.equal(answer.status, 200);
  assert.equal(await textOf(answer), 'ok');
  const proof = (header: string): string =>
    header
      .replace(/t=\d+,v1=[0-9a-f]{64}$/, '(proof)')
      .replace(/^(Svc-Hops): [0-9a-f]{16}$/, '$1: (mark)')
      .replace(/^(traceparent): 00-[0-9a-f]{32}-[0-9a-f]{16}-01$/, '$1: (trace)');
  const lines = seen.map((request) => ({
    ...request,
    headers: [...pairs(request.headers)].map((h) => proof(h.join(': '))),
  }));
  assert.deepEqual(lines, [
    {
      method: 'PUT',
      url: '/a%20b/?q=%2F&r',
      headers: [
        `Host: 127.0.0.1:${bound.port}`,
        'X-One: 1',
        'x-one: 2',
        'traceparent: (trace)',
        `Svc-Caller-Aid: ${world.local}`,
        `Svc-Local-Aid: ${world.remote}`,
        `Forwarded: by=_${world.remote};for=_${world.local};proto=http`,
        'Svc-Caller-Proof: (proof)',
        'Svc-Hops: (mark)',
        'Content-Length: 5',
        'Connection: keep-alive',
      ],
      body: 'hello',
      trailers: [],
    },
  ]);
});

test('a caller cannot impersonate another agent in headers or trailers', async (t) => {
  const { world, seen } = await recorded(t);
  const body = Object.assign(Readable.from(['data']), {
    rawTrailers: ['X-Sum', '1', 'svc_caller_aid', 'evil', 'Forwarded', 'for=evil'],
  });
  const forged = ['SVC-Caller-AID', 'evil', 'svc_caller_aid', 'evil', 'Svc.Local.Aid', 'evil', 'forwarded', 'for=evil'];
  const more = ['X-Forwarded-For', '10.0.0.1', 'X_Real_Ip', '10.0.0.1'];
  await textOf(await world.call({ method: 'POST', headers: [...forged, ...more], body }));
  const [request] = seen;
  assert.ok(request);
  assert.deepEqual(
    request.headers.filter((text) => /evil|10\.0/.test(text)),
    [],
  );
  assert.equal(headerOf(request.headers, 'svc-caller-aid'), world.local);
  assert.deepEqual(request.trailers, ['X-Sum', '1']);
});

test('bodies of every kind are delimited so that the service reads them exactly', async (t) => {
  const { world, seen } = await recorded(t);
  const call = async (method: string, more: object) => textOf(await world.call({ method, ...more }));
  await call('GET', {});
  await call('GET', { body: Readable.from(['with ', 'body']) });
  await call('POST', {});
  await call('POST', { body: Readable.from(['chun', 'ked']) });
  await call('POST', { body: Readable.from(['known']), bodyLength: 5 });
  await call('DELETE', { body: Buffer.from('x') });
  await call('GET', {});
  assert.deepEqual(
    seen.map(({ method, body, headers }) => [
      method,
      body,
      headerOf(headers, 'content-length'),
      headerOf(headers, 'transfer-encoding'),
    ]),
    [
      ['GET', '', undefined, undefined],
      ['GET', 'with body', undefined, 'chunked'],
      ['POST', '', '0', undefined],
      ['POST', 'chunked', undefined, 'chunked'],
      ['POST', 'known', '5', undefined],
      ['DELETE', 'x', '1', undefined],
      ['GET', '', undefined, undefined],
    ],
  );
});

test('responses arrive unchanged: status, text, repeated headers, trailers, and missing bodies', async (t) => {
  const world = await callWorld(t);
  const service = await webService(t, (request, response) => {
    if (request.url === '/teapot') {
      response.writeHead(418, 'Short and stout', ['Set-Cookie', 'a=1', 'Set-Cookie', 'b=2', 'X-Case', 'Kept']);
      response.end('tea');
    } else if (request.url === '/trailers') {
      response.writeHead(200, { Trailer: 'X-Sum' });
      response.write('data');
      response.addTrailers([['X-Sum', '42']]);
      response.end();
    } else if (request.url === '/nothing') response.writeHead(204).end();
    else if (request.url === '/same') response.writeHead(304, { etag: '"x"' }).end();
    else response.writeHead(200, { 'content-length': '1234' }).end();
  });
  world.bound.set(world.remote, service.bound);
  const teapot = await world.call({ path: '/teapot' });
  assert.deepEqual([teapot.status, teapot.statusText], [418, 'Short and stout']);
  assert.deepEqual(teapot.headers.slice(0, 6), ['Set-Cookie', 'a=1', 'Set-Cookie', 'b=2', 'X-Case', 'Kept']);
  assert.equal(await textOf(teapot), 'tea');
  const trailers = await world.call({ path: '/trailers' });
  assert.equal(await textOf(trailers), 'data');
  assert.deepEqual(trailers.body.rawTrailers, ['X-Sum', '42']);
  for (const [path, status] of [
    ['/nothing', 204],
    ['/same', 304],
  ] as const) {
    const answer = await world.call({ path });
    assert.deepEqual([answer.status, await textOf(answer)], [status, '']);
  }
  const head = await world.call({ method: 'HEAD' });
  assert.deepEqual([headerOf(head.headers, 'content-length'), await textOf(head)], ['1234', '']);
});

test('interim responses are skipped, but their number is limited', async (t) => {
  const world = await callWorld(t);
  const service = await rawService(t, (socket) => {
    socket.on('data', (data) => {
      const count = /GET \/(\d+)/.exec(data.toString())?.[1];
      socket.write('HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n'.repeat(Number(count)));
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
    });
  });
  world.bound.set(world.remote, service.bound);
  assert.equal(await textOf(await world.call({ path: '/3' })), 'ok');
  await assert.rejects(world.call({ path: '/30' }), { code: 'bad_response' });
});

test('requests reuse streams; different agents and access tokens never share one', async (t) => {
  const { world } = await recorded(t);
  const other = world.near.host().aid;
  const opened = () => world.far.authorized.length;
  for (let i = 0; i < 5; i++) await textOf(await world.call());
  assert.equal(opened(), 1);
  await textOf(await world.call({ accessToken: 'a' }));
  await textOf(await world.call({ accessToken: 'b' }));
  await textOf(await world.caller.request(other, world.remote, { method: 'GET', path: '/', headers: [], body: null }));
  assert.equal(opened(), 4);
  assert.deepEqual(
    world.far.authorized.map(({ accessToken }) => accessToken),
    [undefined, 'a', 'b', undefined],
  );
});

test('concurrent calls are all served, and at most 64 reach the remote side at a time', async (t) => {
  const world = await callWorld(t);
  let now = 0;
  let most = 0;
  const service = await webService(t, (_request, response) => {
    most = Math.max(most, ++now);
    setImmediate(() => {
      now--;
      response.end('ok');
    });
  });
  world.bound.set(world.remote, service.bound);
  const answers = await Promise.all(Array.from({ length: 200 }, async () => textOf(await world.call())));
  assert.deepEqual(new Set(answers), new Set(['ok']));
  assert.ok(most <= 64, `${most}`);
});

test('a stream is closed after 30 s idle and leaves no timer', async (t) => {
  const clock = new TestClock();
  const world = await callWorld(t, { clock });
  const service = await recorder(t);
  world.bound.set(world.remote, service.bound);
  await textOf(await world.call());
  clock.advance(29_999);
  await textOf(await world.call());
  assert.equal(world.far.authorized.length, 1);
  clock.advance(30_001);
  await textOf(await world.call());
  assert.equal(world.far.authorized.length, 2);
});

test('a busy stream is replaced after a minute, because the agent may have moved', async (t) => {
  const clock = new TestClock();
  const world = await callWorld(t, { clock });
  const service = await recorder(t);
  world.bound.set(world.remote, service.bound);
  for (const opened of [1, 1, 1, 2, 2, 2, 3]) {
    await textOf(await world.call());
    assert.equal(world.far.authorized.length, opened);
    clock.advance(20_000);
  }
});

test('a call that follows a broken event stream at once keeps its stream for later calls', async (t) => {
  const world = await callWorld(t);
  const service = await webService(t, (request, response) => {
    if (request.url === '/events')
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n');
    else response.end('ok');
  });
  world.bound.set(world.remote, service.bound);
  const { body } = await world.call({ path: '/events' });
  const again = new Promise<string>((resolve, reject) => {
    body.once('error', () => {
      world.call().then(textOf).then(resolve, reject);
    });
  });
  body.resume();
  body.socket.destroy();
  assert.equal(await again, 'ok');
  assert.equal(await textOf(await world.call()), 'ok');
  assert.equal(world.far.authorized.length, 2);
});

test('if a service closes a pooled connection, a GET is repeated, a POST is not', async (t) => {
  const world = await callWorld(t);
  const asked: string[] = [];
  const service = await rawService(t, (socket) => {
    let first = true;
    socket.on('data', (data) => {
      asked.push(data.toString().split(' ', 1)[0] ?? '');
      if (first) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
      else socket.destroy();
      first = false;
    });
  });
  world.bound.set(world.remote, service.bound);
  assert.equal(await textOf(await world.call()), 'ok');
  assert.equal(await textOf(await world.call()), 'ok');
  assert.deepEqual(asked, ['GET', 'GET', 'GET']);
  asked.length = 0;
  assert.equal(await textOf(await world.call()), 'ok');
  await assert.rejects(world.call({ method: 'POST', body: Buffer.from('pay') }), { code: 'inbound_unreachable' });
  assert.deepEqual(asked, ['GET', 'POST']);
  asked.length = 0;
  assert.equal(await textOf(await world.call()), 'ok');
  await assert.rejects(world.call({ method: 'PUT', body: Buffer.from('x') }), { code: 'inbound_unreachable' });
  assert.deepEqual(asked, ['GET', 'PUT']);
});

test('if a service closes a new connection, the request is not repeated', async (t) => {
  const world = await callWorld(t);
  const service = await rawService(t, (socket) => socket.on('data', () => socket.destroy()));
  world.bound.set(world.remote, service.bound);
  // It runs, so it need not be started.
  await assert.rejects(world.call(), {
    code: 'inbound_unreachable',
    message: /accepts connections, but closed this one without an answer/,
    details: { reason: 'closed' },
  });
  assert.equal(service.sockets.length, 1);
});

test('errors on the way keep their codes', async (t) => {
  const { world } = await recorded(t);
  const request = (remote: Aid) =>
    world.caller.request(world.local, remote, { method: 'GET', path: '/', headers: [], body: null });
  await assert.rejects(request(newIdentity().aid), { code: 'resolve_failed' });
  const unbound = world.far.host().aid;
  await assert.rejects(request(unbound), { code: 'no_inbound' });
  world.access = () => {
    throw new SvcError('access_denied');
  };
  await assert.rejects(request(unbound), { code: 'access_denied' });
});

test('an unresponsive node is a connect error, not a call timeout', async (t) => {
  const { world } = await recorded(t);
  const open = () => Promise.reject(new SvcError('timeout'));
  const caller = new HttpCaller({ open, accept: () => {}, reset: () => {} }, world.clock);
  const request = { method: 'GET', path: '/', headers: [], body: null };
  await assert.rejects(caller.request(world.local, world.remote, request), { code: 'connect_failed' });
});

test('a failed call frees one slot, while running calls still count', async (t) => {
  const opens: PromiseWithResolvers<LinkStream>[] = [];
  const open = (): Promise<LinkStream> => {
    const opening = Promise.withResolvers<LinkStream>();
    opens.push(opening);
    return opening.promise;
  };
  const caller = new HttpCaller({ open, accept: () => {}, reset: () => {} }, new TestClock());
  t.after(() => caller.stop());
  const [local, remote] = [newIdentity().aid, newIdentity().aid];
  const call = () => {
    const called = caller.request(local, remote, { method: 'GET', path: '/', headers: [], body: null });
    // `stop` ends the others.
    called.catch(() => {});
    return called;
  };
  const [first] = Array.from({ length: MAX_CALLS_PER_TARGET }, call);
  await turn();
  assert.equal(opens.length, MAX_CALLS_PER_TARGET);
  opens[0]?.reject(new SvcError('connect_failed'));
  await assert.rejects(async () => first, { code: 'connect_failed' });
  void call();
  void call();
  await turn();
  assert.equal(opens.length, MAX_CALLS_PER_TARGET + 1);
});
