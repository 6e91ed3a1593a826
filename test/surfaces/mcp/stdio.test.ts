import assert from 'node:assert/strict';
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type TestContext, test } from 'node:test';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { temporaryDirectory } from '../../support/temporary-directory.ts';
import { ERAS, type Era, MODERN, startMcpWorld } from './world.ts';

const CHILD = new URL('stdio-child.ts', import.meta.url).pathname;
const TOKEN = 'not-so-secret';

async function connect(t: TestContext, era: Era, args: readonly string[], env: Record<string, string> = {}) {
  const mode = era === 'legacy' ? 'legacy' : { pin: MODERN };
  const client = new Client({ name: 'test', version: '1.0.0' }, { versionNegotiation: { mode } });
  const command = { command: process.execPath, args: [CHILD, ...args], stderr: 'ignore' as const };
  await client.connect(new StdioClientTransport({ ...command, env }));
  t.after(() => client.close());
  return client;
}

function announce(dataDir: string, apiAddr: string | null): void {
  const proof_key = Buffer.alloc(32).toString('base64url');
  const info = { pid: 1, api_addr: apiAddr, started_at: '2026-01-01T00:00:00.000Z', version: '1.2.3', proof_key };
  writeFileSync(join(dataDir, 'daemon.json'), JSON.stringify(info));
}

function textOf(result: { content: readonly object[] }): string {
  return JSON.stringify(result.content);
}

for (const era of ERAS) {
  test(`${era}: without a daemon the process is the node`, async (t) => {
    const client = await connect(t, era, ['node', '', 'calls']);
    const { tools } = await client.listTools();
    assert.ok(tools.some(({ name }) => name === 'svc_tunnel_list'));
    const result = await client.callTool({ name: 'svc_tunnel_list', arguments: {} });
    assert.deepEqual(result.structuredContent, { tunnels: [], closed: [] });
  });

  test(`${era}: with a daemon it is a proxy that passes on token and profile`, async (t) => {
    const world = await startMcpWorld(t, {
      token: TOKEN,
      requireLocalToken: true,
      handlers: { tunnelList: (_input, { origin }) => ({ tunnels: [], closed: [], origin }) },
    });
    const dataDir = temporaryDirectory(t);
    announce(dataDir, `${world.host}:${world.port}`);
    const client = await connect(t, era, ['proxy', dataDir, 'calls'], { SVC_TOKEN: TOKEN });
    const names = (await client.listTools()).tools.map(({ name }) => name);
    assert.ok(names.includes('svc_tunnel_list') && !names.includes('svc_agent_delete'));
    const result = await client.callTool({ name: 'svc_tunnel_list', arguments: {} });
    assert.deepEqual(result.structuredContent, { tunnels: [], closed: [], origin: 'local' });
    const refused = await client.callTool({ name: 'svc_resolve', arguments: { aid: 'aid1x' } });
    assert.match(textOf(refused), /Error bad_aid: /);
    await assert.rejects(client.callTool({ name: 'svc_nothing', arguments: {} }), { code: -32602 });
  });
}

test('a process that starts while another one stops becomes the next node', async (t) => {
  const client = await connect(t, 'modern', ['handover']);
  const result = await client.callTool({ name: 'svc_tunnel_list', arguments: {} });
  assert.deepEqual(result.structuredContent, { tunnels: [], closed: [] });
});

test('reads the token from config.toml, and explains which setting is missing', async (t) => {
  const world = await startMcpWorld(t, { token: TOKEN, requireLocalToken: true });
  const dataDir = temporaryDirectory(t);
  announce(dataDir, `${world.host}:${world.port}`);
  const client = await connect(t, 'modern', ['proxy', dataDir]);
  const refused = await client.callTool({ name: 'svc_status', arguments: {} });
  assert.equal(refused.isError, true);
  assert.match(textOf(refused), /Error unauthorized: .*SVC_TOKEN/);
  writeFileSync(join(dataDir, 'config.toml'), `api_token = "${TOKEN}"\n`, { mode: 0o600 });
  const taken = await client.callTool({ name: 'svc_status', arguments: {} });
  assert.notEqual(taken.isError, true, textOf(taken));
});

test('finds a daemon that restarts on another port', async (t) => {
  const dataDir = temporaryDirectory(t);
  const first = await startMcpWorld(t);
  announce(dataDir, `${first.host}:${first.port}`);
  const client = await connect(t, 'legacy', ['proxy', dataDir]);
  assert.notEqual((await client.callTool({ name: 'svc_status', arguments: {} })).isError, true);
  await first.server.stop();
  // Called while no daemon listens, it waits for a restart.
  const waiting = client.callTool({ name: 'svc_status', arguments: {} });
  const second = await startMcpWorld(t);
  announce(dataDir, `${second.host}:${second.port}`);
  assert.notEqual((await waiting).isError, true);
});

function start(t: TestContext, ...args: string[]): ChildProcessWithoutNullStreams {
  const child = spawn(process.execPath, [CHILD, ...args]);
  t.after(() => child.kill('SIGKILL'));
  return child;
}

test('stdout carries only JSON-RPC, and the process ends with its stdin', async (t) => {
  const child = start(t, 'node');
  const lines: string[] = [];
  const reader = createInterface({ input: child.stdout });
  reader.on('line', (line) => lines.push(line));
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors += text;
  });
  const send = (message: object): boolean => child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'raw', version: '1' } };
  send({ id: 1, method: 'initialize', params });
  await once(reader, 'line');
  send({ method: 'notifications/initialized' });
  send({ id: 2, method: 'tools/call', params: { name: 'svc_tunnel_list', arguments: {} } });
  await once(reader, 'line');
  child.stdin.end();
  const [code] = await once(child, 'close');
  assert.equal(code, 0);
  assert.deepEqual(
    lines.map((line) => JSON.parse(line).id),
    [1, 2],
  );
  assert.match(errors, /a library prints to stdout\nand writes to it\n/);
  assert.match(errors, /stopped: the MCP client disconnected/);
});

test('a proxy sends due responses at the end of input before it exits', async (t) => {
  const called = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<object>();
  const tunnelList = async (): Promise<object> => {
    called.resolve();
    return answer.promise;
  };
  const world = await startMcpWorld(t, { handlers: { tunnelList } });
  const dataDir = temporaryDirectory(t);
  announce(dataDir, `${world.host}:${world.port}`);
  const child = start(t, 'proxy', dataDir);
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
  const closed = once(child, 'close');
  const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'raw', version: '1' } };
  const messages = [
    { id: 1, method: 'initialize', params },
    { method: 'notifications/initialized' },
    { id: 2, method: 'tools/call', params: { name: 'svc_tunnel_list', arguments: {} } },
  ];
  child.stdin.end(messages.map((message) => `${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`).join(''));
  await called.promise;
  answer.resolve({ tunnels: [], closed: [] });
  assert.deepEqual(await closed, [0, null]);
  const [, result] = output
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  assert.equal(result.id, 2);
  assert.deepEqual(result.result.structuredContent, { tunnels: [], closed: [] });
});

test('a signal ends the process', async (t) => {
  const child = start(t, 'node');
  const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'raw', version: '1' } };
  child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params })}\n`);
  await once(child.stdout, 'data');
  child.kill('SIGTERM');
  const [code, signal] = await once(child, 'close');
  assert.deepEqual([code, signal], [0, null]);
});
