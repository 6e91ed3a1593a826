/** Requests that are buffered first, and unchanged streaming of all others, over real connections. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type ClientRequest, createServer, type IncomingMessage, request as requestHttp } from 'node:http';
import { type TestContext, test } from 'node:test';
import { codeOf } from '../../../src/foundation/errors.ts';
import {
  type InspectedRequest,
  inspectRequest,
  MAX_INSPECTED_BYTES,
} from '../../../src/surfaces/origin/inspect-request.ts';

const CHUNKED = { 'content-type': 'application/json', 'transfer-encoding': 'chunked' };
const NAMES = JSON.stringify({
  method: 'SendMessage',
  params: { message: { parts: [{ text: 'not }]} the end"' }] }, pushNotificationConfig: { url: 'http://127.0.0.1/' } },
});
const CARD = '{"jsonrpc":"2.0","id":1,"method":"GetExtendedAgentCard"}';
const OTHER = '{"method":"SendMessage","params":[{}]}';

interface Seen extends InspectedRequest {
  readonly request: IncomingMessage;
}

/** A server that inspects requests, and its results. */
async function looking(t: TestContext) {
  const waiting: ((seen: Seen | Error) => void)[] = [];
  const server = createServer((request, response) => {
    response.on('error', () => {});
    inspectRequest(request).then(
      (looked) => waiting.shift()?.({ ...looked, request }),
      (error: unknown) => waiting.shift()?.(error instanceof Error ? error : new Error('none')),
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  /** Begins a request. The result follows when it is decided. */
  return (headers: Record<string, string>, path = '/rpc') => {
    const { promise, resolve } = Promise.withResolvers<Seen | Error>();
    waiting.push(resolve);
    const client = requestHttp({ host: '127.0.0.1', port, method: 'POST', path, headers });
    client.on('error', () => {});
    const seen = async (): Promise<Seen> => {
      const one = await promise;
      assert.ok(!(one instanceof Error));
      return one;
    };
    return { client, seen, promise };
  };
}

function write(client: ClientRequest, text: string): Promise<void> {
  return new Promise((resolve) => client.write(text, () => resolve()));
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of request) text += String(chunk);
  return text;
}

test('buffers a call of unknown length that may be about webhooks or a card', async (t) => {
  const begin = await looking(t);
  for (const [body, question] of [
    [NAMES, null],
    [CARD, 'call'],
    [`[${NAMES}]`, null],
  ] as const)
    for (const at of [1, 30, body.length]) {
      const { client, seen } = begin(CHUNKED);
      await write(client, body.slice(0, at));
      client.end(body.slice(at));
      assert.deepEqual({ ...(await seen()), request: null }, { question, body: Buffer.from(body), request: null });
    }
  const known = begin({ 'content-type': 'application/json', 'content-length': String(OTHER.length) });
  known.client.end(OTHER);
  assert.equal((await known.seen()).body?.toString(), OTHER);
  const byPath = begin(CHUNKED, '/v1/message:send');
  await write(byPath.client, OTHER);
  byPath.client.end();
  assert.equal((await byPath.seen()).body?.toString(), OTHER);
});

test('streams other requests before their end, unchanged', async (t) => {
  const begin = await looking(t);
  for (const first of [OTHER, '1', '"a"', ' \n true', '\u001e{"a":1}', '[[{"a":"\\""}]]']) {
    const { client, seen } = begin(CHUNKED);
    await write(client, first);
    const { body, request } = await seen();
    assert.equal(body, null);
    client.end('\n{"more":true}');
    assert.equal(await textOf(request), `${first}\n{"more":true}`);
  }
});

test('streams long requests unchanged', async (t) => {
  const begin = await looking(t);
  const long = `{"pushNotification":"${'x'.repeat(MAX_INSPECTED_BYTES)}`;
  const { client, seen } = begin(CHUNKED);
  client.write(long);
  const { body, request } = await seen();
  assert.equal(body, null);
  client.end('"}');
  assert.equal(await textOf(request), `${long}"}`);
  const known = begin({ 'content-type': 'application/json', 'content-length': String(MAX_INSPECTED_BYTES + 1) });
  known.client.flushHeaders();
  assert.equal((await known.seen()).body, null);
  for (const type of ['application/x-ndjson', 'application/grpc', 'text/plain']) {
    const other = begin({ ...CHUNKED, 'content-type': type });
    other.client.flushHeaders();
    assert.equal((await other.seen()).body, null, type);
  }
});

test('cancels an aborted request', async (t) => {
  const begin = await looking(t);
  const { client, promise } = begin(CHUNKED);
  await write(client, NAMES.slice(0, 20));
  client.destroy();
  assert.equal(codeOf(await promise), 'cancelled');
});
