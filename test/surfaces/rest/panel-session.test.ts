import assert from 'node:assert/strict';
import { request } from 'node:http';
import { type TestContext, test } from 'node:test';
import { PanelLogins } from '../../../src/capabilities/panel/panel-logins.ts';
import { memberOf } from '../../../src/foundation/json.ts';
import { declareStreams } from '../../../src/operations/declare.ts';
import { bindStreams } from '../../../src/operations/handlers/exchange.ts';
import { panelHandlers } from '../../../src/operations/handlers/panel.ts';
import { bind } from '../../../src/operations/operation.ts';
import { panelOperations } from '../../../src/operations/panel.ts';
import { closed, NONE } from '../../../src/operations/schemas.ts';
import { TokenCheck } from '../../../src/surfaces/rest/token.ts';
import { TestClock } from '../../support/test-clock.ts';
import { JSON_HEADERS, startWorld } from './support.ts';

const TOKEN = 'correct-horse-battery';

const STREAMS = declareStreams(
  {
    methods: ['GET'],
    params: NONE,
    query: closed({}),
    produces: 'text/plain',
    permission: 'read',
    errors: [],
    tag: 'T',
  } as const,
  { endless: { summary: 'Goes on.', path: '/endless' } },
);

async function panelWorld(t: TestContext, requireLocalToken = true) {
  const clock = new TestClock();
  const logins = new PanelLogins({ clock });
  const check = new TokenCheck(() => TOKEN, logins);
  const handlers = panelHandlers({
    logins,
    login: () => {
      const { code, expiresAt } = logins.openCode();
      return { code, expiresAt, url: `http://127.0.0.1/#login=${code}` };
    },
    isApiToken: (text) => check.isToken(text),
  });
  const world = await startWorld(t, {
    token: TOKEN,
    requireLocalToken,
    clock,
    sessions: logins,
    operations: bind(panelOperations, handlers),
    streams: bindStreams(STREAMS, { endless: ({ response }) => void response.writeHead(200).write('begun') }),
  });
  const call = async (method: string, path: string, token?: string, body?: object) => {
    const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` };
    const headers = { ...JSON_HEADERS, ...authorization };
    const { status, json, text } = await world.request(method, path, {
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status, json, text, error: memberOf(json, 'error') };
  };
  const codeOf = async (): Promise<string> =>
    String(memberOf((await call('POST', '/panel/login', TOKEN)).json, 'code'));
  const begin = async () => {
    const { json } = await call('POST', '/panel/session', undefined, { code: await codeOf() });
    return { id: String(memberOf(json, 'id')), token: String(memberOf(json, 'token')) };
  };
  return { world, logins, clock, call, codeOf, begin };
}

test('a code creates one session, and its token has the rights of the API token', async (t) => {
  const { call, codeOf } = await panelWorld(t);
  assert.equal((await call('POST', '/panel/login')).error, 'unauthorized');
  const code = await codeOf();
  const first = await call('POST', '/panel/session', undefined, { code });
  assert.equal(first.status, 200);
  const token = String(memberOf(first.json, 'token'));
  const listed = await call('GET', '/panel/sessions', token);
  assert.equal(listed.status, 200);
  assert.ok(!listed.text.includes(token));
  assert.equal(memberOf(listed.json, 'sessions', '0', 'current'), true);
  assert.equal((await call('POST', '/panel/session', undefined, { code })).error, 'unauthorized');
  assert.equal((await call('GET', '/panel/sessions')).error, 'unauthorized');
});

test('the API token creates a session too, and other bodies are invalid', async (t) => {
  const { call } = await panelWorld(t);
  assert.equal((await call('POST', '/panel/session', undefined, { api_token: TOKEN })).status, 200);
  for (const body of [{}, { code: 'x', api_token: TOKEN }, { code: '' }, { other: 'x' }])
    assert.equal((await call('POST', '/panel/session', undefined, body)).error, 'invalid_request');
});

test('a session cannot create sessions', async (t) => {
  const { call, begin } = await panelWorld(t);
  const { token } = await begin();
  assert.equal((await call('POST', '/panel/login', token)).error, 'access_denied');
});

test('wrong tokens in the body and in the header share one limit', async (t) => {
  const { call, clock } = await panelWorld(t);
  for (let i = 0; i < 5; i++) {
    assert.equal((await call('GET', '/panel/sessions', `wrong${i}`)).error, 'unauthorized');
    assert.equal((await call('POST', '/panel/session', undefined, { api_token: `wrong${i}` })).error, 'unauthorized');
  }
  assert.equal((await call('POST', '/panel/session', undefined, { api_token: TOKEN })).error, 'rate_limited');
  assert.equal((await call('GET', '/panel/sessions', TOKEN)).error, 'rate_limited');
  clock.advance(10_000);
  assert.equal((await call('POST', '/panel/session', undefined, { api_token: TOKEN })).status, 200);
});

test('wrong codes, which any page can send a browser to, use up no attempts', async (t) => {
  const { call, codeOf } = await panelWorld(t);
  for (let i = 0; i < 30; i++)
    assert.equal((await call('POST', '/panel/session', undefined, { code: `wrong${i}` })).error, 'unauthorized');
  assert.equal((await call('POST', '/panel/session', undefined, { code: await codeOf() })).status, 200);
});

test('a page with an expired session uses up no attempts', async (t) => {
  const { call, begin } = await panelWorld(t);
  const { id, token } = await begin();
  assert.equal((await call('DELETE', `/panel/sessions/${id}`, token)).status, 200);
  for (let i = 0; i < 15; i++) assert.equal((await call('GET', '/panel/sessions', token)).error, 'unauthorized');
  assert.equal((await call('GET', '/panel/sessions', TOKEN)).status, 200);
});

test('closing a session closes its open streams', async (t) => {
  const { world, call, begin } = await panelWorld(t);
  const { id, token } = await begin();
  const open = async (bearer: string) => {
    const asked = request({ host: world.host, port: world.port, path: '/endless', agent: false });
    asked.setHeader('authorization', `Bearer ${bearer}`);
    const { promise: answered, resolve: answer } = Promise.withResolvers<void>();
    const { promise: cut, resolve: end } = Promise.withResolvers<void>();
    asked.on('error', () => {});
    asked.once('response', (response) => {
      response.on('error', () => {}).once('close', end);
      response.resume();
      answer();
    });
    asked.end();
    await answered;
    return { asked, cut };
  };
  const [session, other] = [await open(token), await open(TOKEN)];
  await call('DELETE', `/panel/sessions/${id}`, TOKEN);
  await session.cut;
  assert.ok(!other.asked.destroyed && other.asked.socket?.destroyed === false);
  other.asked.destroy();
  await other.cut;
});

test('if no token is required, the panel works without one, and a stale session does no harm', async (t) => {
  const { call, begin } = await panelWorld(t, false);
  const { id, token } = await begin();
  await call('DELETE', `/panel/sessions/${id}`);
  assert.equal((await call('GET', '/panel/sessions', token)).status, 200);
  assert.equal((await call('GET', '/panel/sessions')).status, 200);
});
