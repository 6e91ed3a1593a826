/** The bridge between a host on stdin and stdout and a shared server: how it closes. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PassThrough } from 'node:stream';
import { type TestContext, test } from 'node:test';
import { systemClock } from '../../../src/foundation/clock.ts';
import { detach } from '../../../src/foundation/detached.ts';
import { isObject } from '../../../src/foundation/json.ts';
import { MAX_SHARED_MESSAGE_BYTES } from '../../../src/surfaces/mcp/message-reader.ts';
import { Bridge } from '../../../src/surfaces/mcp-share/bridge.ts';
import { readBytes } from '../../../src/surfaces/rest/json-body.ts';
import { eventually } from '../../support/eventually.ts';

/** A server that holds every request until the test responds, and a host with a bridge to it. */
async function world(t: TestContext) {
  const { promise: asked, resolve } = Promise.withResolvers<ServerResponse>();
  const bodies: string[] = [];
  const server = createServer((request, response) =>
    detach(
      readBytes(request, 1_000_000).then((body) => {
        bodies.push(body.toString());
        resolve(response);
      }),
    ),
  ).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const [input, output] = [new PassThrough(), new PassThrough()];
  let text = '';
  output.setEncoding('utf8').on('data', (part: string) => (text += part));
  const address = async (): Promise<URL> => new URL(`http://127.0.0.1:${port}/mcp`);
  const bridge = await Bridge.start({ input, output, address, clock: systemClock });
  return { input, bridge, asked, bodies, text: () => text };
}

const REQUEST = `${JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'tools/list' })}\n`;

test('a response that is pending at the end of input is written before the bridge closes', async (t) => {
  const { input, bridge, asked, text } = await world(t);
  input.end(REQUEST);
  const response = await asked;
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify({ jsonrpc: '2.0', id: 7, result: { tools: [] } }));
  await bridge.closed;
  assert.deepEqual(JSON.parse(text()), { jsonrpc: '2.0', id: 7, result: { tools: [] } });
});

test('the host gets no response to a request that it cancelled', async (t) => {
  const { input, bridge, asked, text } = await world(t);
  input.write(REQUEST);
  const response = await asked;
  input.write(`${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 7 } })}\n`);
  input.write('no JSON\n');
  await eventually('the bridge has read its input', () => text() !== '');
  response.setHeader('content-type', 'text/event-stream');
  const note = { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'after' } };
  for (const message of [{ jsonrpc: '2.0', id: 7, result: { tools: [] } }, note])
    response.write(`data: ${JSON.stringify(message)}\n\n`);
  response.end();
  await eventually('the message after the response has passed', () => text().includes('after'));
  await bridge.close();
  assert.ok(!text().includes('"id":7'), text());
});

test('close does not wait for pending requests', async (t) => {
  const { input, bridge, asked, text } = await world(t);
  input.write(REQUEST);
  await asked;
  await bridge.close();
  assert.equal(text(), '');
});

const RESULT = { jsonrpc: '2.0', id: 7, result: { tools: [] } };
const JSON_TYPE = { 'content-type': 'application/json' };
const EVENTS = { 'content-type': 'text/event-stream' };
const asJson = (value: unknown) => (response: ServerResponse) =>
  void response.writeHead(200, JSON_TYPE).end(JSON.stringify(value));
/** A stream that stays open. */
const asEvent = (data: string) => (response: ServerResponse) =>
  void response.writeHead(200, EVENTS).write(`data: ${data.replaceAll('\n', '\ndata: ')}\n\n`);

/** A failure whose body has no end. */
const endless = (headers: Readonly<Record<string, string>>) => (response: ServerResponse) => {
  const more = (): void => {
    while (response.write('x'.repeat(65_536)));
  };
  response.writeHead(500, headers).on('drain', more);
  more();
};

