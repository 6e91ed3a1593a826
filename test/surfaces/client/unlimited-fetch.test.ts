import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { connect } from '../../../src/surfaces/client/node.ts';
import { unlimitedFetch } from '../../../src/surfaces/client/unlimited-fetch.ts';
import { newIdentity } from '../../support/identities.ts';

async function served(t: TestContext, listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test("no call of the client uses Node's fetch, which ends it after 300 seconds", async (t) => {
  const { aid } = newIdentity();
  const url = await served(t, ({ url: target = '' }, response) => {
    const body = target.startsWith('/origins')
      ? JSON.stringify({ url: `http://127.0.0.1:${new URL(url).port}` })
      : 'here';
    response.setHeader('content-type', 'application/json').end(body);
  });
  t.mock.method(globalThis, 'fetch', () => Promise.reject(new Error('the fetch of Node')));
  const answer = await connect({ baseUrl: url }).agent(aid, { as: newIdentity().aid }).fetch('/x');
  assert.equal(await answer.text(), 'here');
});

test('sends requests and returns responses like fetch', async (t) => {
  const url = await served(t, (request, response) => {
    const coded = { '/gzip': gzipSync('coded'), '/br': brotliCompressSync('coded') }[request.url ?? ''];
    if (coded !== undefined) return void response.setHeader('content-encoding', request.url?.slice(1) ?? '').end(coded);
    if (request.url === '/empty') return void response.writeHead(204).end();
    if (request.url === '/moved') return void response.writeHead(302, { location: '/' }).end();
    void text(request).then((body) => {
      response.setHeader('set-cookie', ['a=1', 'b=2']);
      response.writeHead(201, 'Made').end(`${request.method} ${request.headers['content-length']} ${body}`);
    });
  });
  const made = await unlimitedFetch(url, { method: 'POST', body: 'text' });
  assert.deepEqual([made.status, made.statusText, made.headers.getSetCookie()], [201, 'Made', ['a=1', 'b=2']]);
  assert.equal(await made.text(), 'POST 4 text');
  const bytes = await unlimitedFetch(url, { method: 'PUT', body: new Uint8Array([0x41, 0x42]) });
  assert.equal(await bytes.text(), 'PUT 2 AB');
  const stream = new Response('streamed').body;
  assert.match(await (await unlimitedFetch(url, { method: 'POST', body: stream })).text(), /^POST undefined streamed$/);
  for (const path of ['/gzip', '/br']) assert.equal(await (await unlimitedFetch(url + path, {})).text(), 'coded');
  assert.equal((await unlimitedFetch(`${url}/empty`, {})).body, null);
  assert.equal((await unlimitedFetch(`${url}/moved`, {})).status, 302);
});

test('a signal ends a request and its response', async (t) => {
  const url = await served(t, (request, response) => {
    if (request.url === '/begun') response.write('first');
  });
  const waiting = new AbortController();
  const waited = unlimitedFetch(url, { signal: waiting.signal });
  const reason = new Error('enough');
  waiting.abort(reason);
  await assert.rejects(waited, reason);
  const reading = new AbortController();
  const { body } = await unlimitedFetch(`${url}/begun`, { signal: reading.signal });
  const reader = body?.getReader();
  assert.equal(Buffer.from((await reader?.read())?.value ?? []).toString(), 'first');
  const rest = reader?.read();
  reading.abort(reason);
  await assert.rejects(rest ?? Promise.resolve());
});

test('reports connection errors like fetch', async () => {
  await assert.rejects(unlimitedFetch('http://127.0.0.1:1', {}), (error: unknown) => {
    assert.ok(error instanceof TypeError && error.cause instanceof Error);
    return Reflect.get(error.cause, 'code') === 'ECONNREFUSED';
  });
});
