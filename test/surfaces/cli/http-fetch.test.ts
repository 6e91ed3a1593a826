/** The client of the commands fails, ends and aborts like the platform's `fetch`. */
import assert from 'node:assert/strict';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { createClient } from '../../../src/operations/client.ts';
import { operations } from '../../../src/operations/index.ts';
import { httpFetch } from '../../../src/surfaces/cli/daemon-fetch.ts';
import { quietPort } from '../../support/programs.ts';

async function daemon(t: TestContext, listener: RequestListener) {
  const server = createServer(listener).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function clients(baseUrl: string) {
  const options = { baseUrl, token: 'secret' };
  return [createClient(options, operations), createClient({ ...options, fetch: httpFetch }, operations)] as const;
}

test('sends and reads the same as fetch', async (t) => {
  const seen: unknown[] = [];
  const baseUrl = await daemon(t, (request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (part: string) => {
      body += part;
    });
    request.on('end', () => {
      const { accept, authorization, 'content-type': type, 'content-length': length } = request.headers;
      seen.push([request.method, request.url, { accept, authorization, type, length }, body]);
      response.writeHead(200, { 'content-type': 'application/json' });
      // Two chunks that split a character.
      const text = Buffer.from('{"aliases":{"Žofie":"x"}}');
      response.write(text.subarray(0, 13));
      setImmediate(() => response.end(text.subarray(13)));
    });
  });
  for (const client of clients(baseUrl)) {
    assert.deepEqual(await client.addressBookGet(), { aliases: { Žofie: 'x' } });
    await client.fetch({ aid: 'aid1', method: 'GET', path: '/ä' });
    await client.tunnelClose({ id: 'x' });
  }
  assert.deepEqual(seen.slice(3), seen.slice(0, 3));
  assert.equal(seen.length, 6);
});

test('does not follow redirects, which protects the token', async (t) => {
  let asked = 0;
  const other = await daemon(t, (_, response) => {
    asked += 1;
    response.end('{}');
  });
  const baseUrl = await daemon(t, (_, response) => response.writeHead(302, { location: `${other}/health` }).end());
  for (const client of clients(baseUrl)) await assert.rejects(client.health(), { code: 'daemon_unreachable' });
  assert.equal(asked, 0);
});

test('maps connection errors, truncated responses, timeouts and aborts to codes', async (t) => {
  const silent = await daemon(t, () => {});
  const cut = await daemon(t, (_, response) => {
    response.writeHead(200, { 'content-length': '100' }).write('{', () => response.destroy());
  });
  const nobody = `http://127.0.0.1:${await quietPort()}`;
  for (const client of clients(nobody))
    await assert.rejects(client.health(), {
      code: 'daemon_unreachable',
      details: { base: nobody, reason: 'ECONNREFUSED' },
    });
  for (const client of clients(cut)) await assert.rejects(client.health(), { code: 'daemon_unreachable' });
  for (const client of clients(silent)) {
    await assert.rejects(client.health({}, { timeoutMs: 20 }), { code: 'timeout' });
    const controller = new AbortController();
    const call = client.health({}, { signal: controller.signal });
    controller.abort();
    await assert.rejects(call, { code: 'cancelled' });
  }
});
