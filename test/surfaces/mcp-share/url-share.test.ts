import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type Server } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { after, before, describe, type TestContext, test } from 'node:test';
import { type Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { callerProof } from '../../../src/capabilities/calls/caller-proof.ts';
import { systemClock, unixSeconds } from '../../../src/foundation/clock.ts';
import { parseAid } from '../../../src/foundation/identity/aid.ts';
import { Gate, ToolRules } from '../../../src/surfaces/mcp-share/gate.ts';
import { open } from '../../../src/surfaces/mcp-share/open.ts';
import { UrlShare } from '../../../src/surfaces/mcp-share/url-share.ts';
import { eventually } from '../../support/eventually.ts';
import {
  AGENT,
  ALICE,
  callOf,
  connected,
  countedBy,
  everything,
  FIXTURE,
  LEGACY,
  MALLORY,
  MODERN,
} from '../../support/shared-mcp.ts';

async function portOf(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  assert.ok(typeof address === 'object' && address !== null);
  return address.port;
}

/** The status of a GET request for a path as it is. */
async function statusOf(gate: Gate, path: string): Promise<number | undefined> {
  const [host, port] = gate.address.split(':');
  const at = unixSeconds(systemClock);
  const caller = parseAid(ALICE);
  const proof = callerProof(AGENT.key, { caller, called: AGENT.aid, method: 'GET', target: path, at });
  const headers = { 'svc-caller-aid': caller, 'svc-local-aid': AGENT.aid, 'svc-caller-proof': proof };
  const sent = request({ host, port, path, headers, agent: false }).end();
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  response.resume();
  return response.statusCode;
}

/** Returns a free port. */
async function freePort(): Promise<number> {
  const server = createServer();
  const port = await portOf(server);
  server.close();
  return port;
}

function textOf(result: unknown): string {
  const { content } = result as { content: { text: string }[] };
  return content[0]?.text ?? '';
}

describe('a shared server at a URL', () => {
  let server: ChildProcess;
  let url: URL;

  before(async () => {
    const port = await freePort();
    server = spawn(process.execPath, [FIXTURE, String(port)], { stdio: 'inherit' });
    url = new URL(`http://127.0.0.1:${port}/some/path`);
    await eventually('it listens', async () =>
      fetch(url).then(
        () => true,
        () => false,
      ),
    );
  });
  after(() => server.kill('SIGKILL'));

  async function share(
    t: TestContext,
    at: URL,
    lists: ReadonlyMap<string, ReadonlySet<string>> = new Map(),
  ): Promise<Gate> {
    const { begin } = await open(at, { environment: {}, log: () => {}, lists, clock: systemClock });
    const gate = await begin(AGENT);
    t.after(() => gate.close());
    return gate;
  }

  async function client(t: TestContext, at: URL, revision: string, caller?: string): Promise<Client> {
    const options = caller === undefined ? {} : { fetch: callOf(caller) };
    const made = await connected(new StreamableHTTPClientTransport(at, options), revision);
    t.after(() => made.close());
    return made;
  }

  for (const revision of [LEGACY, MODERN]) {
    test(`${revision}: a client sees the same through the share as directly`, async (t) => {
      const gate = await share(t, url);
      const through = await everything(await client(t, new URL(`http://${gate.address}/mcp`), revision, ALICE));
      assert.deepEqual(through, await everything(await client(t, url, revision)));
    });

    test(`${revision}: one caller has limited tools, another has all, and each request names the caller`, async (t) => {
      const gate = await share(t, url, new Map([[ALICE, new Set(['echo', 'count'])]]));
      const at = new URL(`http://${gate.address}/mcp`);
      const [alice, other] = [await client(t, at, revision, ALICE), await client(t, at, revision, MALLORY)];
      assert.deepEqual(
        (await alice.listTools()).tools.map(({ name }) => name),
        ['echo', 'count'],
      );
      const { answer, progress } = await countedBy(alice);
      assert.deepEqual([textOf(answer), progress.length], ['3', 3]);
      await assert.rejects(alice.callTool({ name: 'who' }), { code: -32602 });
      const output = JSON.parse(textOf(await other.callTool({ name: 'who', _meta: { 'svcd/caller': ALICE } })));
      assert.equal(output.meta['svcd/caller'], MALLORY);
    });
  }

  test('only the server and its metadata are reachable', async (t) => {
    const gate = await share(t, url);
    for (const path of ['/', '/some/path', '/mcp/', '/admin', '/mcp/../admin', '//evil/mcp'])
      assert.equal((await callOf(ALICE)(`http://${gate.address}${path}`)).status, 404, path);
  });

  test('metadata paths lead nowhere else', async (t) => {
    const paths: unknown[] = [];
    const server = createServer((request, response) => {
      paths.push(request.url);
      response.setHeader('content-type', 'application/json');
      response.end('{}');
    });
    const at = new URL(`http://127.0.0.1:${await portOf(server)}/mcp`);
    t.after(() => server.close());
    const gate = await Gate.open({
      agent: AGENT,
      backend: new UrlShare(at, new ToolRules(new Map())),
      clock: systemClock,
      log: () => {},
    });
    t.after(() => gate.close());
    const metadata = '/.well-known/oauth-protected-resource';
    for (const rest of ['/../../admin', '/%2e%2e/%2E./admin', '/..\\..\\admin', '/.%2e/../admin', '/./mcp'])
      assert.equal(await statusOf(gate, `${metadata}${rest}`), 404, rest);
    assert.equal(await statusOf(gate, `${metadata}/mcp`), 200);
    assert.deepEqual(paths, [`${metadata}/mcp`]);
  });

  test('an unreachable server has a clear error', async (t) => {
    const dead = new URL(`http://127.0.0.1:${await freePort()}/mcp`);
    await assert.rejects(share(t, dead), { code: 'connect_failed', message: /svc mcp share takes the whole address/ });
  });
});

test('a caller with limited tools sends nothing that the server could read as another tool or caller', async (t) => {
  const received: { readonly headers: string; readonly body: string }[] = [];
  const server = createServer((request, response) => {
    void buffer(request).then((body) => {
      received.push({ headers: JSON.stringify(request.headers), body: body.toString() });
      response.writeHead(202).end();
    });
  });
  const url = new URL(`http://127.0.0.1:${await portOf(server)}/mcp`);
  t.after(() => server.close());
  const backend = new UrlShare(url, new ToolRules(new Map([[ALICE, new Set(['read'])]])));
  const gate = await Gate.open({ agent: AGENT, backend, clock: systemClock, log: () => {} });
  t.after(() => gate.close());
  const json = { 'content-type': 'application/json' };
  const call = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read"}}';
  const post = async (body: string | Uint8Array<ArrayBuffer>, more: Readonly<Record<string, string>> = {}) =>
    await callOf(ALICE)(`http://${gate.address}/mcp`, { method: 'POST', headers: { ...json, ...more }, body });
  const refused: readonly (readonly [string | Uint8Array<ArrayBuffer>, Readonly<Record<string, string>>?])[] = [
    [call.replace('"read"', '"read","Name":"delete"')],
    [call.replace('"read"', '"read","\\u004eame":"delete"')],
    [call.replace('"read"', '"read","name":"read"')],
    [call.replace('"read"', '"read","_META":{"svcd/caller":"x"}')],
    [call.replace('"read"', '"read","_meta":{"\u017Fvcd/caller":"x"}')],
    [call.replace('{"name"', '{"name":"delete","name"')],
    [`\uFEFF${call}`],
    [`${call}${call}`],
    [`[${call}]`],
    [new Uint8Array(Buffer.from(call, 'utf16le'))],
    [call, { 'content-type': 'application/json; charset=utf-7' }],
    [call, { 'content-encoding': 'deflate' }],
  ];
  for (const [body, more] of refused) {
    const { status } = await post(body, more);
    assert.ok(status === 400 || status === 415, `${status} ${String(body)}`);
  }
  for (const more of [{ 'mcp-name': 'delete' }, { 'mcp-method': 'tools/list' }])
    assert.match(await (await post(call, more)).text(), /-32602/);
  for (const method of ['Tools/Call', 'tools/\\u0043all', 'tool\u017F/call'])
    assert.match(await (await post(call.replace('tools/call', method))).text(), /-32602/);
  assert.equal(
    (await callOf(ALICE)(`http://${gate.address}/mcp`, { method: 'PUT', headers: json, body: call })).status,
    405,
  );
  const routed = { 'mcp-method': 'tools/call', 'mcp-name': 'delete' };
  assert.equal((await callOf(ALICE)(`http://${gate.address}/mcp`, { headers: routed })).status, 400);
  assert.equal(received.length, 0);
  const spaced = call.replace('"id":1', '"id" : 1');
  assert.equal((await post(spaced, { 'x-http-method-override': 'PUT', 'content-language': 'x' })).status, 202);
  const meta = `{"name":"read","_meta":{"svcd/caller":"${ALICE}"}}`;
  assert.equal(received[0]?.body, call.replace('{"name":"read"}', meta));
  assert.doesNotMatch(received[0]?.headers ?? '', /override|content-language/);
  assert.match(received[0]?.headers ?? '', new RegExp(`"svc-caller-aid":"${ALICE}"`));
});

describe('a shared server that requires authorization', () => {
  test("the challenge and the metadata have the caller's URL, and the token passes", async (t) => {
    let seen: IncomingMessage | undefined;
    let own = '';
    const server = createServer((request, response) => {
      seen = request;
      if (request.url === '/.well-known/oauth-protected-resource/own/mcp') {
        response.setHeader('content-type', 'application/json');
        const metadata = { resource: `${own}/own/mcp`, authorization_servers: ['https://login.example.org/', own] };
        return void response.end(JSON.stringify(metadata));
      }
      const challenge = `Bearer realm="x", resource_metadata="${own}/.well-known/oauth-protected-resource/own/mcp"`;
      if (request.headers.authorization === undefined)
        return void response.writeHead(401, { 'www-authenticate': challenge }).end();
      response.writeHead(202).end();
    });
    own = `http://127.0.0.1:${await portOf(server)}`;
    t.after(() => server.close());
    const { begin, seen: looked } = await open(new URL(`${own}/own/mcp`), {
      environment: {},
      log: () => {},
      lists: new Map(),
      clock: systemClock,
    });
    assert.equal(looked.title, null);
    const gate = await begin(AGENT);
    t.after(() => gate.close());
    const at = `http://${gate.address}`;
    const headers = { 'content-type': 'application/json' };
    const body = '{"jsonrpc":"2.0","method":"notifications/initialized"}';
    const refused = await callOf(ALICE)(`${at}/mcp`, { method: 'POST', headers, body });
    assert.equal(refused.status, 401);
    const metadataAt = `${at}/.well-known/oauth-protected-resource/mcp`;
    assert.equal(refused.headers.get('www-authenticate'), `Bearer realm="x", resource_metadata="${metadataAt}"`);
    const metadata = await (await callOf(ALICE)(metadataAt)).json();
    assert.deepEqual(metadata, {
      resource: `${at}/mcp`,
      authorization_servers: ['https://login.example.org/', `${at}/`],
    });
    const authorization = 'Bearer a-token';
    const taken = await callOf(ALICE)(`${at}/mcp`, { method: 'POST', headers: { ...headers, authorization }, body });
    assert.equal(taken.status, 202);
    assert.equal(seen?.headers.authorization, authorization);
    assert.equal(seen?.headers['svc-caller-aid'], ALICE);
    assert.equal(seen?.headers['svc-caller-proof'], undefined);
  });
});
