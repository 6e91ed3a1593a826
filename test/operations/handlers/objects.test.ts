import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { type Clock, systemClock } from '../../../src/foundation/clock.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import { type Aid, parseAid } from '../../../src/foundation/identity/aid.ts';
import { gatewayStreams } from '../../../src/operations/gateway.ts';
import { bindStreams } from '../../../src/operations/handlers/exchange.ts';
import { objectHandlers, objectStreamHandlers } from '../../../src/operations/handlers/objects.ts';
import { toolHandlers } from '../../../src/operations/handlers/tools.ts';
import { objectOperations, objectStreams } from '../../../src/operations/objects.ts';
import { bind } from '../../../src/operations/operation.ts';
import { ToolTable } from '../../../src/operations/tool-call.ts';
import { toolOperations } from '../../../src/operations/tools.ts';
import { gatewayHandlers } from '../../../src/surfaces/rest/gateway.ts';
import { newIdentity } from '../../support/identities.ts';
import { ObjectWorld, sha256, someBytes } from '../../support/object-world.ts';
import { TestClock } from '../../support/test-clock.ts';
import { ask, JSON_HEADERS, startWorld } from '../../surfaces/rest/support.ts';

const OCTETS = { 'content-type': 'application/octet-stream' };
const TOKEN = 'correct-horse-battery';

interface Stored {
  object_id: string;
  size: number;
  name: string;
  url: string;
}

async function world(t: TestContext, token = '', clock: Clock = systemClock) {
  const objects = new ObjectWorld(t);
  const [near, far] = [await objects.node(), await objects.node()];
  const heartbeats: Aid[] = [];
  const requireAgent = (aid: Aid): Aid => {
    if (aid !== near.aid) throw new SvcError('not_found');
    return aid;
  };
  const handlers = bind(objectOperations, objectHandlers({ ...near, requireAgent }));
  const tools = new ToolTable({ operations: handlers, pending: () => ({}) });
  const caller = {
    request: () => Promise.reject(new SvcError('no_inbound')),
    upgrade: () => Promise.reject(new SvcError('no_inbound')),
  };
  const api = await startWorld(t, {
    token,
    clock,
    operations: [...handlers, ...bind(toolOperations, toolHandlers({ tools }))],
    streams: bindStreams(
      { ...gatewayStreams, ...objectStreams },
      {
        ...gatewayHandlers({ caller, nodeAid: near.aid, agent: parseAid, requireLocal: requireAgent }),
        ...objectStreamHandlers({
          objects: near.objects,
          remote: near.remote,
          clock: systemClock,
          nodeAid: near.aid,
          requireAgent,
          heartbeat: (aid) => heartbeats.push(aid),
        }),
      },
    ),
  });
  const call = async (tool: string, args: object) => {
    const body = JSON.stringify({ tool, args: { aid: near.aid, ...args } });
    return await api.request('POST', '/mcp/call', { headers: JSON_HEADERS, body });
  };
  return { objects, near, far, api, call, heartbeats, cas: `/agents/${near.aid}/cas` };
}

test('an upload streams to disk and returns the object', async (t) => {
  const { api, cas, near, heartbeats } = await world(t);
  const body = someBytes(5_000_000);
  const answer = await api.request('POST', `${cas}?name=a%20b.bin`, { headers: OCTETS, body });
  assert.equal(answer.status, 200, answer.text);
  const objectId = sha256(body);
  const wanted = { object_id: objectId, size: body.length, name: 'a b.bin', url: `svc://${near.aid}/cas/${objectId}` };
  assert.deepEqual(answer.json, wanted);
  assert.deepEqual(heartbeats, [near.aid]);
  const list = (await api.request('GET', cas)).json as { objects: Stored[]; usage: object };
  assert.deepEqual(
    list.objects.map((one) => one.object_id),
    [objectId],
  );
  assert.deepEqual(await api.request('DELETE', `${cas}/${objectId}`, { headers: JSON_HEADERS }).then((a) => a.json), {
    ok: true,
  });
  assert.equal((await api.request('DELETE', `${cas}/${objectId}`, { headers: JSON_HEADERS })).status, 404);
});

