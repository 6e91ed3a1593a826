import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, request as httpRequest, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, type TestContext, test } from 'node:test';
import fc from 'fast-check';
import { callerProof } from '../../../src/capabilities/calls/caller-proof.ts';
import { callServer, sendResponse, toRequest } from '../../../src/surfaces/client/serve.ts';
import { newIdentity } from '../../support/identities.ts';

/** The URL of a server that responds with the result of a function, and its failures. */
async function serve(t: TestContext, app: (request: Request) => Response | Promise<Response>) {
  const failures: unknown[] = [];
  const ended = Promise.withResolvers<void>();
  const server = createServer((incoming, outgoing) => {
    const gone = new AbortController();
    outgoing.once('close', () => gone.abort());
    Promise.resolve(app(toRequest(incoming, gone.signal)))
      .then((response) => sendResponse(outgoing, response))
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

test('receives method, path, headers and body unchanged, and sends complete responses', async (t) => {
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

test('sends responses without a body, and responses to HEAD', async (t) => {
  const { url } = await serve(t, ({ method }) =>
    method === 'HEAD' ? new Response('not sent') : new Response(null, { status: 204 }),
  );
  assert.equal((await fetch(url)).status, 204);
  assert.equal(await (await fetch(url, { method: 'HEAD' })).text(), '');
});

test('streams bodies in both directions', async (t) => {
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

test('the signal of a request aborts when its caller disconnects', async (t) => {
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

describe('serves calls', () => {
  const { aid } = newIdentity();
  const key = randomBytes(32);

  /** Sends a request with the proof that the daemon adds. Returns the response. */
  async function connected(t: TestContext) {
    const seen: string[] = [];
    const server = callServer(
      (request) => {
        const { pathname, search } = new URL(request.url);
        seen.push(`${request.method} ${pathname}${search}`);
        return new Response('ok');
      },
      { key, aid },
    ).listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.after(() => server.close());
    const { port } = server.address() as AddressInfo;
    const ask = async (method: string, target: string, host = 'localhost'): Promise<number> => {
      const proof = callerProof(key, { caller: aid, called: aid, method, target, at: Math.floor(Date.now() / 1000) });
      const socket = connect(port, '127.0.0.1');
      const lines = [
        `${method} ${target} HTTP/1.1`,
        `Host: ${host}`,
        `Svc-Caller-Aid: ${aid}`,
        `Svc-Caller-Proof: ${proof}`,
      ];
      socket.write(`${lines.join('\r\n')}\r\nConnection: close\r\n\r\n`);
      return Number(/^HTTP\/1\.1 (\d+)/.exec(await text(socket))?.[1]);
    };
    return { server, seen, ask };
  }

  test('passes on path and query unchanged', async (t) => {
    const { seen, ask } = await connected(t);
    for (const target of ['//admin/users', '///', '/a//b?c=//d', '/%2e%2e%2fx', '/%', '/?'])
      assert.equal(await ask('GET', target), 200, target);
    assert.deepEqual(seen, ['GET //admin/users', 'GET ///', 'GET /a//b?c=//d', 'GET /%2e%2e%2fx', 'GET /%', 'GET /']);
    seen.length = 0;
    assert.equal(await ask('GET', '/\\evil/x'), 200);
    assert.equal(await ask('OPTIONS', '*'), 200);
    assert.equal(await ask('GET', '/x', 'user@host/y'), 200);
    assert.deepEqual(seen, ['GET /%5Cevil/x', 'OPTIONS /', 'GET /x']);
  });

  test('rejects unsupported requests without details of the program', async (t) => {
    const { seen, ask } = await connected(t);
    const shown = t.mock.method(console, 'error', () => {});
    assert.equal(await ask('TRACE', '/'), 501);
    assert.equal(await ask('GET', 'http://elsewhere/x'), 400);
    assert.equal(await ask('GET', '*'), 400);
    assert.deepEqual(seen, []);
    assert.equal(shown.mock.callCount(), 0);
  });

  test('responds to any target, and passes on only valid ones', async (t) => {
    const { seen, ask } = await connected(t);
    const character = fc.constantFrom(
      '/',
      '\\',
      '%',
      '2',
      'e',
      '.',
      '?',
      '#',
      '@',
      ':',
      '*',
      'a',
      ';',
      '[',
      ']',
      '|',
      '^',
    );
    const target = fc.string({ unit: character, minLength: 1, maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(target, async (one) => {
        seen.length = 0;
        assert.equal(await ask('GET', one), one.startsWith('/') ? 200 : 400);
        // A URL has no dot segments. Everything else is unchanged.
        const [got] = seen;
        if (one.startsWith('//') && !one.includes('.') && !one.includes('%')) assert.match(got ?? '', /^GET \/\//);
      }),
      { numRuns: 200 },
    );
  });

  test('leaves request timeouts to the daemon', () => {
    const { requestTimeout } = callServer(() => new Response(), { key, aid });
    assert.equal(requestTimeout, 0);
  });
});
