import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { testAid } from '../../support/agents.ts';
import { eventually } from '../../support/eventually.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';
import { adminWorld } from './admin-world.ts';
import { type Answer, JSON_HEADERS } from './support.ts';

function outcome({ status, json }: Answer): [number, unknown] {
  return [status, typeof json === 'object' && json !== null ? Reflect.get(json, 'error') : undefined];
}

interface Audit {
  readonly entries: readonly {
    id: number;
    aid: string;
    method: string | null;
    path: string | null;
    status: number | null;
    refused: string | null;
    node_key: string | null;
  }[];
  readonly next_cursor?: string;
}

test('it is off by default; when on, only allowed callers are admitted, and others get no reason', async (t) => {
  const world = await adminWorld(t);
  world.lists.setDefault('node', 'deny');
  await world.lists.allow('node', { aid: world.nearAid });
  const off = await world.via('GET', '/ping');
  assert.deepEqual(outcome(off), [403, 'access_denied']);
  assert.equal(world.remoteAdmin.trail.lastRefusal()?.reason, 'disabled');
  world.remoteAdmin.setEnabled(true);
  assert.deepEqual((await world.via('GET', '/ping?n=3')).json, { origin: 'remote_admin', n: 3 });
  const headers = { 'svc-local-aid': world.agentAid };
  const denied = await world.via('GET', '/ping', { headers });
  assert.deepEqual([denied.status, denied.text.replaceAll(world.agentAid, world.nearAid)], [off.status, off.text]);
  assert.match(denied.text, new RegExp(`not allow ${world.agentAid} [^]*svc admin allow ${world.agentAid}\\b`));
  assert.equal(world.remoteAdmin.trail.lastRefusal()?.reason, 'access_denied');
  assert.throws(() => world.lists.setDefault('node', 'public'), { code: 'invalid_request' });
});

test('a remote administrator is never local, and cannot reach a third node', async (t) => {
  const world = await adminWorld(t);
  world.remoteAdmin.setEnabled(true);
  await world.lists.allow('node', { aid: world.nearAid });
  assert.deepEqual(outcome(await world.via('GET', '/secret')), [403, 'local_only']);
  assert.deepEqual(outcome(await world.via('GET', `/via/${world.nearAid}/ping`)), [403, 'local_only']);
  const forged = { host: 'localhost', forwarded: 'for=127.0.0.1', 'x-forwarded-for': '127.0.0.1' };
  assert.deepEqual(outcome(await world.via('GET', '/secret', { headers: forged })), [403, 'local_only']);
  assert.deepEqual(outcome(await world.via('DELETE', `/things/${testAid(1)}`, { body: '{}' })), [
    415,
    'unsupported_media_type',
  ]);
});

test('a local agent can act instead of the node', async (t) => {
  const world = await adminWorld(t);
  world.remoteAdmin.setEnabled(true);
  await world.lists.allow('node', { aid: world.agentAid });
  const as = (aid: string) => world.via('GET', '/ping', { headers: { 'svc-local-aid': aid } });
  assert.equal((await as(world.agentAid)).status, 200);
  assert.deepEqual(outcome(await as(testAid(3))), [404, 'not_found']);
  assert.deepEqual(outcome(await as('aid1x')), [400, 'bad_aid']);
  assert.deepEqual(outcome(await world.via('GET', '/ping')), [403, 'access_denied']);
});

test('a password grants access, is never forwarded, and can be revoked', async (t) => {
  const world = await adminWorld(t);
  world.remoteAdmin.setEnabled(true);
  const entry = await world.lists.allow('node', { secret: 'open sesame' });
  const ask = (password: string) => world.via('GET', '/ping', { headers: { 'svc-access-token': password } });
  assert.deepEqual(outcome(await ask('open barley')), [403, 'access_denied']);
  assert.equal((await ask('open sesame')).status, 200);
  assert.equal(world.far.authorized.at(-1)?.accessToken, 'open sesame');
  assert.ok(!JSON.stringify(world.audit.page(100)).includes('sesame'));
  world.lists.remove('node', 'allow', entry.id);
  await eventually('the connection is closed', () => world.remoteAdmin.sessions === 0);
  assert.deepEqual(outcome(await ask('open sesame')), [403, 'access_denied']);
});

test('a denial aborts running requests immediately, but the request that caused it gets a response', async (t) => {
  const world = await adminWorld(t);
  world.remoteAdmin.setEnabled(true);
  await world.lists.allow('node', { aid: world.nearAid });
  const running = world.via('GET', '/wait');
  running.catch(() => {});
  const context = await eventually('the request is running', () => world.waiting[0]);
  const answer = await world.via('POST', '/node/remote-admin/deny', {
    headers: JSON_HEADERS,
    body: JSON.stringify({ aid: world.nearAid }),
  });
  assert.equal(answer.status, 200);
  assert.deepEqual(outcome(await running), [502, 'connect_failed']);
  await eventually('the handler sees the abort', () => context.signal.aborted);
  await eventually('no connection is left', () => world.remoteAdmin.sessions === 0);
  assert.deepEqual(outcome(await world.via('GET', '/ping')), [403, 'access_denied']);
});

test('switching it off remotely gets a response and takes effect', async (t) => {
  const world = await adminWorld(t);
  world.remoteAdmin.setEnabled(true);
  await world.lists.allow('node', { aid: world.nearAid });
  const answer = await world.via('PATCH', '/node/remote-admin', { headers: JSON_HEADERS, body: '{"enabled":false}' });
  assert.deepEqual([answer.status, (answer.json as { enabled: boolean }).enabled], [200, false]);
  assert.deepEqual(outcome(await world.via('GET', '/ping')), [403, 'access_denied']);
  await eventually('no connection is left', () => world.remoteAdmin.sessions === 0);
});