test('uploads need a local program with the token, octets, and a local agent', async (t) => {
  const { api, cas } = await world(t, TOKEN);
  const right = { ...OCTETS, authorization: `Bearer ${TOKEN}` };
  assert.equal(
    (await api.request('POST', cas, { headers: OCTETS, body: 'x' })).status,
    401,
    'local, without the token',
  );
  const wrong = { ...OCTETS, authorization: 'Bearer wrong-horse-battery' };
  assert.equal((await api.request('POST', cas, { headers: wrong, body: 'x' })).status, 401);
  assert.equal((await api.request('POST', cas, { headers: right, body: 'x' })).status, 200);
  const json = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' };
  assert.equal((await api.request('POST', cas, { headers: json, body: '{}' })).status, 415);
  const nobody = `/agents/${newIdentity().aid}/cas`;
  assert.equal((await api.request('POST', nobody, { headers: right, body: 'x' })).status, 404);
});

test('storing and deleting objects needs the token locally too, over every surface', async (t) => {
  const { api, near, cas } = await world(t, TOKEN);
  const { objectId } = await near.objects.put(near.aid, { bytes: Buffer.from('kept') }, 'x');
  const authorization = `Bearer ${TOKEN}`;
  const put = async (headers: Record<string, string>) => {
    const body = JSON.stringify({ tool: 'group_object_put', args: { aid: near.aid, body_base64: 'eA==' } });
    return await api.request('POST', '/mcp/call', { headers: { ...JSON_HEADERS, ...headers }, body });
  };
  const remove = async (headers: Record<string, string>) =>
    await api.request('DELETE', `${cas}/${objectId}`, { headers: { ...JSON_HEADERS, ...headers } });
  for (const headers of [{}, { authorization: 'Bearer wrong-horse-battery' }]) {
    const refused = await put(headers);
    assert.equal(refused.status, 422);
    assert.equal((refused.json as { error: string }).error, 'unauthorized');
    assert.equal((await remove(headers)).status, 401);
  }
  assert.equal(near.objects.list(near.aid, 10).usage.count, 1);
  assert.equal((await put({ authorization })).status, 200);
  assert.equal((await remove({ authorization })).status, 200);
});

test('wrong tokens are limited if only objects require one, over every surface', async (t) => {
  const { api, cas, call } = await world(t, TOKEN, new TestClock());
  const wrong = { ...JSON_HEADERS, authorization: 'Bearer wrong-horse-battery' };
  const put = async (authorization: string) => {
    const body = JSON.stringify({ tool: 'group_object_put', args: { aid: newIdentity().aid, body_base64: 'eA==' } });
    const answer = await api.request('POST', '/mcp/call', { headers: { ...JSON_HEADERS, authorization }, body });
    return (answer.json as { error: string }).error;
  };
  const upload = async (authorization: string) =>
    (await api.request('POST', cas, { headers: { ...OCTETS, authorization }, body: 'x' })).status;
  for (let i = 0; i < 5; i++) {
    assert.equal(await put(wrong.authorization), 'unauthorized');
    assert.equal(await upload(wrong.authorization), 401);
  }
  assert.equal(await put(wrong.authorization), 'rate_limited');
  assert.equal(await upload(wrong.authorization), 429);
  assert.equal(await upload(`Bearer ${TOKEN}`), 429, 'a correct token is refused as well');
  assert.equal((await call('group_object_locate', { object_id: sha256(Buffer.from('x')) })).status, 200);
  assert.equal(
    (await api.request('GET', cas, { headers: wrong })).status,
    200,
    'requests without a required token are not limited',
  );
});

test('a page of another site cannot upload', async (t) => {
  const { api, cas } = await world(t);
  const headers = { ...OCTETS, origin: 'https://evil.example' };
  assert.equal((await api.request('POST', cas, { headers, body: 'x' })).status, 403);
});

test('an interrupted upload leaves no file', async (t) => {
  const { api, cas, near } = await world(t);
  const headers = { ...OCTETS, 'content-length': '1000000' };
  const incoming = join(near.filesRoot, '.svcd', 'incoming');
  const request = httpRequest({ host: api.host, port: api.port, method: 'POST', path: cas, headers });
  const failed = once(request, 'error');
  request.write(Buffer.alloc(100_000));
  while (readdirSync(incoming).length === 0) await new Promise((resolve) => setImmediate(resolve));
  request.destroy(new Error('cut'));
  await failed;
  while (readdirSync(incoming).length > 0) await new Promise((resolve) => setImmediate(resolve));
  assert.equal(near.objects.list(near.aid, 10).usage.count, 0);
});

