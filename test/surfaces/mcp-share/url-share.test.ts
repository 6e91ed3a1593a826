import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { after, before, describe, type TestContext, test } from 'node:test';
import { type Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { systemClock } from '../../../src/foundation/clock.ts';
import type { Gate } from '../../../src/surfaces/mcp-share/gate.ts';
import { open } from '../../../src/surfaces/mcp-share/open.ts';
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
      const said = JSON.parse(textOf(await other.callTool({ name: 'who', _meta: { 'svcd/caller': ALICE } })));
      assert.equal(said.meta['svcd/caller'], MALLORY);
    });
  }

  test('only the server and its metadata are reachable', async (t) => {
    const gate = await share(t, url);
    for (const path of ['/', '/some/path', '/mcp/', '/admin', '/mcp/../admin', '//evil/mcp'])
      assert.equal((await callOf(ALICE)(`http://${gate.address}${path}`)).status, 404, path);
  });

  test('an unreachable server has a clear error', async (t) => {
    const dead = new URL(`http://127.0.0.1:${await freePort()}/mcp`);
    await assert.rejects(share(t, dead), { code: 'connect_failed', message: /svc mcp share takes the whole address/ });
  });
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
