import assert from 'node:assert/strict';
import { test } from 'node:test';
import { svc, svcJson, svcOk } from '../support/cli.ts';
import { TestDaemon } from '../support/daemon.ts';
import { type Echo, EchoService } from '../support/echo-service.ts';
import { eventually } from '../support/eventually.ts';
import { TestNetwork } from '../support/network.ts';
import { chatService } from '../support/web-socket-service.ts';

interface Status {
  readonly node_aid: string;
  readonly node_published: boolean;
}

async function publishedNode(daemon: TestDaemon): Promise<string> {
  const status = await eventually('the node is published', async () => {
    const now = await daemon.call<Status>('GET', '/status');
    return now.node_published ? now : undefined;
  });
  return status.node_aid;
}

test('an allowed machine administers a node remotely, within the limits of its owner', async () => {
  await using network = await TestNetwork.start(2);
  const [here, there] = [network.at(0), network.at(1)];
  const [mine, theirs] = [await publishedNode(here), await publishedNode(there)];
  await svcOk(here, 'alias', 'add', 'server', theirs);
  await svcOk(there, 'alias', 'add', 'laptop', mine);

  // Disabled and an empty list: every request is refused.
  assert.equal((await svc(here, ['--via', 'server', 'status'])).code, 4);
  const on = await svc(there, ['admin', 'on']);
  assert.match(on.stderr, /No one is allowed yet/);
  assert.equal((await svc(here, ['--via', 'server', 'status'])).code, 4);
  const entry = await svcOk(there, 'admin', 'allow', 'laptop', '--label', 'my laptop', '--expires', '12h', '--quiet');

  assert.equal(await svcOk(here, '--via', 'server', 'status', '--quiet'), theirs);
  const registered = await svcJson<{ aid: string; master_private_key_hex: string }>(
    here,
    ...['--via', 'server', 'register', '--no-publish'],
  );
  assert.deepEqual(await svcOk(there, 'agents', '--quiet'), registered.aid);
  assert.equal(await svcOk(here, 'agents', '--quiet'), '');
  const exported = await svc(here, ['--via', 'server', 'agents', 'export', registered.aid]);
  assert.equal(exported.code, 4);
  assert.match(exported.stderr, /same machine/);
  await svcOk(here, '--via', 'server', 'config', 'set', 'log_level', 'debug');
  assert.equal(await svcOk(there, 'config', 'get', 'log_level'), 'debug');

  // Tools too, in both directions: their arguments are not logged.
  const params = { name: 'svc_agent_probe', arguments: { aid: registered.aid } };
  await here.call('POST', `/via/${theirs}/mcp/call`, { tool: 'svc_agent_get', args: { aid: registered.aid } });
  const rpc = await here.request(
    ...(['POST', `/via/${theirs}/mcp/`, { jsonrpc: '2.0', id: 1, method: 'tools/call', params }] as const),
    { accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2025-11-25' },
  );
  assert.match(JSON.stringify(rpc.body), /service_tcp_ok/);
  // The outcome of a request is logged after the response was sent.
  const asked = await eventually('the outcome of the last request', async () => {
    const audit = await svcOk(there, 'admin', 'audit');
    return /svc_agent_probe +200/.test(audit) && audit;
  });
  assert.match(asked, /laptop .*POST +\/mcp\/call svc_agent_get +200/);
  assert.match(asked, /POST +\/mcp\/ svc_agent_probe +200/);
  for (const line of asked.split('\n')) assert.ok(!/svc_agent/.test(line) || !line.includes(registered.aid));

  // The log of requests survives a restart and does not contain the path of the keys.
  const audit = await svcOk(there, '--full', 'admin', 'audit');
  assert.match(audit, new RegExp(`${mine} .*PATCH +/config +200`));
  assert.match(audit, new RegExp(`${mine} .*POST +/agents +200`));
  assert.match(audit, /refused +disabled/);
  assert.doesNotMatch(audit, /identity\/generate/);
  assert.match(await svcOk(there, 'admin', 'status'), /my laptop/);

  // Removing the entry applies immediately.
  await svcOk(there, 'admin', 'del', 'allow', entry, '-y');
  assert.equal((await svc(here, ['--via', 'server', 'status'])).code, 4);

  // By password, which is invalid after a change.
  assert.equal((await svc(there, ['admin', 'password'], 'correct horse\n')).code, 0);
  const ask = async (password: string): Promise<number | null> =>
    (await svc(here, ['--via', 'server', '--via-password', 'status'], `${password}\n`)).code;
  assert.equal(await ask('battery staple'), 4);
  assert.equal(await ask('correct horse'), 0);
  assert.equal((await svc(there, ['admin', 'password'], 'battery staple\n')).code, 0);
  assert.equal(await ask('correct horse'), 4);
  assert.equal(await ask('battery staple'), 0);
  await svcOk(there, 'admin', 'password', 'off');
  assert.equal(await ask('battery staple'), 4);
});

test('the audit log survives a restart of the daemon', async () => {
  await using network = await TestNetwork.start(2);
  const [here, there] = [network.at(0), network.at(1)];
  const [mine, theirs] = [await publishedNode(here), await publishedNode(there)];
  await there.call('PATCH', '/node/remote-admin', { enabled: true });
  await there.call('POST', '/node/remote-admin/allow', { aid: mine });
  await svcOk(here, '--via', theirs, 'alias', 'add', 'me', mine);
  await there.kill('SIGKILL');
  await using again = await TestDaemon.start({ dataDir: there.dataDir, bootstrap: [here.dhtAddress] });
  const state = await again.call<{ enabled: boolean; last_access: { method: string; path: string } }>(
    'GET',
    '/node/remote-admin',
  );
  assert.deepEqual(
    [state.enabled, state.last_access.method, state.last_access.path],
    [true, 'PUT', '/node/address-book'],
  );
  assert.match(await svcOk(again, 'alias', 'list'), /me/);
});

test('the gateway between real daemons: HTTP, a chat service, and an access list that denies', async (t) => {
  await using network = await TestNetwork.start(2);
  await using echo = await EchoService.start();
  const [here, there] = [network.at(0), network.at(1)];
  const mine = await publishedNode(here);
  const chat = await chatService(t);
  const [web, talk] = [
    await there.newAgent(echo.address),
    await there.newAgent(`${chat.bound.host}:${chat.bound.port}`),
  ];
  for (const aid of [web, talk]) await there.call('POST', `/agents/${aid}/publish`);

  const response = await fetch(`${here.api}/aid/${web}?a=1`, { headers: { authorization: 'Bearer x', cookie: 'a=b' } });
  assert.equal(response.status, 200);
  assert.equal(new URL(response.url).pathname, `/aid/${web}/`);
  assert.match(response.headers.get('content-security-policy') ?? '', /^sandbox/);
  const seen = (await response.json()) as Echo;
  assert.equal(seen.headers['svc-caller-aid'], mine);
  assert.deepEqual([seen.url, seen.headers.authorization, seen.headers.cookie], ['/?a=1', undefined, undefined]);

  const socket = new WebSocket(`${here.api.replace('http', 'ws')}/aid/${talk}/chat`);
  const heard: string[] = [];
  socket.addEventListener('message', ({ data }) => heard.push(String(data)));
  socket.addEventListener('error', () => {});
  const closed = new Promise((resolve) => socket.addEventListener('close', resolve));
  await eventually('the welcome', () => heard.includes('welcome'));
  socket.send('hello');
  await eventually('the echo', () => heard.includes('hello'));

  await svcOk(there, 'agents', 'acl', 'default', talk, 'deny');
  await closed;
  assert.equal((await fetch(`${here.api}/aid/${talk}/`)).status, 403);
  const entry = await svcOk(there, 'agents', 'acl', 'allow', talk, '--aid', mine, '--quiet');
  assert.equal((await fetch(`${here.api}/aid/${talk}/`)).status, 200);
  await svcOk(there, 'agents', 'acl', 'del', talk, 'allow', entry, '-y');
  assert.equal((await fetch(`${here.api}/aid/${talk}/`)).status, 403);
  const secret = await svcOk(there, 'agents', 'acl', 'allow', talk, '--generate', '--quiet');
  assert.match(secret, /^svcs_/);
  assert.match(await svcOk(there, 'agents', 'acl', 'show', talk), /Only allowed callers/);
  await svcOk(here, 'alias', 'add', 'Talk Show', talk);
  assert.equal(await svcOk(here, 'get', 'talk show', '/', '--access-token', secret), 'this is a chat');
  assert.equal((await svc(here, ['get', 'nobody', '/'])).code, 2);
});