test('a local and a remote object are read below the gateway, in a sandbox', async (t) => {
  const { api, near, far } = await world(t);
  const bytes = someBytes(300_000);
  const objectId = sha256(bytes);
  for (const { objects, aid } of [near, far]) {
    await objects.put(aid, { bytes }, 'x.html');
    const path = `/aid/${aid}/cas/${objectId}`;
    const whole = await fetch(`${api.url}${path}`);
    assert.equal(whole.status, 200);
    assert.ok(Buffer.from(await whole.arrayBuffer()).equals(bytes));
    assert.equal(whole.headers.get('etag'), `"${objectId}"`);
    assert.equal(whole.headers.get('content-disposition'), "attachment; filename*=UTF-8''x.html");
    assert.match(whole.headers.get('content-security-policy') ?? '', /sandbox/);
    assert.equal(whole.headers.get('x-content-type-options'), 'nosniff');
    const part = await fetch(`${api.url}${path}`, { headers: { range: 'bytes=10-19' } });
    assert.equal(part.status, 206);
    assert.ok(Buffer.from(await part.arrayBuffer()).equals(bytes.subarray(10, 20)));
    const head = await api.request('HEAD', path);
    assert.deepEqual([head.status, head.headers['content-length'], head.text], [200, '300000', '']);
    assert.equal((await api.request('GET', path, { headers: { 'if-none-match': `"${objectId}"` } })).status, 304);
    assert.equal((await api.request('GET', path, { headers: { range: 'bytes=300000-' } })).status, 416);
    assert.equal((await api.request('GET', `/aid/${aid}/cas/${'0'.repeat(64)}`)).status, 404);
    assert.equal((await api.request('DELETE', path, { headers: JSON_HEADERS })).status, 405);
  }
});

test('reading needs no token, but the holder must allow it, on this daemon too', async (t) => {
  const { objects, api, near } = await world(t, TOKEN);
  const { objectId } = await near.objects.put(near.aid, { bytes: Buffer.from('x') });
  const path = `/aid/${near.aid}/cas/${objectId}`;
  assert.equal((await api.request('GET', path)).status, 200);
  objects.access = ({ caller }) => {
    assert.equal(caller, near.aid);
    throw new SvcError('access_denied');
  };
  assert.equal((await api.request('GET', path)).status, 403);
});

test('forged bytes never arrive complete', async (t) => {
  const { objects, api } = await world(t);
  const liar = await objects.links.node();
  const { aid } = liar.host();
  const objectId = sha256('the true bytes');
  liar.links.accept('object', (link) => {
    link.on('error', () => {});
    link.once('data', () =>
      link.write(`HTTP/1.1 200 OK\r\netag: "${objectId}"\r\ncontent-length: 15\r\n\r\nnot the content`),
    );
  });
  await assert.rejects(ask(api.host, api.port, 'GET', `/aid/${aid}/cas/${objectId}`));
});

test('the tools put, locate and get objects', async (t) => {
  const { call, near, far } = await world(t);
  writeFileSync(join(near.filesRoot, 'mine.txt'), 'mine');
  const put = (await call('group_object_put', { path: 'mine.txt' })).json as Stored;
  assert.deepEqual([put.object_id, put.name], [sha256('mine'), 'mine.txt']);
  const body = (await call('group_object_put', { body_base64: 'eA==', name: 'x' })).json as Stored;
  assert.equal(body.object_id, sha256('x'));
  for (const args of [{}, { path: 'mine.txt', body_base64: 'eA==' }, { body_base64: '*' }, { path: '../x' }])
    assert.equal((await call('group_object_put', args)).status, 422);

  const { objectId } = await far.objects.put(far.aid, { bytes: Buffer.from('theirs') }, 'theirs.txt');
  const located = (await call('group_object_locate', { object_id: objectId, hint_aid: far.aid })).json;
  const holder = { aid: far.aid, status: 'available', size: 6, name: 'theirs.txt' };
  const wanted = { object_id: objectId, found: true, local: false, size: 6, name: 'theirs.txt', holders: [holder] };
  assert.deepEqual(located, wanted);
  const got = (await call('group_object_get', { object_id: objectId, dest: 'got.txt', register: true })).json;
  const path = join(near.filesRoot, 'got.txt');
  assert.deepEqual(got, { object_id: objectId, size: 6, path, from: far.aid, registered: true });
  assert.equal(readFileSync(path, 'utf8'), 'theirs');
  const here = (await call('group_object_locate', { object_id: objectId })).json as { local: boolean };
  assert.equal(here.local, true);
});
