import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, request as httpRequest, type IncomingMessage } from 'node:http';
import { type TestContext, test } from 'node:test';
import { answer, requestOf } from '../../../src/surfaces/client/fetch-server.ts';

/** The address of a server that answers with what a function says; what its answers failed with. */
async function serve(t: TestContext, app: (request: Request) => Response | Promise<Response>) {
  const failures: unknown[] = [];
  const ended = Promise.withResolvers<void>();
  const server = createServer((incoming, outgoing) => {
    const gone = new AbortController();
    outgoing.once('close', () => gone.abort());
    Promise.resolve(app(requestOf(incoming, gone.signal)))
      .then((response) => answer(outgoing, response))
      .catch((error: unknown) => void failures.push(error))
      .finally(ended.resolve);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const address = server.address();
  assert.ok(address !== null && typeof address === 'object');
  return { url: `http://127.0.0.1:${address.port}`, failures, ended: ended.promise };
}

test('method, path, headers and body come as they were sent, and an answer goes with all that it has', async (t) => {
  const { url } = await serve(t, async (request) => {
    const { pathname, search } = new URL(request.url);
    const headers = new Headers([
      ['set-cookie', 'a=1'],
      ['set-cookie', 'b=2'],
      ['x-body', await request.text()],
    ]);
    return new Response(`${request.method} ${pathname}${search} ${request.headers.get('x-one')}`, {
      status: 207,
      headers,
    });
  });
  const response = await fetch(`${url}/p%20q?r=%26`, {
    method: 'PUT',
    body: 'text',
    headers: { 'x-one': '1' },
  });
  assert.equal(response.status, 207);
  assert.equal(await response.text(), 'PUT /p%20q?r=%26 1');
  assert.deepEqual(response.headers.getSetCookie(), ['a=1', 'b=2']);
  assert.equal(response.headers.get('x-body'), 'text');
});

test('an answer without a body, and one to HEAD', async (t) => {
  const { url } = await serve(t, ({ method }) =>
    method === 'HEAD' ? new Response('not sent') : new Response(null, { status: 204 }),
  );
  assert.equal((await fetch(url)).status, 204);
  assert.equal(await (await fetch(url, { method: 'HEAD' })).text(), '');
});

test('bodies stream: what is sent is there before the rest is made', async (t) => {
  const { url } = await serve(t, (request) => new Response(request.body));
  const sending = httpRequest(url, { method: 'POST' });
  const answered = once(sending, 'response');
  sending.flushHeaders();
  const [received]: IncomingMessage[] = await answered;
  assert.ok(received, 'the answer has begun');
  for (const text of ['one', 'two']) {
    sending.write(text);
    assert.equal(String((await once(received, 'data'))[0]), text);
  }
  const ended = once(received, 'end');
  sending.end();
  received.resume();
  await ended;
});

test('a program hears that its caller has gone', async (t) => {
  const heard = Promise.withResolvers<void>();
  const { url, ended } = await serve(t, ({ signal }) => {
    signal.addEventListener('abort', () => heard.resolve());
    return new Response(new ReadableStream({ start: (controller) => controller.enqueue(Buffer.from('first')) }));
  });
  const leave = new AbortController();
  const response = await fetch(url, { signal: leave.signal });
  await response.body?.getReader().read();
  leave.abort();
  await heard.promise;
  await ended;
});
