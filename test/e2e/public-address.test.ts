/** Callers without svcd reach an agent through the entry of another node, with the commands of the guide. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { connect as connectHttp2 } from 'node:http2';
import { request as requestHttps } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { connect as connectTls } from 'node:tls';
import { SendMessageRequest } from '@a2a-js/sdk';
import { ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory } from '@a2a-js/sdk/client';
import { selfSigned } from '../../src/foundation/certificate.ts';
import { A2aAgent } from '../support/a2a-agent.ts';
import { runSvc } from '../support/cli-run.ts';
import { TestDaemon } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { ready } from '../support/network.ts';
import { quietPort } from '../support/programs.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const HOST = 'demo.vps.test';

/** A web service that answers with the caller and the size of the body, and streams events at `/events`. */
async function service(t: TestContext): Promise<string> {
  const server = createServer((request, response) => {
    if (request.url === '/events') {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n');
      return;
    }
    let size = 0;
    request.on('data', (chunk: Buffer) => {
      size += chunk.length;
    });
    const { 'svc-caller': caller, 'svc-client': client, forwarded } = request.headers;
    request.on('end', () => response.end(JSON.stringify({ caller, client, forwarded, size })));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => (server.closeAllConnections(), server.close()));
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** An entry, and the node of an agent with a certificate for `HOST`. */
async function nodes(t: TestContext) {
  const folder = temporaryDirectory(t);
  const port = await quietPort();
  const own = selfSigned(HOST, HOST);
  const [cert, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')];
  writeFileSync(cert, own.cert);
  writeFileSync(key, own.key);
  const entry = await TestDaemon.start({
    config: `public_names = ["vps.test"]\ntls_listen = "127.0.0.1:${port}"\n`,
  });
  const home = await TestDaemon.start({
    bootstrap: [entry.dhtAddress],
    config: `public_cert = ${JSON.stringify(cert)}\npublic_key = ${JSON.stringify(key)}\n`,
  });
  t.after(() => Promise.all([home.stop(), entry.stop()]));
  await Promise.all([ready(entry), ready(home)]);
  const svc = (...args: readonly string[]) => runSvc([...args], { env: { SVC_API: home.api } });
  const invite = async () => {
    const invited = await runSvc(['--quiet', 'invite', '--public'], { env: { SVC_API: entry.api } });
    const joined = await svc('join', invited.stdout.trim());
    assert.equal(joined.code, 0, joined.stderr);
  };
  const tls = { host: '127.0.0.1', port, servername: HOST, ca: own.cert };
  return { entry, home, svc, invite, tls };
}

test('curl-like clients reach an agent through an entry that reads nothing', async (t) => {
  const { entry, home, svc, invite, tls } = await nodes(t);
  const aid = await home.newAgent(await service(t));
  const { node_aid: node } = await entry.call<{ node_aid: string }>('GET', '/status');

  const refused = await svc('expose', aid, '--name', 'demo', '--at', node);
  assert.match(refused.stderr, /no entry, or gives this agent no public name/);
  await invite();
  const exposed = await svc('--json', 'expose', aid, '--name', 'demo');
  assert.equal(exposed.code, 0, exposed.stderr);
  const { id, url, token, state } = JSON.parse(exposed.stdout);
  assert.deepEqual([url, state], [`https://${HOST}`, 'serves']);

  const options = { ...tls, agent: false, headers: { host: HOST, authorization: `Bearer ${token}` } } as const;
  const ask = async (body: Buffer) => {
    const request = requestHttps({ ...options, method: 'POST' });
    request.on('error', () => {});
    request.end(body);
    const [response] = await once(request, 'response');
    return { status: response.statusCode, body: (await buffer(response)).toString() };
  };
  const { body } = await ask(randomBytes(3_000_000));
  const { forwarded, ...seen } = JSON.parse(body);
  assert.deepEqual(seen, { caller: 'public', client: 'first', size: 3_000_000 });
  assert.match(forwarded, /for="127\.0\.0\.1:\d+";host=demo\.vps\.test;proto=https/);

  const session = connectHttp2(url, { createConnection: () => connectTls({ ...tls, ALPNProtocols: ['h2'] }) });
  session.on('error', () => {});
  t.after(() => session.destroy());
  const events = session.request({ ':path': '/events', authorization: `Bearer ${token}` });
  events.on('error', () => {});
  assert.equal(String((await once(events, 'data'))[0]), 'data: 1\n\n');
  const denied = session.request({ ':path': '/' });
  denied.on('error', () => {});
  assert.equal((await once(denied, 'response'))[0][':status'], 401);

  const list = await svc('expose', 'list');
  assert.match(list.stdout, /https:\/\/demo\.vps\.test .*requests with a token +first +2 +1 +serves/);
  const closed = new Promise((resolve) => events.once('close', resolve));
  assert.equal((await svc('expose', 'token', 'rm', id, 'first')).code, 0);
  await closed;
  assert.equal((await ask(Buffer.alloc(0))).status, 401);
  assert.equal((await svc('expose', 'off', id)).code, 0);
  await eventually('the entry closes connections for the name', () =>
    ask(Buffer.alloc(0)).then(
      () => false,
      () => true,
    ),
  );
});

test('the official A2A client calls an agent by its public card, also with streaming', async (t) => {
  const { home, svc, invite, tls } = await nodes(t);
  const agent = await A2aAgent.start();
  t.after(() => agent.stop());
  const aid = await home.newAgent(`127.0.0.1:${agent.port}`);
  await invite();
  const exposed = await svc('expose', aid, '--name', 'demo', '--public', '--yes');
  assert.equal(exposed.code, 0, exposed.stderr);
  const called: string[] = [];
  /** Connects to the entry in place of a DNS lookup. */
  const fetchImpl: typeof fetch = async (input, init) => {
    const url = new URL(input instanceof Request ? input.url : input);
    called.push(url.origin);
    const headers = { ...Object.fromEntries(new Headers(init?.headers)), host: url.host };
    const path = url.pathname + url.search;
    const request = requestHttps({ ...tls, agent: false, path, method: init?.method ?? 'GET', headers });
    request.end(init?.body);
    const [response] = await once(request, 'response');
    return new Response(Readable.toWeb(response) as ReadableStream, {
      status: response.statusCode,
      headers: { 'content-type': response.headers['content-type'] ?? '' },
    });
  };
  const client = await new ClientFactory({
    cardResolver: new DefaultAgentCardResolver({ fetchImpl }),
    transports: [new JsonRpcTransportFactory({ fetchImpl })],
  }).createFromUrl(`https://${HOST}`);
  const send = (text: string) =>
    SendMessageRequest.fromJSON({ message: { messageId: text, role: 'ROLE_USER', parts: [{ text }] } });
  const answer = await client.sendMessage(send('hello'));
  assert.match(JSON.stringify(answer), /echo: hello/);
  const events: string[] = [];
  for await (const event of client.sendMessageStream(send('stream on'))) events.push(JSON.stringify(event));
  assert.match(events.join(), /echo: stream on/);
  assert.deepEqual([...new Set(called)], [`https://${HOST}`]);
});
