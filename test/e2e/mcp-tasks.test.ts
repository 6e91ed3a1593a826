/** A task of a shared MCP server: the daemon of the caller is killed between its request and its result. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { TestDaemon } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { ready } from '../support/network.ts';
import { quietPort } from '../support/programs.ts';
import { ShareCommand } from '../support/share-command.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

/** A server of revision 2025-11-25 whose tool returns a task. */
const SERVER = `
  const tool = { name: 'dig', inputSchema: { type: 'object' }, execution: { taskSupport: 'required' } };
  const at = '2026-01-01T00:00:00Z';
  const task = (status) => ({ taskId: 't1', status, createdAt: at, lastUpdatedAt: at, ttl: null, pollInterval: 10 });
  let asked = 0;
  const results = {
    initialize: () => ({
      protocolVersion: '2025-11-25',
      capabilities: { tools: {}, tasks: { requests: { tools: { call: {} } } } },
      serverInfo: { name: 'digger', version: '1' },
    }),
    'tools/list': () => ({ tools: [tool] }),
    'tools/call': () => ({ task: task('working') }),
    'tasks/get': () => task(asked++ > 0 ? 'completed' : 'working'),
    'tasks/result': () => ({ content: [{ type: 'text', text: 'gold' }] }),
  };
  require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
    const { id, method } = JSON.parse(line);
    if (id === undefined) return;
    const answer = results[method] ? { result: results[method]() } : { error: { code: -32601, message: method } };
    console.log(JSON.stringify({ jsonrpc: '2.0', id, ...answer }));
  });
`;

interface Answer {
  readonly id?: number;
  readonly result?: {
    readonly task?: { readonly taskId: string; readonly status: string };
    readonly status?: string;
    readonly content?: readonly { readonly text: string }[];
    readonly capabilities?: { readonly tasks?: object };
  };
}

test('the result of a task arrives after the daemon of the caller was killed', async (t) => {
  const home = await TestDaemon.start();
  t.after(() => home.stop());
  const dataDir = temporaryDirectory(t);
  const args = ['--api-addr', `127.0.0.1:${await quietPort()}`];
  const bootstrap = [home.dhtAddress];
  let friend = await TestDaemon.start({ dataDir, bootstrap, args });
  t.after(() => friend.stop());
  await Promise.all([ready(home), ready(friend)]);
  const me = await friend.newAgent();
  const folder = temporaryDirectory(t);
  const program = join(folder, 'server.cjs');
  writeFileSync(program, SERVER);
  const key = join(folder, 'key');
  const share = new ShareCommand(
    home,
    '--name',
    'd',
    '--allow',
    me,
    '--save-master',
    key,
    '--',
    process.execPath,
    program,
  );
  t.after(() => share.end('SIGTERM'));
  const { aid } = await share.reported();

  const client = spawn(process.execPath, ['bin/svc', 'mcp', 'use', aid, '--stdio'], {
    env: { ...process.env, SVC_API: friend.api },
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  t.after(() => client.kill('SIGKILL'));
  const answers: Answer[] = [];
  createInterface({ input: client.stdout }).on('line', (line) => answers.push(JSON.parse(line)));
  let last = 0;
  const call = async (method: string, params: object): Promise<Answer['result']> => {
    const id = ++last;
    client.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
    return (await eventually(method, () => answers.find((one) => one.id === id) ?? false)).result;
  };
  const clientInfo = { name: 'test', version: '1' };
  const opened = await call('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo });
  assert.deepEqual(opened?.capabilities?.tasks, { requests: { tools: { call: {} } } });
  client.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' })}\n`);
  const begun = await call('tools/call', { name: 'dig', arguments: {}, task: { ttl: 60_000 } });
  assert.deepEqual([begun?.task?.taskId, begun?.task?.status], ['t1', 'working']);
  assert.equal((await call('tasks/get', { taskId: 't1' }))?.status, 'working');

  await friend.kill();
  friend = await TestDaemon.start({ dataDir, bootstrap, args });
  const status = await eventually('the task', async () => (await call('tasks/get', { taskId: 't1' }))?.status ?? false);
  assert.equal(status, 'completed');
  const result = await call('tasks/result', { taskId: 't1' });
  assert.equal(result?.content?.[0]?.text, 'gold');
});
