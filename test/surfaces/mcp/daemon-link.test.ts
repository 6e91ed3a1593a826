import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { ClientRequest, createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { systemClock } from '../../../src/foundation/clock.ts';
import type { SharedMcp } from '../../../src/foundation/data-dir/daemon-info.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { CLIENT_TIMEOUT_MS } from '../../../src/operations/client.ts';
import { ToolTable } from '../../../src/operations/tool-call.ts';
import { DaemonLink } from '../../../src/surfaces/mcp/daemon-link.ts';
import { SharedNode } from '../../../src/surfaces/mcp/shared-node.ts';
import { eventually } from '../../support/eventually.ts';
import { newIdentity } from '../../support/identities.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';
import { TestClock } from '../../support/test-clock.ts';
import { bindAll, startMcpWorld } from './world.ts';

const signal = new AbortController().signal;

function setUp(t: TestContext, apiAddr?: string | null, profiles?: string, onNodeGone?: (pid: number) => void) {
  const dataDir = temporaryDirectory(t);
  const announce = (address: string | null, mcp?: SharedMcp): void => {
    const info = {
      pid: 1,
      mcp,
      api_addr: address,
      started_at: '2026-01-01T00:00:00.000Z',
      version: '1.2.3',
      proof_key: '',
    };
    writeFileSync(join(dataDir, 'daemon.json'), JSON.stringify(info));
  };
  if (apiAddr !== undefined) announce(apiAddr);
  const clock = new TestClock();
  const configFile = join(dataDir, 'config.toml');
  const options = { dataDir, configFile, token: undefined, profiles };
  const link = new DaemonLink(options, { clock, ...(onNodeGone === undefined ? {} : { onNodeGone }) });
  t.after(() => link.close());
  return { link, clock, announce };
}

/** Advances the clock until the promise settles. */
async function settle<T>(clock: TestClock, promise: Promise<T>): Promise<T> {
  const ended = promise.then(
    () => true,
    () => true,
  );
  const turn = (): Promise<false> => new Promise((resolve) => setImmediate(resolve, false));
  while (!(await Promise.race([ended, turn()]))) if (clock.timers > 0) clock.advance(1_000);
  return promise;
}

test('without a daemon a call waits for a while, then explains the next step', async (t) => {
  const { link, clock } = setUp(t);
  const begun = clock.now();
  await assert.rejects(settle(clock, link.callTool('svc_status', {}, signal)), {
    code: 'daemon_unreachable',
    message: /Start it with "svcd"/,
  });
  assert.ok(clock.now() - begun >= 5_000);
});

test('a token that the daemon does not need is not sent to it', async (t) => {
  const world = await startMcpWorld(t);
  const dataDir = temporaryDirectory(t);
  const options = { dataDir, configFile: join(dataDir, 'config.toml'), token: 'a token of another daemon' };
  const clock = new TestClock();
  const link = new DaemonLink({ ...options, profiles: undefined, api: `${world.host}:${world.port}` }, { clock });
  t.after(() => link.close());
  assert.notDeepEqual((await link.listTools(signal)).tools, []);
});

test('a dead daemon leaves its address behind, but no listener', async (t) => {
  const world = await startMcpWorld(t);
  const { link, clock } = setUp(t, `${world.host}:${world.port}`);
  await link.callTool('svc_status', {}, signal);
  await world.server.stop();
  await assert.rejects(settle(clock, link.callTool('svc_status', {}, signal)), { code: 'daemon_unreachable' });
});

test('waits for a node without an API that is still starting, with an error after a timeout', async (t) => {
  const { link, clock } = setUp(t, null);
  await assert.rejects(settle(clock, link.listTools(signal)), {
    code: 'daemon_unreachable',
    message: /still starting/,
  });
});

test('shares a node without an API with holders of its token, and notices its end immediately', async (t) => {
  const tools = new ToolTable({ operations: bindAll({ tunnelList: () => ({ tunnels: [1] }) }), pending: () => ({}) });
  const node = new SharedNode({ version: '1.2.3' }, { tools, clock: systemClock, log: silentLog });
  const mcp = await node.start();
  const gone: number[] = [];
  const { link, announce } = setUp(t, undefined, 'calls', (pid) => gone.push(pid));
  announce(null, mcp);
  const { tools: listed } = await link.listTools(signal);
  assert.ok(
    listed.some(({ name }) => name === 'svc_tunnel_list') && listed.every(({ name }) => name !== 'svc_agent_delete'),
  );
  assert.deepEqual((await link.callTool('svc_tunnel_list', {}, signal)).structuredContent, { tunnels: [1] });
  for (const [path, authorization, status] of [
    ['/mcp/', '', 401],
    ['/watch', 'Bearer wrong', 401],
    ['/status', `Bearer ${mcp.token}`, 404],
  ] as const) {
    const answer = await fetch(`http://${mcp.addr}${path}`, { headers: { authorization } });
    assert.equal(answer.status, status, path);
    await answer.body?.cancel();
  }
  assert.deepEqual(gone, []);
  await node.close();
  await eventually('the end is heard', () => gone.length > 0);
  assert.deepEqual(gone, [1]);
});

test('keeps the error code of the daemon, and the number of a protocol error', async (t) => {
  const world = await startMcpWorld(t);
  const { link, clock } = setUp(t, `${world.host}:${world.port}`, 'everything');
  await assert.rejects(settle(clock, link.listTools(signal)), { code: 'invalid_request', message: /profile/ });
  const all = setUp(t, `${world.host}:${world.port}`);
  await assert.rejects(settle(all.clock, all.link.callTool('svc_nothing', {}, signal)), { code: -32602 });
});

test('distinguishes other programs from a daemon and does not retry with them', async (t) => {
  let asked = 0;
  const other = createServer((_request, response) => {
    asked++;
    response.end('<html>');
  });
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
  t.after(() => other.close());
  const { link, clock } = setUp(t, `127.0.0.1:${(other.address() as AddressInfo).port}`);
  await assert.rejects(settle(clock, link.listTools(signal)), { code: 'daemon_unreachable', message: /is not svcd/ });
  assert.equal(asked, 1);
});

test('does not repeat a call that was interrupted', async (t) => {
  let calls = 0;
  const world = await startMcpWorld(t, {
    handlers: {
      status: () => {
        calls++;
        relay.closeAllConnections();
        return new Promise(() => {});
      },
    },
  });
  const relay: Server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { 'content-length': _length, connection: _connection, host: _host, ...headers } = request.headers;
      fetch(world.url + request.url, {
        method: 'POST',
        headers: headers as Record<string, string>,
        body: Buffer.concat(chunks),
      })
        .then(async (answer) => {
          response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? '' });
          response.end(await answer.text());
        })
        .catch(() => response.destroy());
    });
  });
  await new Promise<void>((resolve) => relay.listen(0, '127.0.0.1', resolve));
  t.after(() => relay.close());
  const { port } = relay.address() as AddressInfo;
  const { link, clock } = setUp(t, `127.0.0.1:${port}`);
  await assert.rejects(settle(clock, link.callTool('svc_status', {}, signal)), {
    code: 'daemon_unreachable',
    message: /may have completed/,
  });
  assert.equal(calls, 1);
});

test('cancels a call that the client aborts', async (t) => {
  const { link, clock } = setUp(t);
  await assert.rejects(settle(clock, link.callTool('svc_status', {}, AbortSignal.abort())), { code: 'cancelled' });
});

test('waits without a limit for a call with its own limit', async (t) => {
  const world = await startMcpWorld(t, { handlers: { fetch: () => ({}) } });
  const { link } = setUp(t, `${world.host}:${world.port}`);
  const limit = t.mock.method(ClientRequest.prototype, 'setTimeout');
  await link.callTool('svc_status', {}, signal);
  await link.callTool('svc_fetch', { remote_aid: newIdentity().aid, path: '/', timeout_s: 300 }, signal);
  assert.deepEqual(
    limit.mock.calls.map(({ arguments: [ms] }) => ms),
    [CLIENT_TIMEOUT_MS, 0],
  );
});
