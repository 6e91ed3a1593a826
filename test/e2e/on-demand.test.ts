/** Services that start with a call and stop when they are idle. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { readDaemonInfo } from '../../src/foundation/data-dir/daemon-info.ts';
import { hookProof } from '../../src/foundation/hook-proof.ts';
import { TestDaemon } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { connected, FIXTURE, LEGACY, MODERN } from '../support/shared-mcp.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const run = promisify(execFile);
const SVC = resolve('bin/svc');

/** It takes half a second to start. */
const SERVER = `
const { appendFileSync } = require('node:fs');
appendFileSync('starts', process.pid + '\\n');
setTimeout(() => {
  require('node:http').createServer((request, response) => {
    response.end(request.url + ' by ' + process.pid);
  }).listen(Number(process.env.PORT), '127.0.0.1');
}, 500);
`;

function starts(folder: string): number[] {
  const file = join(folder, 'starts');
  return existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean).map(Number) : [];
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

function body({ dataDir }: TestDaemon, aid: string, folder: string, command: readonly string[], idle_s: number) {
  const key = Buffer.from(readDaemonInfo(dataDir)?.proof_key ?? '', 'base64url');
  return { command, folder, idle_s, proof: hookProof(key, { aid, kind: 'serve', command, shell: false, folder }) };
}

async function world(t: TestContext, idle_s: number) {
  const folder = temporaryDirectory(t);
  const dataDir = mkdtempSync(join(realpathSync(tmpdir()), 'svcd-on-demand-'));
  t.after(() => rmSync(dataDir, { recursive: true, force: true }));
  const daemon = await TestDaemon.start({ dataDir });
  writeFileSync(join(folder, 'server.cjs'), SERVER);
  const aid = await daemon.newAgent();
  await daemon.newAgent();
  const command = [process.execPath, join(folder, 'server.cjs')];
  const set = body(daemon, aid, folder, command, idle_s);
  const { service_tcp } = await daemon.call<{ service_tcp: string }>('PUT', `/agents/${aid}/on-demand`, set);
  await daemon.call('PATCH', `/agents/${aid}`, { service_tcp });
  return { folder, dataDir, daemon, aid };
}

function get(daemon: TestDaemon, aid: string, path: string) {
  return daemon.request('GET', `/aid/${aid}${path}`);
}

test('calls start the service once and wait for it, and it stops when it is idle', async (t) => {
  const { folder, daemon, aid } = await world(t, 1);
  t.after(() => daemon.stop());
  // Checks of the service only connect.
  await daemon.call('GET', `/agents/${aid}`);
  assert.deepEqual(starts(folder), []);
  const answers = await Promise.all(Array.from({ length: 20 }, (_, i) => get(daemon, aid, `/${i}`)));
  const [pid = 0] = starts(folder);
  assert.deepEqual(starts(folder), [pid]);
  assert.deepEqual(
    answers.map(({ status, body }) => [status, body]),
    answers.map((_, i) => [200, `/${i} by ${pid}`]),
  );
  await eventually('it is idle', async () => {
    const { services } = await daemon.call<{ services: { running: boolean; starts: number }[] }>('GET', '/on-demand');
    return services[0]?.running === false && services[0].starts === 1;
  });
  assert.ok(!isAlive(pid));
  const again = await get(daemon, aid, '/again');
  assert.equal(again.body, `/again by ${starts(folder)[1]}`);
  await daemon.call('DELETE', `/agents/${aid}/on-demand`, {});
  await eventually('it stopped', () => starts(folder).every((one) => !isAlive(one)));
  assert.equal((await get(daemon, aid, '/gone')).status, 502);
});

test('the program of a killed daemon is stopped by the next one, which starts it again', async (t) => {
  const { folder, daemon, dataDir, aid } = await world(t, 600);
  await get(daemon, aid, '/');
  const [pid = 0] = starts(folder);
  await daemon.kill('SIGKILL');
  assert.ok(isAlive(pid));
  const next = await TestDaemon.start({ dataDir });
  await eventually('it was stopped', () => !isAlive(pid));
  const { status, body } = await get(next, aid, '/next');
  assert.deepEqual([status, body], [200, `/next by ${starts(folder)[1]}`]);
  await next.stop();
  await eventually('it stopped with the daemon', () => starts(folder).every((one) => !isAlive(one)));
});

test('a program that does not start fails the call, and only the owner may set one', async (t) => {
  const { folder, daemon, aid } = await world(t, 600);
  t.after(() => daemon.stop());
  await daemon.call('PUT', `/agents/${aid}/on-demand`, body(daemon, aid, folder, ['/bin/false'], 60));
  assert.equal((await get(daemon, aid, '/')).status, 502);
  const forged = { ...body(daemon, aid, folder, ['/bin/true'], 60), proof: 'a'.repeat(64) };
  const { status, body: refusal } = await daemon.request('PUT', `/agents/${aid}/on-demand`, forged);
  assert.equal(status, 403);
  assert.equal((refusal as { error: string }).error, 'access_denied');
});

/** Types a command as the user of a daemon. */
async function typed<T>({ api, dataDir }: TestDaemon, folder: string, ...args: readonly string[]): Promise<T> {
  const env = { ...process.env, SVC_API: api, SVCD_DATA_DIR: dataDir };
  const { stdout } = await run(process.execPath, [SVC, '--json', ...args], { env, cwd: folder });
  return JSON.parse(stdout) as T;
}

