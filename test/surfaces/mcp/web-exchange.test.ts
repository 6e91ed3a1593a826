import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { sendWebResponse } from '../../../src/surfaces/mcp/web-exchange.ts';
import { RestContext } from '../../../src/surfaces/rest/context.ts';

/** A server with a fixed response. `sent` resolves when it is sent, or the client has disconnected. */
async function serve(t: TestContext, answer: Response): Promise<{ url: string; sent: Promise<void> }> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const server = createServer((_request, response) => {
    sendWebResponse(answer, response, new RestContext({ origin: 'local', requireToken: () => {} }, response)).then(
      resolve,
      reject,
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, sent: promise };
}

test('sends a complete response with its length', async (t) => {
  const { url, sent } = await serve(t, Response.json({ ok: true }, { status: 400, headers: { 'x-more': 'yes' } }));
  const answer = await fetch(url);
  assert.deepEqual([answer.status, answer.headers.get('x-more')], [400, 'yes']);
  assert.equal(answer.headers.get('content-length'), '11');
  assert.deepEqual(await answer.json(), { ok: true });
  await sent;
  const empty = await serve(t, new Response(null, { status: 202 }));
  assert.equal((await fetch(empty.url)).status, 202);
});

test('streams a response, and ends with its client, even if that does not read', async (t) => {
  const cancelled = Promise.withResolvers<void>();
  const chunk = new TextEncoder().encode(`data: ${'x'.repeat(65_536)}\n\n`);
  const body = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.enqueue(chunk),
    cancel: () => cancelled.resolve(),
  });
  const { url, sent } = await serve(t, new Response(body, { headers: { 'content-type': 'text/event-stream' } }));
  const controller = new AbortController();
  const answer = await fetch(url, { signal: controller.signal });
  const { value } = (await answer.body?.getReader().read()) ?? {};
  assert.match(new TextDecoder().decode(value), /^data: x/);
  controller.abort();
  await cancelled.promise;
  await sent;
});
