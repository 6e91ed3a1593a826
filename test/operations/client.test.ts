import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { Type } from 'typebox';
import { SvcError } from '../../src/foundation/errors.ts';
import { CLIENT_TIMEOUT_MS, createClient } from '../../src/operations/client.ts';
import { declare } from '../../src/operations/declare.ts';
import { operations } from '../../src/operations/index.ts';
import { closed } from '../../src/operations/schemas.ts';
import { newIdentity } from '../support/identities.ts';

const PARROT = {
  summary: 'Repeats.',
  route: 'POST /parrots/{id}/say',
  params: closed({ id: Type.String() }),
  query: closed({ loud: Type.Optional(Type.Boolean()), tag: Type.Optional(Type.Array(Type.String())) }),
  body: closed({ words: Type.String(), times: Type.Optional(Type.Integer()) }),
  output: Type.Object({ texts: Type.String() }),
} as const;
const table = { ...declare({ tag: 'Test' }, { parrot: PARROT }), health: operations.health };

interface Seen {
  method: string | undefined;
  url: string | undefined;
  headers: IncomingMessage['headers'];
  body: string;
}

async function daemon(t: TestContext, answer: (response: ServerResponse, seen: Seen) => void) {
  const seen: Seen[] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8');
    request.on('data', (chunk: string) => {
      body += chunk;
    });
    request.on('end', () => {
      const entry = { method: request.method, url: request.url, headers: request.headers, body };
      seen.push(entry);
      answer(response, entry);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen };
}

function json(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

test('flat input becomes path, query and body', async (t) => {
  const { baseUrl, seen } = await daemon(t, (response) => json(response, 200, { texts: 'hi hi' }));
  const client = createClient({ baseUrl, token: 'secret' }, table);
  const output = await client.parrot({ id: 'a/b ?#é', words: 'hi', times: 2, loud: true, tag: ['x', 'y'] });
  assert.deepEqual(output, { texts: 'hi hi' });
  assert.equal(seen[0]?.method, 'POST');
  assert.equal(seen[0]?.url, '/parrots/a%2Fb%20%3F%23%C3%A9/say?loud=true&tag=x&tag=y');
  assert.deepEqual(JSON.parse(seen[0]?.body ?? ''), { words: 'hi', times: 2 });
  assert.equal(seen[0]?.headers.authorization, 'Bearer secret');
  assert.equal(seen[0]?.headers['content-type'], 'application/json');
});

test('a body member named like a path parameter is reached with a prefix', async (t) => {
  const twins = { ...PARROT, query: closed({}), body: closed({ id: Type.String(), words: Type.String() }) };
  const { baseUrl, seen } = await daemon(t, (response) => json(response, 200, { texts: '' }));
  await createClient({ baseUrl }, declare({ tag: 'Test' }, { twins })).twins({
    id: 'polly',
    body_id: 'molly',
    words: 'hi',
  });
  assert.equal(seen[0]?.url, '/parrots/polly/say');
  assert.deepEqual(JSON.parse(seen[0].body), { id: 'molly', words: 'hi' });
});

test('a read sends no body and no content type, and no token if none is set', async (t) => {
  const { baseUrl, seen } = await daemon(t, (response) => json(response, 200, { status: 'ok' }));
  assert.deepEqual(await createClient({ baseUrl: `${baseUrl}/` }, table).health(), { status: 'ok' });
  assert.equal(seen[0]?.url, '/health');
  assert.equal(seen[0]?.body, '');
  assert.equal(seen[0]?.headers['content-type'], undefined);
  assert.equal(seen[0]?.headers.authorization, undefined);
});

test('path values that a URL parser would drop are refused before any request', async (t) => {
  const { baseUrl, seen } = await daemon(t, (response) => json(response, 200, {}));
  const client = createClient({ baseUrl }, table);
  for (const id of ['', '.', '..'])
    await assert.rejects(client.parrot({ id, words: 'hi' }), { code: 'invalid_request', details: { path: '/id' } });
  assert.equal(seen.length, 0);
});

test('an input that the operation does not have is refused', async (t) => {
  const { baseUrl } = await daemon(t, (response) => json(response, 200, {}));
  const client = createClient({ baseUrl }, table);
  // The type checker must reject this call.
  // @ts-expect-error a required member is missing
  const incomplete: Parameters<typeof client.parrot>[0] = { id: 'a' };
  assert.ok(incomplete);
  const input = { id: 'a', words: 'hi', word: 'hi' };
  await assert.rejects(client.parrot(input), { code: 'invalid_request', details: { path: '/word' } });
});

test('an operation with an open body passes every key on', async (t) => {
  const { baseUrl, seen } = await daemon(t, (response) => json(response, 200, { ok: true, restart_required: [] }));
  await createClient({ baseUrl }, operations).configPatch({ auto_publish: false });
  assert.equal(seen[0]?.method, 'PATCH');
  assert.equal(seen[0]?.body, '{"auto_publish":false}');
});

test('an error response becomes the error that it names', async (t) => {
  const answer = { error: 'rate_limited', message: 'Slowly.', details: { retry_after_s: 3 } };
  const { baseUrl } = await daemon(t, (response) => json(response, 429, answer));
  await assert.rejects(createClient({ baseUrl }, table).health(), (error) => {
    assert.ok(error instanceof SvcError);
    assert.equal(error.code, 'rate_limited');
    assert.equal(error.message, 'Slowly.');
    assert.deepEqual(error.details, { retry_after_s: 3 });
    return true;
  });
});

test('an unknown code is stored in the details, under a code of the same status', async (t) => {
  const { baseUrl } = await daemon(t, (response) => json(response, 404, { error: 'moon_lost', message: 'No moon.' }));
  await assert.rejects(createClient({ baseUrl }, table).health(), {
    code: 'not_found',
    exit: 5,
    message: 'No moon.',
    details: { code: 'moon_lost' },
  });
});

test('an unreachable daemon and an error of the daemon are different errors', async (t) => {
  const { baseUrl } = await daemon(t, (response) => json(response, 200, {}));
  const gone = await daemon(t, () => {});
  const port = Number(new URL(gone.baseUrl).port);
  // A port that was just closed: connection refused.
  const refused = createServer();
  await new Promise<void>((resolve) => refused.listen(0, '127.0.0.1', resolve));
  const closedPort = (refused.address() as AddressInfo).port;
  await new Promise((resolve) => refused.close(resolve));
  assert.notEqual(port, closedPort);
  const client = createClient({ baseUrl: `http://127.0.0.1:${closedPort}` }, table);
  await assert.rejects(client.health(), { code: 'daemon_unreachable', exit: 3, message: /ECONNREFUSED.*Start it/ });
  for (const [base, message] of [
    ['http://daemon.invalid:2121', /host name has no address/],
    [baseUrl.replace('http:', 'https:'), /is not svcd: it does not speak HTTPS/],
  ] as const)
    await assert.rejects(createClient({ baseUrl: base }, table).health(), { code: 'daemon_unreachable', message });
  assert.ok(await createClient({ baseUrl }, table).health());
});

test('another program on the port is not accepted as the daemon', async (t) => {
  const { baseUrl } = await daemon(t, (response, seen) => {
    if (seen.url === '/health') response.writeHead(200, { 'content-type': 'text/html' }).end('<html>');
    else json(response, 404, { oops: true });
  });
  const client = createClient({ baseUrl }, table);
  await assert.rejects(client.health(), { code: 'daemon_unreachable' });
  await assert.rejects(client.parrot({ id: 'a', words: 'b' }), { code: 'daemon_unreachable' });
});

test('redirects are not followed, which protects the token', async (t) => {
  const other = await daemon(t, (response) => json(response, 200, { status: 'ok' }));
  const { baseUrl } = await daemon(t, (response) => {
    response.writeHead(302, { location: `${other.baseUrl}/health` }).end();
  });
  await assert.rejects(createClient({ baseUrl, token: 's' }, table).health(), { code: 'daemon_unreachable' });
  assert.equal(other.seen.length, 0);
});

test('a call stops at its timeout, and when its caller aborts', async (t) => {
  const { baseUrl } = await daemon(t, () => {});
  const client = createClient({ baseUrl }, table);
  await assert.rejects(client.health({}, { timeoutMs: 20 }), { code: 'timeout' });
  const controller = new AbortController();
  const call = client.health({}, { signal: controller.signal });
  controller.abort();
  await assert.rejects(call, { code: 'cancelled' });
});

test('the address of the daemon is checked', () => {
  for (const baseUrl of ['', 'nonsense', 'ftp://host', 'http://user:pass@host', 'http://host/?q=1'])
    assert.throws(() => createClient({ baseUrl }, table), { code: 'invalid_request' }, baseUrl);
});

test('a client limits the time of an operation, unless the operation has its own limit', async (t) => {
  const { baseUrl } = await daemon(t, (response) => response.end('{}'));
  const client = createClient({ baseUrl }, operations);
  const limit = t.mock.method(AbortSignal, 'timeout');
  await client.health();
  assert.deepEqual(limit.mock.calls[0]?.arguments, [CLIENT_TIMEOUT_MS]);
  await client.fetch({ aid: newIdentity().aid, path: '/', timeout_ms: 600_000 });
  assert.equal(limit.mock.callCount(), 1);
});