test('the last failure of a start is shown, and --try starts the program immediately', async (t) => {
  const daemon = await TestDaemon.start();
  t.after(() => daemon.stop());
  const folder = temporaryDirectory(t);
  writeFileSync(join(folder, 'server.cjs'), SERVER);
  const serve = (file: string, ...options: readonly string[]) =>
    typed<{ aid: string; start_ms: number | null; service_tcp: string }>(
      ...([daemon, folder, 'serve', '--on-demand', '--print-master', '--name', 'nap', ...options] as const),
      ...['--', process.execPath, file],
    );
  const tried = await serve('missing.cjs', '--save-master', join(folder, 'key'), '--try').catch(
    (error: unknown) => error,
  );
  assert.match(
    String(Reflect.get(Object(tried), 'stderr')),
    /exited with code 1 before it listened.*Cannot find module/s,
  );
  assert.deepEqual(await daemon.call('GET', '/on-demand'), { services: [] });
  const { aid, start_ms } = await serve('missing.cjs');
  assert.equal(start_ms, null);
  assert.equal((await get(daemon, aid, '/')).status, 502);
  const { services } = await daemon.call<{ services: { failure: { output: string } }[] }>('GET', '/on-demand');
  assert.match(services[0]?.failure.output ?? '', /Cannot find module/);
  const problem = 'The program exited with code 1 before it listened on 127.0.0.1, at the port in PORT.';
  const agent = () => daemon.call<{ service_tcp_ok: boolean; service_error?: string }>('GET', `/agents/${aid}`);
  await eventually('it is reported', async () => (await agent()).service_error === problem);
  const { start_ms: took } = await serve('server.cjs', '--try');
  assert.ok(typeof took === 'number' && took > 0);
  await eventually('it answers', async () => (await agent()).service_tcp_ok);
  assert.equal((await agent()).service_error, undefined);
});

test('a new agent serves a text for a shell', async (t) => {
  const daemon = await TestDaemon.start();
  t.after(() => daemon.stop());
  const folder = temporaryDirectory(t);
  writeFileSync(join(folder, 'server.cjs'), SERVER);
  const text = `echo $$ >>shells; exec '${process.execPath}' server.cjs`;
  const key = ['--save-master', join(folder, 'key')];
  const { aid, service_tcp } = await typed<{ aid: string; service_tcp: string }>(
    ...([daemon, folder, 'serve', '--on-demand', '--idle', '1', '--name', 'nap', ...key, '--shell', text] as const),
  );
  assert.match(service_tcp, /^127\.0\.0\.1:\d+$/);
  assert.ok(existsSync(join(folder, 'key')));
  const first = await get(daemon, aid, '/');
  assert.equal(first.body, `/ by ${starts(folder)[0]}`);
  // The same command again changes the program and asks nothing.
  await typed(daemon, folder, 'serve', '--on-demand', '--name', 'nap', '--shell', text);
  assert.equal((await get(daemon, aid, '/again')).body, `/again by ${starts(folder)[1]}`);
  await typed(daemon, folder, 'serve', '--off', '--name', 'nap');
  assert.deepEqual(await daemon.call('GET', '/on-demand'), { services: [] });
  assert.equal((await get(daemon, aid, '/gone')).status, 503);
});

test('an MCP server that is shared on demand starts with a call, and again after it was idle', async (t) => {
  const daemon = await TestDaemon.start();
  t.after(() => daemon.stop());
  const folder = temporaryDirectory(t);
  const friend = await daemon.newAgent();
  const stranger = await daemon.newAgent();
  const lists = ['--tools', `${friend}=echo`, '--save-master', join(folder, 'key')];
  const shared = await typed<{ aid: string; tools: string[]; allowed: string[]; service_tcp: string }>(
    ...([daemon, folder, 'mcp', 'share', '--on-demand', '--idle', '1', '--name', 'notes', ...lists] as const),
    ...['--', process.execPath, FIXTURE],
  );
  assert.ok(shared.tools.includes('echo'));
  assert.deepEqual(shared.allowed, [friend]);
  assert.match(shared.service_tcp, /^http\+proven:\/\/127\.0\.0\.1:\d+$/);
  const state = async () =>
    (await daemon.call<{ services: { running: boolean; starts: number }[] }>('GET', '/on-demand')).services[0];
  assert.equal((await state())?.starts, 0);
  const { url } = await daemon.call<{ url: string }>('POST', `/origins/${shared.aid}`, { local_aid: friend });
  for (const [n, revision] of [LEGACY, MODERN].entries()) {
    const client = await connected(new StreamableHTTPClientTransport(new URL('/mcp', url)), revision);
    const { tools } = await client.listTools();
    assert.deepEqual(
      tools.map(({ name }) => name),
      ['echo'],
    );
    assert.equal((await state())?.starts, n + 1);
    await client.close();
    await eventually('it is idle', async () => (await state())?.running === false);
  }
  const port = Number(shared.service_tcp.split(':').at(-1));
  const direct = await fetch(`http://127.0.0.1:${port}/mcp`, { method: 'POST', body: '{}' });
  assert.equal(direct.status, 403);
  const refused = await daemon.request('POST', `/fetch/${shared.aid}`, { local_aid: stranger, path: '/mcp' });
  assert.equal(refused.status, 403);
  await typed(daemon, folder, 'serve', '--off', '--name', 'notes');
  assert.deepEqual(await daemon.call('GET', '/on-demand'), { services: [] });
});
