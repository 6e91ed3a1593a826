import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { Type } from 'typebox';
import { SvcError } from '../../../src/foundation/errors.ts';
import { nativeAid } from '../../../src/foundation/identity/aid.ts';
import type { BoundStream, StreamExchange } from '../../../src/operations/handlers/exchange.ts';
import { AidParams, AidText, closed, NONE } from '../../../src/operations/schemas.ts';
import type { StreamDeclaration } from '../../../src/operations/stream.ts';
import { speak, startWorld } from './support.ts';

const aid = nativeAid(new Uint8Array(32).fill(5));
const TOKEN = 'correct-horse-battery';

function stream(
  declaration: Partial<StreamDeclaration>,
  handle: (exchange: StreamExchange) => void | Promise<void>,
): BoundStream {
  const base: StreamDeclaration = {
    name: 'stream',
    summary: 'A stream.',
    methods: ['GET'],
    path: '/stream',
    params: NONE,
    query: NONE,
    produces: 'text/plain',
    permission: 'read',
    errors: [],
    tag: 'Test',
  };
  return { declaration: { ...base, ...declaration }, handle };
}

const upload = stream(
  {
    name: 'upload',
    methods: ['POST'],
    path: '/agents/{aid}/upload',
    params: AidParams,
    query: closed({ name: Type.Optional(Type.String()) }),
    accepts: 'application/octet-stream',
    permission: 'local_only',
  },
  async ({ request, response, input }) => {
    const hash = createHash('sha256');
    let size = 0;
    for await (const chunk of request as AsyncIterable<Buffer>) {
      hash.update(chunk);
      size += chunk.length;
    }
    response.end(JSON.stringify({ ...input, size, hash: hash.digest('hex') }));
  },
);
const gateway = stream(
  {
    name: 'gateway',
    methods: 'ANY',
    path: '/aid/{peer}/{path*}',
    params: closed({ peer: AidText, path: Type.String() }),
    query: Type.Object({}),
    permission: 'peer',
  },
  ({ request, response, input, context }) => {
    response.end(JSON.stringify({ method: request.method, url: request.url, ...input, origin: context.origin }));
  },
);

test('an upload streams past the JSON limit, with its own content type only', async (t) => {
  const world = await startWorld(t, { streams: [upload] });
  const body = Buffer.alloc(8 * 1024 * 1024, 7);
  const headers = { 'content-type': 'application/octet-stream' };
  const answer = await world.request('POST', `/agents/${aid.toUpperCase()}/upload?name=a.bin`, { headers, body });
  const hash = createHash('sha256').update(body).digest('hex');
  assert.deepEqual(answer.json, { aid, name: 'a.bin', size: body.length, hash });
  for (const type of ['application/json', 'text/plain']) {
    const wrong = await world.request('POST', `/agents/${aid}/upload`, {
      headers: { 'content-type': type },
      body: 'x',
    });
    assert.equal(wrong.status, 415, type);
  }
  assert.equal((await world.request('POST', '/agents/x/upload', { headers, body: 'x' })).status, 400);
  assert.equal((await world.request('POST', `/agents/${aid}/upload?nam=x`, { headers, body: 'x' })).status, 400);
});

test('all rules of the gate apply to streams too', async (t) => {
  const world = await startWorld(t, { streams: [upload, gateway], token: TOKEN, requireLocalToken: true });
  const headers = { 'content-type': 'application/octet-stream' };
  assert.equal((await world.request('POST', `/agents/${aid}/upload`, { headers, body: 'x' })).status, 401);
  const host = { ...headers, host: 'evil.example' };
  assert.equal((await world.request('POST', `/agents/${aid}/upload`, { headers: host, body: 'x' })).status, 403);
  const origin = { origin: 'https://evil.example' };
  assert.equal((await world.request('GET', `/aid/${aid}/x`, { headers: origin })).status, 403);
});

test('remote content needs the token like everything else, and its prefix grants no access', async (t) => {
  const world = await startWorld(t, { streams: [gateway], token: TOKEN, requireLocalToken: true });
  assert.equal((await world.request('PROPFIND', `/aid/${aid}/a/b%2Fc/?q=1&r`)).status, 401);
  const headers = { authorization: `Bearer ${TOKEN}` };
  const answer = await world.request('PROPFIND', `/aid/${aid}/a/b%2Fc/?q=1&r`, { headers });
  assert.equal(answer.status, 200);
  const expected = { method: 'PROPFIND', url: `/aid/${aid}/a/b%2Fc/?q=1&r`, peer: aid, path: 'a/b/c/', q: '1', r: '' };
  assert.deepEqual(answer.json, { ...expected, origin: 'local' });
  for (const path of ['/aid/../ping', '/aid/%2e%2e/ping', '/aid;/ping', '/aidx', '/AID/x/', '//aid/x/']) {
    const other = await world.request('GET', path);
    assert.ok([400, 401, 404].includes(other.status), `${path} ${other.status}`);
    assert.ok(!other.text.includes('origin'));
  }
});

test('an error before the head is a response, a later one resets the connection', async (t) => {
  const early = stream({ path: '/early' }, () => {
    throw new SvcError('gone');
  });
  const late = stream({ path: '/late', name: 'late' }, async ({ response }) => {
    response.writeHead(200, { 'content-length': '100' });
    await new Promise<void>((resolve) => response.write('half', () => resolve()));
    throw new Error('the password is hunter2');
  });
  const world = await startWorld(t, { streams: [early, late] });
  const gone = await world.request('GET', '/early');
  assert.deepEqual([gone.status, Reflect.get(Object(gone.json), 'error')], [410, 'gone']);
  await assert.rejects(world.request('GET', '/late'), { code: 'ECONNRESET' });
  assert.equal(world.logged.length, 1);
});

test('a stream serves only the methods that it declares', async (t) => {
  const only = stream({ path: '/only' }, ({ response }) => void response.end('x'));
  const world = await startWorld(t, { streams: [only] });
  assert.equal((await world.request('GET', '/only')).status, 200);
  for (const method of ['HEAD', 'POST']) {
    const answer = await world.request(method, '/only');
    assert.deepEqual([answer.status, answer.headers.allow], [405, 'GET'], method);
  }
});

test('the handler of a stream sees that its client has disconnected', async (t) => {
  const aborted = Promise.withResolvers<void>();
  const events = stream({ path: '/events' }, async ({ response, context }) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write(': hello\n\n');
    context.signal.addEventListener('abort', () => aborted.resolve());
    await aborted.promise;
  });
  const world = await startWorld(t, { streams: [events] });
  const { connect } = await import('node:net');
  const socket = connect(world.port, world.host, () => socket.write('GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n'));
  socket.once('data', () => socket.destroy());
  await aborted.promise;
});

test('a stream handler runs only after the gate, even if the client waits for 100-continue', async (t) => {
  const world = await startWorld(t, { streams: [upload] });
  const head = `POST /agents/${aid}/upload HTTP/1.1\r\nHost: evil.example\r\nExpect: 100-continue\r\nContent-Type: application/octet-stream\r\nContent-Length: 5\r\n\r\n`;
  assert.match(await speak(world.host, world.port, head), /^HTTP\/1\.1 403 /);
});
