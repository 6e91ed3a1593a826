/**
 * An MCP server for a friend: `svc mcp share` at one daemon, `svc mcp use` at another, and the official client at both
 * ends.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, type TestContext, test } from 'node:test';
import { type Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { svc, svcJson, svcOk } from '../support/cli.ts';
import { TestDaemon } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { ready } from '../support/network.ts';
import { quietPort } from '../support/programs.ts';
import { ShareCommand, type SharedServer } from '../support/share-command.ts';
import { connected, everything, FIXTURE, LEGACY, MODERN } from '../support/shared-mcp.ts';

function textOf(result: unknown): string {
  const { content } = result as { content: { text: string }[] };
  return content[0]?.text ?? '';
}

describe('an MCP server for a friend', () => {
  let home: TestDaemon;
  let friend: TestDaemon;
  let other: TestDaemon;
  let share: ShareCommand;
  let reported: SharedServer;
  let me: string;
  let stranger: string;
  const [homeDir, friendDir] = ['home', 'friend'].map((name) => mkdtempSync(join(tmpdir(), `svcd-mcp-${name}-`)));

  before(async () => {
    // The daemons restart at these ports, so no other process may get them meanwhile.
    const args = async () => ['--api-addr', `127.0.0.1:${await quietPort()}`];
    home = await TestDaemon.start({ dataDir: homeDir ?? '', args: await args() });
    const bootstrap = [home.dhtAddress];
    friend = await TestDaemon.start({ dataDir: friendDir ?? '', bootstrap, args: await args() });
    other = await TestDaemon.start({ bootstrap: [home.dhtAddress] });
    await Promise.all([home, friend, other].map((daemon) => ready(daemon)));
    me = await friend.newAgent();
    stranger = await other.newAgent();
    share = new ShareCommand(
      home,
      '--name',
      'notes',
      '--allow',
      me,
      '--save-master',
      join(homeDir ?? '', 'k'),
      '--',
      process.execPath,
      FIXTURE,
    );
    reported = await share.reported();
  });
  after(async () => {
    await share.end('SIGTERM');
    await Promise.all([home, friend, other].map((daemon) => daemon.stop()));
    for (const dir of [homeDir, friendDir]) rmSync(dir ?? '', { recursive: true, force: true });
  });

  /** As an MCP client would start it. */
  async function overStdio(t: TestContext, revision: string): Promise<Client> {
    const transport = new StdioClientTransport({
      command: process.execPath,
      args: ['bin/svc', 'mcp', 'use', reported.aid, '--stdio'],
      env: { ...process.env, SVC_API: friend.api },
    });
    const client = await connected(transport, revision);
    t.after(() => client.close());
    return client;
  }

  async function overHttp(t: TestContext, revision: string): Promise<Client> {
    const url = await svcOk(friend, '--quiet', 'mcp', 'use', reported.aid);
    const client = await connected(new StreamableHTTPClientTransport(new URL(url)), revision);
    t.after(() => client.close());
    return client;
  }

  async function direct(t: TestContext, revision: string): Promise<Client> {
    const transport = new StdioClientTransport({ command: process.execPath, args: [FIXTURE], stderr: 'ignore' });
    const client = await connected(transport, revision);
    t.after(() => client.close());
    return client;
  }

  test('the output of the command', async () => {
    assert.ok(reported.tools.includes('echo'));
    assert.deepEqual(reported.allowed, [me]);
    assert.match(reported.service_tcp, /^http\+proven:\/\/127\.0\.0\.1:\d+$/);
    const { default: policy } = await home.call<{ default: string }>('GET', `/agents/${reported.aid}/acl`);
    assert.equal(policy, 'deny');
    const seen = await svcJson<{ url: string; server: string; tools: string[] }>(friend, 'mcp', 'use', reported.aid);
    assert.equal(seen.server, 'Fixture');
    assert.deepEqual(seen.tools, reported.tools);
  });

  for (const revision of [LEGACY, MODERN])
    test(`${revision}: over stdio and over HTTP, results equal the direct results`, async (t) => {
      const expected = await everything(await direct(t, revision));
      assert.deepEqual(await everything(await overStdio(t, revision)), expected);
      assert.deepEqual(await everything(await overHttp(t, revision)), expected);
    });

  test("the server receives the caller's AID, and other callers are refused", async (t) => {
    const client = await overStdio(t, MODERN);
    const output = JSON.parse(textOf(await client.callTool({ name: 'who', _meta: { 'svcd/caller': stranger } })));
    assert.equal(output.env, me);
    assert.equal(output.meta['svcd/caller'], me);
    const refused = await svc(other, ['mcp', 'use', reported.aid]);
    assert.equal(refused.code, 4, refused.stderr);
  });

  test('the server is added to the configuration of a client, which starts it', async (t) => {
    const name = mkdtempSync(join(tmpdir(), 'svcd-mcp-host-'));
    t.after(() => rmSync(name, { recursive: true }));
    process.env['HOME'] = name;
    await svcOk(friend, 'mcp', 'use', reported.aid, '--into', 'cursor', '--name', 'my friend');
    const { mcpServers } = JSON.parse(readFileSync(join(name, '.cursor', 'mcp.json'), 'utf8'));
    const { command, args } = mcpServers['my-friend'];
    const client = await connected(new StdioClientTransport({ command, args, env: {} }), LEGACY);
    t.after(() => client.close());
    assert.equal(textOf(await client.callTool({ name: 'echo', arguments: {} })), '{}');
  });

  for (const [which, revision] of [
    ['home', LEGACY],
    ['friend', LEGACY],
    ['home', MODERN],
    ['friend', MODERN],
  ] as const)
    test(`${revision}: a session survives SIGKILL of the daemon ${which === 'home' ? 'at the server' : 'at the caller'}`, async (t) => {
      const client = await overStdio(t, revision);
      assert.equal(textOf(await client.callTool({ name: 'echo', arguments: { before: 1 } })), '{"before":1}');
      const killed = which === 'home' ? home : friend;
      const api = new URL(killed.api).host;
      await killed.kill('SIGKILL');
      const bootstrap = which === 'home' ? [friend.dhtAddress] : [home.dhtAddress];
      const args = ['--api-addr', api];
      const again = await TestDaemon.start({ dataDir: killed.dataDir, bootstrap, args });
      if (which === 'home') home = again;
      else friend = again;
      await eventually('calls succeed again', async () => {
        const result = await client.callTool({ name: 'echo', arguments: { after: 1 } }).catch(() => null);
        return result !== null && textOf(result) === '{"after":1}';
      });
    });

  for (const which of ['friend', 'home'] as const)
    test(`a pending call is answered although the daemon of ${which} is killed meanwhile`, async (t) => {
      const client = await overStdio(t, LEGACY);
      const file = join(mkdtempSync(join(tmpdir(), 'svcd-mcp-until-')), 'over');
      // After the first part of the answer, the stream can be resumed.
      const begun = Promise.withResolvers<void>();
      const answer = client.callTool({ name: 'until', arguments: { file } }, { onprogress: () => begun.resolve() });
      await begun.promise;
      const killed = which === 'home' ? home : friend;
      await killed.kill('SIGKILL');
      const bootstrap = [(which === 'home' ? friend : home).dhtAddress];
      const args = ['--api-addr', new URL(killed.api).host];
      const again = await TestDaemon.start({ dataDir: killed.dataDir, bootstrap, args });
      if (which === 'home') home = again;
      else friend = again;
      writeFileSync(file, '');
      assert.equal(textOf(await answer), 'it is there');
      rmSync(dirname(file), { recursive: true });
    });

  test('after the command is killed, a program that takes its port receives no call', async (t) => {
    const client = await overHttp(t, MODERN);
    assert.equal(textOf(await client.callTool({ name: 'echo', arguments: { before: 1 } })), '{"before":1}');
    const port = Number(new URL(reported.service_tcp).port);
    await share.end('SIGKILL');
    const heard: string[] = [];
    const impostor = createServer((socket) => {
      socket
        .on('error', () => {})
        .on('data', (chunk: Buffer) => {
          heard.push(chunk.toString('latin1'));
          socket.write('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}');
        });
    });
    t.after(() => impostor.close());
    await eventually('the program has the port', async () => {
      impostor.listen(port, '127.0.0.1');
      return once(impostor, 'listening').then(
        () => true,
        () => false,
      );
    });
    await assert.rejects(client.callTool({ name: 'echo', arguments: { secret: 'sesame' } }));
    await eventually('the program received a request', () => heard.length > 0);
    for (const one of heard)
      assert.match(one, /^OPTIONS \* HTTP\/1\.1\r\nHost: localhost\r\nSvc-Service-Challenge: [0-9a-f]{64}\r\n\r\n$/);
    // Shared again, at another port, it is the same agent.
    share = new ShareCommand(home, '--name', 'notes', '--allow', me, '--', process.execPath, FIXTURE);
    const next = await share.reported();
    assert.equal(next.aid, reported.aid);
    assert.notEqual(next.service_tcp, reported.service_tcp);
    const again = await overHttp(t, MODERN);
    assert.equal(textOf(await again.callTool({ name: 'echo', arguments: { after: 1 } })), '{"after":1}');
  });

  test('sharing stops when the command stops', async (t) => {
    const client = await overStdio(t, LEGACY);
    assert.equal(await share.end('SIGTERM'), 0);
    await assert.rejects(client.callTool({ name: 'echo' }));
    const bound = async (): Promise<string> =>
      (await home.call<{ service_tcp: string }>('GET', `/agents/${reported.aid}`)).service_tcp;
    assert.equal(await bound(), '');
    // If another service is bound, the command reports it, and the agent can be shared again.
    const other = 'http://127.0.0.1:9';
    await svcOk(home, 'serve', other, '--name', 'notes');
    for (const args of [
      ['serve', '8', '--name', 'notes'],
      ['mcp', 'share', '--name', 'notes', '--', process.execPath, FIXTURE],
    ]) {
      const refused = await svc(home, args);
      assert.match(refused.stderr, /is bound to http:\/\/127\.0\.0\.1:9\. To replace it, say --replace/);
      assert.notEqual(refused.code, 0);
      assert.equal(await bound(), other);
    }
    share = new ShareCommand(home, '--name', 'notes', '--replace', '--', process.execPath, FIXTURE);
    assert.notEqual((await share.reported()).service_tcp, other);
    await share.end('SIGTERM');
    assert.equal(await bound(), other);
    await svcOk(home, 'serve', '8', '--name', 'notes', '--replace');
    assert.match(await svcOk(home, 'serve', '--off', '--name', 'notes'), /is bound to http:\/\/127\.0\.0\.1:9 again/);
    await svcOk(home, 'serve', '--off', '--name', 'notes');
    assert.equal(await bound(), '');
    // The same agent is used again, and the client's session continues.
    share = new ShareCommand(home, '--name', 'notes', '--allow', me, '--', process.execPath, FIXTURE);
    const next = await share.reported();
    assert.equal(next.aid, reported.aid);
    assert.deepEqual(next.allowed, [me]);
    await eventually('the server is available again', async () => {
      const result = await client.callTool({ name: 'echo', arguments: {} }).catch(() => null);
      return result !== null && textOf(result) === '{}';
    });
  });
});

