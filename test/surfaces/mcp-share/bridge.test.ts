/** The bridge between a host on stdin and stdout and a shared server: how it closes. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PassThrough } from 'node:stream';
import { type TestContext, test } from 'node:test';
import { systemClock } from '../../../src/foundation/clock.ts';
import { detach } from '../../../src/foundation/detached.ts';
import { Bridge } from '../../../src/surfaces/mcp-share/bridge.ts';
import { readBytes } from '../../../src/surfaces/rest/json-body.ts';

/** A server that holds every request until the test responds, and a host with a bridge to it. */
async function world(t: TestContext) {
  const { promise: asked, resolve } = Promise.withResolvers<ServerResponse>();
  const server = createServer((request, response) =>
    detach(readBytes(request, 1_000_000).then(() => resolve(response))),
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
  return { input, bridge, asked, text: () => text };
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

test('close does not wait for pending requests', async (t) => {
  const { input, bridge, asked, text } = await world(t);
  input.write(REQUEST);
  await asked;
  await bridge.close();
  assert.equal(text(), '');
});