/** Responses that leave a request without an answer, and the cause that the host reads. */
const UNUSABLE: Readonly<Record<string, readonly [(response: ServerResponse) => void, RegExp]>> = {
  'a request that is only accepted': [
    (one) => one.writeHead(202).end(),
    /accepted the request without .* \(HTTP 202\)/,
  ],
  'no content': [(one) => one.writeHead(204).end(), /without a response \(HTTP 204\)/],
  'another ID': [asJson({ ...RESULT, id: '7' }), /another ID \("7"\) than that of the request \(7\)/],
  'another ID on an open stream': [asEvent(JSON.stringify({ ...RESULT, id: 8 })), /another ID \(8\)/],
  'no ID': [asJson({ ...RESULT, id: undefined }), /invalid response|another ID/],
  'no result': [asJson({ ...RESULT, result: null }), /whose result is not an object/],
  'no response': [asJson({ jsonrpc: '2.0', method: 'x' }), /a message in place of a response/],
  'no JSON': [(one) => one.writeHead(200, JSON_TYPE).end('oh no'), /a response that is not JSON/],
  'no JSON on an open stream': [asEvent('{"jsonrpc":\n"2.0",'), /a response that is not JSON/],
  'a page': [
    (one) => one.writeHead(200, { 'content-type': 'text/html' }).end('<html>'),
    /the content type text\/html in place of JSON/,
  ],
  'no type': [(one) => one.writeHead(200).end('x'), /no content type in place of JSON/],
  'an error page': [(one) => one.writeHead(500).end('<html>Oops</html>'), /^The MCP server responded with HTTP 500\.$/],
  'an error text': [(one) => one.writeHead(503).end('down for an hour'), /with HTTP 503: down for an hour$/],
  'an endless error page': [endless({}), /^The MCP server responded with HTTP 500: xxx/],
  'an endless event stream with an error': [endless(EVENTS), /^The MCP server responded with HTTP 500: xxx/],
  'an error without ID': [asJson({ jsonrpc: '2.0', id: null, error: { code: -32700, message: 'bad' } }), /^bad$/],
  'a body that is cut off': [
    (one) => {
      one.writeHead(200, { ...JSON_TYPE, 'content-length': 100 }).write('{"jsonrpc"');
      one.socket?.end();
    },
    /connection was lost before the response arrived/,
  ],
  'a long message in short lines': [
    asEvent(`{"jsonrpc":"2.0","id":7,"result":{"a":["${`${'a'.repeat(1_000_000)}",\n"`.repeat(22)}"]}}`),
    /longer than/,
  ],
};

for (const [name, [answer, cause]] of Object.entries(UNUSABLE))
  test(`a host is told why its request gets no response: ${name}`, async (t) => {
    const { input, bridge, asked, text } = await world(t);
    input.write(REQUEST);
    answer(await asked);
    await eventually('the host has an answer', () => text().endsWith('\n'));
    const { id, error } = JSON.parse(text()) as { readonly id: unknown; readonly error?: { readonly message: string } };
    assert.equal(id, 7);
    assert.match(error?.message ?? '', cause);
    await bridge.close();
  });

test('a response in several lines, after other messages, reaches the host', async (t) => {
  const { input, bridge, asked, text } = await world(t);
  input.write(REQUEST);
  const response = await asked;
  response.writeHead(200, EVENTS).write(': hello\n\nid: 1\ndata:\n\n');
  response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/message', params: {} })}\n\n`);
  response.write(`data: ${JSON.stringify(RESULT, null, 1).replaceAll('\n', '\ndata: ')}\n\n`);
  await eventually('the response is there', () => text().split('\n').length === 3);
  assert.deepEqual(JSON.parse(text().split('\n')[1] ?? ''), RESULT);
  await bridge.close();
});

const LONG = 'a'.repeat(MAX_SHARED_MESSAGE_BYTES);

test('invalid input of the host gets error responses, and the session continues', async (t) => {
  const { input, bridge, asked, bodies, text } = await world(t);
  const lines = [
    'hello',
    `{"jsonrpc":"2.0","id":"long","method":"tools/call","params":{"name":"x","arguments":{"data":"${LONG}"}}}`,
    '{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}',
    // A response that is too long: the server that asked gets an error instead.
    `{"jsonrpc":"2.0","id":"of-server","result":{"data":"${LONG}"}}`,
    `[${REQUEST.trim()}]`,
  ];
  // The last line has no line feed.
  input.end(lines.join('\n'));
  const response = await asked;
  response.writeHead(202).end();
  await eventually('the request arrives', () => bodies.length === 2);
  await bridge.close();
  assert.deepEqual(
    bodies.map((body) => JSON.parse(body)).map(({ id, error, method }) => ({ id, code: error?.code, method })),
    [
      { id: 'of-server', code: -32600, method: undefined },
      { id: 7, code: undefined, method: 'tools/list' },
    ],
  );
  const [garbage, long, large] = text().split('\n');
  assert.match(garbage ?? '', /^\{"jsonrpc":"2.0","id":null,"error":\{"code":-32700/);
  assert.match(long ?? '', /^\{"jsonrpc":"2.0","id":"long","error":\{"code":-32600,"message":"The message is longer/);
  assert.match(large ?? '', /^\{"jsonrpc":"2.0","id":9007199254740993,"error":\{"code":-32600/);
});

for (const type of ['application/json', 'text/event-stream'])
  test(`a response that is too long is an error for its request (${type})`, async (t) => {
    const { input, asked, text } = await world(t);
    input.write(REQUEST);
    const response = await asked;
    response.setHeader('content-type', type);
    const body = JSON.stringify({ result: { data: LONG }, jsonrpc: '2.0', id: 7 });
    response.end(type === 'application/json' ? body : `event: message\ndata: ${body}\n\n`);
    const answer: unknown = await eventually('the error', () => text().endsWith('\n') && JSON.parse(text()));
    assert.ok(isObject(answer) && isObject(answer['error']));
    assert.equal(answer['id'], 7);
    assert.match(String(answer['error']['message']), /^The message is longer than/);
  });
