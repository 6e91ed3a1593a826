/** Callers that may use only some MCP tools, with a real service that shows what reaches it. */
import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { describe, type TestContext, test } from 'node:test';
import type { Call } from '../../../src/capabilities/calls/http-caller.ts';
import { LIMITED_MESSAGE_MS, MAX_LIMITED_MESSAGE_BYTES } from '../../../src/capabilities/calls/tool-limit.ts';
import { readJson } from '../../../src/foundation/json.ts';
import { callWorld, textOf, webService } from '../../support/call-world.ts';
import { eventually } from '../../support/eventually.ts';
import { readAll } from '../../support/link-world.ts';
import { TestClock } from '../../support/test-clock.ts';

const JSON_HEADERS = ['Content-Type', 'application/json'];

/** A caller that may use `search`, and what its service received. */
async function limitedWorld(t: TestContext, clock?: TestClock) {
  const world = await callWorld(t, clock);
  world.tools = ['search'];
  const seen: string[] = [];
  const service = await webService(t, (request, response) => {
    void readAll(request).then((body) => {
      seen.push(`${request.method} ${request.url} ${body.toString()}`);
      response.end('ok');
    });
  });
  world.bound.set(world.remote, service.bound);
  const post = (text: string, call: Partial<Call> = {}) =>
    world.call({ method: 'POST', path: '/mcp', headers: JSON_HEADERS, body: Buffer.from(text), ...call });
  return { world, seen, post };
}

const SEARCH = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search"}}';

describe('a caller that may use one tool', () => {
  test('uses it, and sends what belongs to a session', async (t) => {
    const { world, seen, post } = await limitedWorld(t);
    const messages = [
      SEARCH,
      '{"jsonrpc":"2.0","id":9223372036854775807,"method":"tools/list"}',
      '{"jsonrpc":"2.0","method":"notifications/initialized"}',
      '{"jsonrpc":"2.0","id":2,"result":{}}',
    ];
    for (const text of messages) assert.equal(await textOf(await post(text)), 'ok');
    for (const method of ['GET', 'DELETE'])
      assert.equal(await textOf(await world.call({ method, path: '/mcp' })), 'ok');
    assert.deepEqual(seen, [...messages.map((text) => `POST /mcp ${text}`), 'GET /mcp ', 'DELETE /mcp ']);
    const routed = [...JSON_HEADERS, 'Mcp-Method', 'tools/call', 'Mcp-Name', 'search'];
    assert.equal(await textOf(await post(SEARCH, { path: '/mcp/?x=1', headers: routed })), 'ok');
  });

  test('reaches no other tool, method or path', async (t) => {
    const { world, seen, post } = await limitedWorld(t);
    const ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}';
    const utf7 = ['Content-Type', 'application/json; charset=utf-7'];
    const calls: readonly (readonly [string, Partial<Call>?])[] = [
      [SEARCH.replace('search', 'delete')],
      [SEARCH.replace('"name":"search"', '"name":"search","Name":"delete"')],
      [SEARCH.replace('"name":"search"', '"name":["search"]')],
      [SEARCH.replace('"name":"search"', '"name":"search","__proto__":{"name":"delete"}')],
      [`[${SEARCH}]`],
      ['{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"file:///etc/passwd"}}'],
      ['not JSON'],
      [ping, { path: '/' }],
      [ping, { path: '/mcp/../admin' }],
      [ping, { path: '/mcpx' }],
      [ping, { method: 'PUT' }],
      [SEARCH, { headers: utf7 }],
      [SEARCH, { headers: ['Content-Type', 'text/plain'] }],
      [SEARCH, { headers: [...JSON_HEADERS, 'Content-Encoding', 'gzip'] }],
      [SEARCH, { headers: [...JSON_HEADERS, 'Mcp-Name', 'delete'] }],
      [ping, { headers: [...JSON_HEADERS, 'Mcp-Method', 'tools/call', 'Mcp-Name', 'delete'] }],
    ];
    for (const [text, call] of calls)
      await assert.rejects(post(text, call), { code: 'access_denied' }, `${text} ${JSON.stringify(call)}`);
    for (const method of ['GET', 'DELETE'])
      await assert.rejects(world.call({ method, path: '/orders' }), { code: 'access_denied' });
    assert.deepEqual(seen, []);
  });

  test('cannot hide a method in a repeated or a second spelling of a key', async (t) => {
    const { seen, post } = await limitedWorld(t);
    const evil = '"params":{"name":"delete"}';
    await post(`{"id":1,"method":"ping","Method":"tools/call",${evil},"METHOD":"tools/call"}`);
    await assert.rejects(post(`{"id":1,"method":"ping","method":"tools/call",${evil}}`), { code: 'access_denied' });
    await post(`{"id":1,"method":"tools/call","method":"ping",${evil}}`);
    assert.deepEqual(
      seen.map((line) => readJson(line.replace('POST /mcp ', ''))),
      [1, 2].map(() => ({ id: 1, method: 'ping', params: { name: 'delete' } })),
    );
  });

  test('cannot send a huge message', async (t) => {
    const { seen, post } = await limitedWorld(t);
    await assert.rejects(post(JSON.stringify({ method: 'ping', params: 'x'.repeat(MAX_LIMITED_MESSAGE_BYTES) })), {
      code: 'too_large',
    });
    await assert.rejects(post(JSON.stringify({ method: 'ping', params: Array.from({ length: 20_001 }, () => 0) })), {
      code: 'too_large',
    });
    assert.deepEqual(seen, []);
  });

  test('has a limited time for a message', async (t) => {
    const clock = new TestClock();
    const { world, seen, post } = await limitedWorld(t, clock);
    const body = new PassThrough();
    const answer = assert.rejects(post('', { body, bodyLength: SEARCH.length }), { code: 'timeout' });
    body.write('{');
    await eventually('the call is counted', () => world.server.active === 1);
    await clock.run(LIMITED_MESSAGE_MS);
    await answer;
    body.destroy();
    assert.deepEqual(seen, []);
    await eventually('its place is free', () => world.server.active === 0);
  });
});
