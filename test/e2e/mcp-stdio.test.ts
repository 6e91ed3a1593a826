import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { Assistant, fromBase64, type Values } from '../support/assistant.ts';
import { TestDaemon } from '../support/daemon.ts';
import { type Echo, EchoService } from '../support/echo-service.ts';
import { eventually } from '../support/eventually.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

/** Arguments of a node on loopback, on free ports. */
const LOCAL = ['--listen', '127.0.0.1:0', '--api-addr', '127.0.0.1:0', '--no-open-browser'];

test('an assistant does the main job as its own node, another through a daemon that restarts', async (t) => {
  await using service = await EchoService.start();
  const dataDir = temporaryDirectory(t);
  let daemon = await TestDaemon.start({ dataDir });
  t.after(() => daemon.stop());
  await using seeker = await Assistant.overStdio(temporaryDirectory(t), 'modern', [
    ...LOCAL,
    '--bootstrap',
    daemon.dhtAddress,
  ]);
  await eventually(
    'the node is on the network',
    async () => (await seeker.call('svc_status'))['network_ready'] === true,
  );
  const asking = await seeker.newAgent();

  await using provider = await Assistant.overStdio(dataDir, 'modern', ['--mcp-profile', 'core']);
  assert.ok(provider.tools.includes('svc_fetch') && !provider.tools.includes('svc_tunnel_open'));
  const offered = await provider.newAgent({ service_tcp: service.address });
  assert.equal((await daemon.request('GET', `/agents/${offered}`)).status, 200);
  await provider.call('svc_service_register', { aid: offered, services: ['lang.translate'], brief: 'Translates' });
  const { entries } = await seeker.call<{ entries: Values[] }>('svc_discover', { services: ['lang.translate'] });
  assert.equal(entries[0]?.['aid'], offered);
  const answer = await seeker.call('svc_fetch', { remote_aid: offered, path: '/hello' });
  const echo: Echo = JSON.parse(fromBase64(answer['body']));
  assert.equal(echo.headers['svc-caller-aid'], asking);

  // The daemon restarts on other ports, and the assistant continues without an error.
  await daemon.kill('SIGTERM');
  const waiting = provider.attempt('svc_agents_list');
  daemon = await TestDaemon.start({ dataDir });
  // If the start took longer than a call waits, the first call reports it and the next succeeds.
  assert.match(JSON.stringify(await waiting), new RegExp(`${offered}|daemon_unreachable`));
  const { agents } = await provider.persist<{ agents: Values[] }>('svc_agents_list');
  assert.equal(agents[0]?.['aid'], offered);
});

test('several assistants on one data directory share a node, which keeps running when an assistant stops', async (t) => {
  const dataDir = temporaryDirectory(t);
  const start = () => Assistant.overStdio(dataDir, 'modern', LOCAL);
  const agentsOf = async (assistant: Assistant): Promise<unknown[]> => {
    const { agents } = await assistant.persist<{ agents: Values[] }>('svc_agents_list');
    return agents.map(({ aid }) => aid);
  };
  const node = async (assistant: Assistant): Promise<unknown> => (await assistant.persist('svc_status'))['node_aid'];
  const first = await start();
  t.after(() => first.client.close());
  const { operational_private_key_hex, delegation_proof_hex } = await first.call('svc_identity_generate');
  const { aid } = await first.call('svc_agent_register', { operational_private_key_hex, delegation_proof_hex });
  const nodeAid = await node(first);

  const second = await start();
  t.after(() => second.client.close());
  assert.deepEqual(await agentsOf(second), [aid]);
  const info = (): { pid: number } => JSON.parse(readFileSync(join(dataDir, 'daemon.json'), 'utf8'));
  const { pid } = info();
  process.kill(pid, 'SIGKILL');
  assert.deepEqual(await agentsOf(second), [aid], 'the second is the node now');
  assert.equal(await node(second), nodeAid);
  assert.notEqual(info().pid, pid);

  const third = await start();
  t.after(() => third.client.close());
  assert.deepEqual(await agentsOf(third), [aid]);
  await second.client.close();
  assert.deepEqual(await agentsOf(third), [aid], 'an assistant that exits normally also moves the node to another one');
  assert.equal(await node(third), nodeAid);
});

test('an assistant whose svcd cannot start gets the reason in a protocol error', async (t) => {
  const taken = createSocket('udp4');
  taken.bind(0, '127.0.0.1');
  await once(taken, 'listening');
  t.after(() => taken.close());
  const listen = `127.0.0.1:${taken.address().port}`;
  const args = ['bin/svcd', '--data-dir', temporaryDirectory(t), '--mcp-stdio', '--listen', listen];
  const child = spawn(process.execPath, args, { env: { ...process.env, SVCD_MDNS: 'false' } });
  t.after(() => child.kill('SIGKILL'));
  child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'initialize', params: {} })}\n`);
  const [line]: unknown[] = await once(createInterface({ input: child.stdout }), 'line');
  const { id, error }: { id: number; error: { message: string } } = JSON.parse(String(line));
  assert.equal(id, 7);
  assert.match(error.message, /^svcd cannot start \(address_in_use\): .*another program has it/);
  assert.ok(error.message.includes(listen), error.message);
  child.stdin.end();
  const [code] = await once(child, 'close');
  assert.equal(code, 1);
});

test('an assistant uses the daemon of a system service, unless this user has a node', async (t) => {
  // Its data directory is not the default directory of this user.
  const service = await TestDaemon.start({ dataDir: temporaryDirectory(t) });
  t.after(() => service.stop());
  const { node_aid: nodeAid } = (await service.request('GET', '/status')).body as Values;
  const home = temporaryDirectory(t);
  const env = {
    ...process.env,
    HOME: home,
    XDG_CONFIG_HOME: join(home, '.config'),
    SVCD_DATA_DIR: '',
    SVCD_MDNS: 'false',
  };
  const status = async (args: readonly string[]): Promise<{ readonly nodeAid: unknown; readonly stderr: string }> => {
    const child = spawn(process.execPath, ['bin/svcd', '--mcp-stdio', ...args], { env });
    t.after(() => child.kill('SIGKILL'));
    let stderr = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text;
    });
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    const call = async (id: number, method: string, params: Values): Promise<Values> => {
      child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
      return JSON.parse(String((await lines.next()).value)).result;
    };
    const clientInfo = { name: 't', version: '1' };
    await call(1, 'initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo });
    const { structuredContent } = await call(2, 'tools/call', { name: 'svc_status', arguments: {} });
    child.stdin.end();
    await once(child, 'close');
    return { nodeAid: (structuredContent as Values)['node_aid'], stderr };
  };
  const api = new URL(service.api).host;
  const through = await status(['--api-addr', api]);
  assert.equal(through.nodeAid, nodeAid);
  assert.match(through.stderr, /tools of the svcd that runs at .* which uses another data directory/);
  // A node of this user takes precedence, and its ports are free.
  const own = await status(['--api-addr', '127.0.0.1:0', '--listen', '127.0.0.1:0']);
  assert.notEqual(own.nodeAid, nodeAid);
  assert.equal((await status(['--api-addr', api, '--listen', '127.0.0.1:0'])).nodeAid, own.nodeAid);
  // If its UDP port belongs to the service, it cannot start.
  assert.equal((await status(['--api-addr', api, '--listen', service.dhtAddress])).nodeAid, nodeAid);
});
