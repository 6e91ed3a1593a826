import assert from 'node:assert/strict';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { createWebhookPoster } from '../../../src/capabilities/push/webhook-post.ts';
import { TestClock } from '../../support/test-clock.ts';

async function setUp(t: TestContext, respond: RequestListener) {
  const server = createServer(respond).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  t.after(() => server.close());
  t.after(() => server.closeAllConnections());
  const { port } = server.address() as AddressInfo;
  const clock = new TestClock();
  const ours = new Set<number>();
  let watched = 0;
  const post = createWebhookPoster(
    clock,
    () => void watched++,
    (ip, at) => ip === '127.0.0.1' && ours.has(at),
  );
  const url = new URL(`http://127.0.0.1:${port}/hook?a=1`);
  const send = (signal = new AbortController().signal, body = Buffer.from('{}')) =>
    post({ url, headers: ['Content-Type', 'application/json'], body, signal });
  return { clock, ours, port, send, count: () => watched };
}

test('a webhook gets the headers and the body, and only its status counts', async (t) => {
  const got: unknown[] = [];
  const { send, port, count } = await setUp(t, (request, response) => {
    const { method, url, headers } = request;
    got.push([method, url, headers['content-type'], headers.host, headers['content-length']]);
    response.writeHead(302, { Location: '/elsewhere' }).end('an ignored body');
  });
  assert.equal(await send(), 302);
  assert.deepEqual(got, [['POST', '/hook?a=1', 'application/json', `127.0.0.1:${port}`, '2']]);
  assert.equal(count(), 1);
});

test('svcd is never a webhook', async (t) => {
  const { send, ours, port } = await setUp(t, () => assert.fail('called'));
  ours.add(port);
  await assert.rejects(send(), { code: 'connect_failed' });
});

test('a webhook that does not respond times out, and a stop ends the request', async (t) => {
  const { promise: called, resolve } = Promise.withResolvers<void>();
  const { send, clock } = await setUp(t, () => resolve());
  const first = send();
  const outcome = assert.rejects(first, { code: 'timeout' });
  await called;
  await clock.run(31_000);
  await outcome;
  await assert.rejects(send(AbortSignal.abort()), { code: 'cancelled' });
});