test('every request is logged, changes before they run, and the log survives a restart', async (t) => {
  const file = `${temporaryDirectory(t)}/svcd.db`;
  const world = await adminWorld(t, file);
  world.remoteAdmin.setEnabled(true);
  await world.lists.allow('node', { aid: world.nearAid });
  await world.via('GET', '/ping?n=1');
  await world.via('DELETE', `/things/${testAid(1)}`, { headers: JSON_HEADERS });
  await world.via('GET', '/nowhere');
  await world.via('GET', '/ping', { headers: { 'svc-local-aid': world.agentAid } });
  const shown = await eventually('the statuses', async () => {
    const audit = (await world.farApi.request('GET', '/node/remote-admin/audit?limit=3')).json as Audit;
    return audit.entries.every((entry) => entry.status !== null || entry.refused !== null) ? audit : undefined;
  });
  const asked = shown.entries.map(({ aid, method, path, status, refused }) => [aid, method, path, status, refused]);
  assert.deepEqual(asked, [
    [world.agentAid, null, null, null, 'access_denied'],
    [world.nearAid, 'GET', '/nowhere', 404, null],
    [world.nearAid, 'DELETE', `/things/${testAid(1)}`, 200, null],
  ]);
  assert.equal(shown.entries[0]?.node_key, Buffer.from(world.near.key.publicKey).toString('hex'));
  const rest = await world.farApi.request('GET', `/node/remote-admin/audit?limit=3&cursor=${shown.next_cursor}`);
  const { entries, next_cursor } = rest.json as Audit;
  assert.deepEqual([entries.map((e) => [e.path, e.status]), next_cursor], [[['/ping', 200]], undefined]);

  const again = await adminWorld(t, file);
  assert.equal(again.remoteAdmin.enabled, true);
  const state = (await again.farApi.request('GET', '/node/remote-admin')).json as Record<string, unknown>;
  assert.deepEqual(state['last_access'], {
    aid: world.nearAid,
    at: (state['last_access'] as { at: string }).at,
    method: 'GET',
    path: '/nowhere',
  });
  assert.equal((state['last_refused'] as { reason: string }).reason, 'access_denied');
  assert.equal(again.audit.page(100).length, 4);
});

test('a request that cannot be logged does not run', async (t) => {
  const world = await adminWorld(t);
  world.remoteAdmin.setEnabled(true);
  await world.lists.allow('node', { aid: world.nearAid });
  t.mock.method(world.audit, 'add', () => {
    throw new Error('the disk is full');
  });
  const answer = await world.via('DELETE', `/things/${testAid(1)}`, { headers: JSON_HEADERS });
  assert.deepEqual(outcome(answer), [500, 'internal']);
  assert.deepEqual(world.changed, []);
});

test('responses of a hostile node cannot affect the origin of this API', async (t) => {
  const world = await adminWorld(t);
  const seen: unknown[] = [];
  const hostile = createServer((request, response) => {
    seen.push(request.headers);
    response.setHeader('set-cookie', 'a=b');
    response.setHeader('access-control-allow-origin', '*');
    response.setHeader('content-type', 'text/html');
    response.writeHead(307, { location: 'http://localhost/identity/generate' });
    response.end('<script>alert(1)</script>');
  });
  // A third node with its own HTTP server behind its links.
  const evil = world.far.host();
  world.far.authorize = () => {};
  t.mock.method(world.remoteAdmin, 'accept', (link: import('node:stream').Duplex) => hostile.emit('connection', link));
  const headers = {
    authorization: 'Bearer near-token',
    cookie: 'panel=1',
    'svc-access-token': 'pw',
    origin: world.api.url,
  };
  const answer = await world.api.request('GET', `/via/${evil.aid}/status`, { headers });
  assert.equal(answer.status, 307);
  assert.equal(answer.headers.location, `/via/${evil.aid}/identity/generate`);
  assert.match(answer.headers['content-security-policy'] as string, /^sandbox;/);
  assert.equal(answer.headers['x-content-type-options'], 'nosniff');
  assert.deepEqual(
    [answer.headers['set-cookie'], answer.headers['access-control-allow-origin']],
    [undefined, undefined],
  );
  const got = JSON.stringify(seen);
  assert.ok(!got.includes('near-token') && !got.includes('panel') && !got.includes('"pw"'), got);
});

test("only local programs can use other nodes' APIs", async (t) => {
  const world = await adminWorld(t);
  for (const headers of [{ origin: 'null' }, { 'sec-fetch-site': 'cross-site' }, { host: 'evil.example' }] as const)
    assert.equal((await world.via('GET', '/ping', { headers: { ...headers } })).status, 403);
  assert.equal(world.far.authorized.length, 0);
});

test('a connection without a complete request times out', async (t) => {
  const world = await adminWorld(t);
  world.remoteAdmin.setEnabled(true);
  await world.lists.allow('node', { aid: world.nearAid });
  const link = await world.near.links.open(world.nearAid, world.farAid, 'admin');
  link.on('error', () => {});
  link.write('garbage that is not HTTP\r\n\r\n');
  link.resume();
  await once(link, 'end');
  await eventually('no connection is left', () => world.remoteAdmin.sessions === 0);
});