test('the callers of a share use only its tools, and lose access with it', async (t) => {
  const daemon = await TestDaemon.start();
  t.after(() => daemon.stop());
  const [aid, bob] = [await daemon.newAgent(), await daemon.newAgent()];
  let share: ShareCommand | undefined;
  t.after(() => share?.end('SIGKILL'));
  const begin = async (...options: readonly string[]): Promise<SharedServer> => {
    share = new ShareCommand(daemon, '--aid', aid, ...options, '--', process.execPath, FIXTURE);
    return share.reported();
  };
  const entries = async () =>
    (
      await daemon.call<{ allow: { aid: string; tools?: string[]; service_tcp: string }[] }>(
        'GET',
        `/agents/${aid}/acl`,
      )
    ).allow;
  let at = new URL('http://127.0.0.1');
  const client = async (): Promise<Client> => {
    const made = await connected(new StreamableHTTPClientTransport(at), LEGACY);
    t.after(() => made.close());
    return made;
  };

  const { service_tcp, allowed } = await begin('--tools', `${bob}=echo`);
  assert.deepEqual(allowed, [bob]);
  assert.deepEqual(
    (await entries()).map((one) => [one.aid, one.tools, one.service_tcp]),
    [[bob, ['echo'], service_tcp]],
  );
  const { url } = await daemon.call<{ url: string }>('POST', `/origins/${aid}`, { local_aid: bob });
  at = new URL('/mcp', url);
  assert.match(await svcOk(daemon, 'agents', 'acl', 'show', aid), /only echo .* with its service/);
  const limited = await client();
  assert.deepEqual(
    (await limited.listTools()).tools.map(({ name }) => name),
    ['echo'],
  );
  assert.equal(textOf(await limited.callTool({ name: 'echo', arguments: { a: 1 } })), '{"a":1}');
  assert.ok((await limited.listResources()).resources.length > 0);
  await assert.rejects(limited.callTool({ name: 'who' }));
  const body = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","Name":"who"}}';
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  assert.equal((await fetch(at, { method: 'POST', headers, body })).status, 403);

  // A share with all tools names its own callers.
  await share?.end('SIGKILL');
  await begin();
  assert.deepEqual(await entries(), []);
  await assert.rejects(client());
  await share?.end('SIGTERM');
  await begin('--allow', bob);
  assert.equal(textOf(await (await client()).callTool({ name: 'echo', arguments: {} })), '{}');
  // Another service of the agent does not know them either.
  assert.equal(await share?.end('SIGTERM'), 0);
  assert.deepEqual(await entries(), []);
  await svcOk(daemon, 'agents', 'acl', 'default', aid, 'deny');
  await svcOk(daemon, 'serve', 'http://127.0.0.1:9', '--aid', aid);
  assert.equal((await fetch(at)).status, 403);
});

