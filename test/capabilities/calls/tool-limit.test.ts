/** Callers that may use only some MCP tools, with a real service that shows what reaches it. */
import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { describe, type TestContext, test } from 'node:test';
import type { Call } from '../../../src/capabilities/calls/http-caller.ts';
import { LIMITED_MESSAGE_MS, MAX_LIMITED_MESSAGE_BYTES } from '../../../src/capabilities/calls/tool-limit.ts';
import { callWorld, textOf, webService } from '../../support/call-world.ts';
import { eventually } from '../../support/eventually.ts';
import { readAll } from '../../support/link-world.ts';
import { TestClock } from '../../support/test-clock.ts';

const JSON_HEADERS = ['Content-Type', 'application/json'];

/** A caller that may use `search`, and what its service received. */
async function limitedWorld(t: TestContext, clock?: TestClock) {
  const world = await callWorld(t, { clock });
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
    assert.equal(await textOf(await post(SEARCH, { path: '/mcp/', headers: routed })), 'ok');
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

  test('cannot hide a member in a repeated or a second spelling of its name', async (t) => {
    const { seen, post } = await limitedWorld(t);
    const evil = '"params":{"name":"delete"}';
    const name = (other: string): string => SEARCH.replace('"name":"search"', `"name":"search","${other}":"delete"`);
    const meta = (members: string): string => SEARCH.replace('"name":"search"', `"name":"search",${members}`);
    const ambiguous = [
      `{"id":1,"method":"ping","Method":"tools/call",${evil}}`,
      `{"id":1,"method":"ping","method":"tools/call",${evil}}`,
      `{"id":1,"method":"tools/call","method":"ping",${evil}}`,
      `{"id":1,"method":"ping","m\\u0065thod":"ping",${evil}}`,
      `{"id":1,"method":"ping","param\u017F":{"name":"delete"}}`,
      SEARCH.replace('}}', `},"PARAMS":{"name":"delete"}}`),
      SEARCH.replace('}}', `},"params":{"name":"search"}}`),
      SEARCH.replace('{"name"', '{"name":"delete","name"'),
      // Another case, an escape, full width, an accent, and invisible characters.
      ...['NAME', '\\u004eame', '\uFF4Eame', 'n\u00E1me', 'na\u0301me', '\u200Bname', 'name\\u0000'].map(name),
      // The end of a name for parsers in C, and separators that parsers skip.
      ...['name\\u0000x', 'na_me', 'N-ame'].map(name),
      meta('"meta":{"svcd/caller":"x"}'),
      meta('"_META":{"svcd/caller":"x"}'),
      meta('"_meta":{"SVCD/caller":"x"}'),
      meta('"_meta":{"\u017Fvcd/caller":"x"}'),
      meta('"_meta":{"progressToken":1,"PROGRESSTO\u212AEN":2}'),
      meta('"_meta":{"a":1,"a":2}'),
      meta('"arguments":{},"ARGUMENT\u017F":{}'),
      `\uFEFF${SEARCH}`,
      `${SEARCH}${SEARCH}`,
      `${SEARCH}\n${SEARCH.replace('search', 'delete')}`,
      SEARCH.replace('{"name":"search"}', '[{"name":"delete"}]'),
      '{"jsonrpc":"2.0","id":1,"method":"ping","params":[{"name":"delete"}]}',
    ];
    for (const text of ambiguous) await assert.rejects(post(text), { code: 'access_denied' }, text);
    const utf16 = Buffer.from(SEARCH, 'utf16le');
    const broken = Buffer.concat([Buffer.from(SEARCH.slice(0, -2)), Buffer.from([0xff]), Buffer.from('}}')]);
    for (const body of [utf16, broken]) await assert.rejects(post('', { body }), { code: 'access_denied' });
    assert.deepEqual(seen, []);
  });

  test('is written again with the members and headers that a service can read in one way only', async (t) => {
    const { world, post } = await limitedWorld(t);
    const received: string[] = [];
    const service = await webService(t, (request, response) => {
      received.push(request.rawHeaders.filter((_, i) => i % 2 === 0).join(' '));
      assert.equal(request.headers['content-type'], 'application/json');
      void readAll(request).then((body) => response.end(body));
    });
    world.bound.set(world.remote, service.bound);
    const steering = [
      ...['X-HTTP-Method-Override', 'PUT', 'X_HTTP_Method', 'PUT', 'X-Original-URL', '/admin', 'Mcp_Name', 'delete'],
      ...['Content_Type', 'application/json; charset=utf-7', 'Content_Encoding', 'gzip'],
    ];
    const headers = ['Content-Type', 'application/json; charset=UTF-8', 'Mcp-Session-Id', 'abc', ...steering];
    const text = SEARCH.replace('"id":1', '"id" : 1,"extra":{"method":"x"}');
    assert.equal(await textOf(await post(text, { headers })), SEARCH);
    assert.doesNotMatch(received.join(), /method|original|content_|mcp_name/i);
    assert.match(received.join(), /Mcp-Session-Id/);
    const twice = [...JSON_HEADERS, 'Content-Type', 'application/json; charset=utf-16'];
    const refused: readonly Partial<Call>[] = [
      { headers: twice },
      { headers: [...JSON_HEADERS, 'Mcp-Name', 'search', 'Mcp-Name', 'delete'] },
      { headers: [...JSON_HEADERS, 'Mcp-Name', 'search'] },
      // Some decoders read what follows the padding.
      { headers: [...JSON_HEADERS, 'Mcp-Method', 'tools/call', 'Mcp-Name', '=?base64?c2VhcmNo====X2FsbA==?='] },
      { path: '/mcp?_method=delete' },
      { path: '/mcp?x=1&X-HTTP-Method-Overrid%65=delete' },
      { path: '/mcp?x?&_method=delete' },
      { path: '/mcp?x=1;_method=delete' },
    ];
    for (const call of refused)
      await assert.rejects(post(SEARCH, call), { code: 'access_denied' }, JSON.stringify(call));
  });

  test('sends no body with the requests of a session, and no header that changes them', async (t) => {
    const { world } = await limitedWorld(t);
    const received: unknown[] = [];
    const service = await webService(t, (request, response) => {
      const { 'x-http-method-override': override, 'content-type': type, 'last-event-id': last } = request.headers;
      void readAll(request).then((body) => {
        received.push([request.method, override, type, last, body.length]);
        response.end();
      });
    });
    world.bound.set(world.remote, service.bound);
    const headers = [...JSON_HEADERS, 'X-HTTP-Method-Override', 'POST', 'Last-Event-ID', '7'];
    const body = Buffer.from(SEARCH.replace('search', 'delete'));
    for (const method of ['GET', 'DELETE']) await textOf(await world.call({ method, path: '/mcp', headers, body }));
    const routed = [...headers, 'Mcp-Method', 'tools/call', 'Mcp-Name', 'delete'];
    for (const method of ['GET', 'DELETE'])
      await assert.rejects(world.call({ method, path: '/mcp', headers: routed }), { code: 'access_denied' });
    assert.deepEqual(
      received,
      ['GET', 'DELETE'].map((method) => [method, undefined, undefined, '7', 0]),
    );
  });

  test('uses everything else of a shared server, but no other tool', async (t) => {
    const { world, seen, post } = await limitedWorld(t);
    world.isServer = true;
    const read = '{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"note:7"}}';
    for (const text of [SEARCH, read]) assert.equal(await textOf(await post(text)), 'ok');
    const metadata = '/.well-known/oauth-protected-resource/mcp';
    assert.equal(await textOf(await world.call({ path: metadata })), 'ok');
    assert.deepEqual(seen, [`POST /mcp ${SEARCH}`, `POST /mcp ${read}`, `GET ${metadata} `]);
    const refused: readonly (readonly [string, Partial<Call>?])[] = [
      [SEARCH.replace('search', 'delete')],
      [read.replace('"uri"', '"uri":"a","URI"')],
      [SEARCH.replace('"tools/call"', '"Tools/Call"').replace('search', 'delete')],
      ...[
        'tool\u017F/call',
        'tools/call\\u0000x',
        'tools.call',
        'tool/call',
        'tools//call',
        'call_tools',
        'ping\u0300',
      ].map((method) => [SEARCH.replace('tools/call', method)] as const),
      [`[${SEARCH}]`],
      [read, { headers: [...JSON_HEADERS, 'Mcp-Method', 'tools/call', 'Mcp-Name', 'delete'] }],
      [read, { path: metadata }],
      [read, { path: '/.well-known/oauth-protected-resource/../../admin', method: 'GET', body: null }],
      [read, { headers: [...JSON_HEADERS, 'Mcp-Method', 'resources/read', 'Mcp-Name', 'delete'] }],
      [read, { path: '/orders' }],
    ];
    for (const [text, call] of refused) await assert.rejects(post(text, call), { code: 'access_denied' }, text);
    assert.equal(seen.length, 3);
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