test('sharing restores the access default that it changed', async (t) => {
  const daemon = await TestDaemon.start();
  t.after(() => daemon.stop());
  const aid = await daemon.newAgent();
  const before = 'http://127.0.0.1:9';
  await svcOk(daemon, 'serve', before, '--aid', aid);
  await svcOk(daemon, 'agents', 'acl', 'default', aid, 'ask');
  type Defaults = { default: string; default_before?: string };
  const defaults = async (): Promise<(string | undefined)[]> => {
    const { default: now, default_before } = await daemon.call<Defaults>('GET', `/agents/${aid}/acl`);
    return [now, default_before];
  };
  let share: ShareCommand | undefined;
  t.after(() => share?.end('SIGKILL'));
  const begin = async () => {
    share = new ShareCommand(daemon, '--aid', aid, '--replace', '--', process.execPath, FIXTURE);
    const reported = await share.reported();
    assert.equal(reported.default_before, 'ask');
    assert.deepEqual(await defaults(), ['deny', 'ask']);
    return share;
  };

  await t.test('after SIGTERM', async () => {
    const running = await begin();
    assert.match(await svcOk(daemon, 'agents', 'acl', 'show', aid), /The default "ask" returns when it ends\./);
    assert.equal(await running.end('SIGTERM'), 0);
    assert.deepEqual(await defaults(), ['ask', undefined]);
  });
  await t.test('after SIGKILL, together with the service', async () => {
    await (await begin()).end('SIGKILL');
    assert.deepEqual(await defaults(), ['deny', 'ask']);
    await eventually('the service is bound again', async () => {
      await svc(daemon, ['agents', 'probe', aid]);
      return (await daemon.call<{ service_tcp: string }>('GET', `/agents/${aid}`)).service_tcp === before;
    });
    assert.deepEqual(await defaults(), ['ask', undefined]);
  });
  await t.test('not if the owner closed the agent meanwhile', async () => {
    const running = await begin();
    await svcOk(daemon, 'agents', 'acl', 'default', aid, 'deny');
    await running.end('SIGTERM');
    assert.deepEqual(await defaults(), ['deny', undefined]);
    await svcOk(daemon, 'agents', 'acl', 'default', aid, 'ask');
  });
  await t.test('after a share on demand', async () => {
    const args = ['mcp', 'share', '--on-demand', '--aid', aid, '--replace', '--', process.execPath, FIXTURE];
    process.env['SVCD_DATA_DIR'] = daemon.dataDir;
    const shared = await svc(daemon, args);
    delete process.env['SVCD_DATA_DIR'];
    assert.match(shared.stderr, /The default "ask" returns when the share ends\./);
    assert.deepEqual(await defaults(), ['deny', 'ask']);
    await svcOk(daemon, 'serve', '--off', '--aid', aid);
    assert.deepEqual(await defaults(), ['ask', undefined]);
  });
});
