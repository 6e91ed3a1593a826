import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { type TestContext, test } from 'node:test';
import { TestDaemon } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

/** A server on a port of its choice. It prints its process ID, its agent and the port of svcd. */
const SERVER = `
  const server = require('http').createServer((request, response) => response.end('hello'));
  server.listen(0, '127.0.0.1', () => console.log(process.pid, process.env.SVC_AID, process.env.PORT));
`;

class Run {
  readonly svc: ChildProcess;
  readonly aid: string;
  /** Of the command. */
  readonly pid: number;

  private constructor(svc: ChildProcess, pid: number, aid: string) {
    this.svc = svc;
    this.pid = pid;
    this.aid = aid;
  }

  static async start(t: TestContext, dataDir: string): Promise<Run> {
    const args = ['bin/svc', 'run', '--name', 'build', '--', process.execPath, '-e', SERVER];
    const svc = spawn(process.execPath, args, {
      env: { ...process.env, SVCD_DATA_DIR: dataDir },
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    t.after(() => svc.kill('SIGKILL'));
    let output = '';
    svc.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
    const [, pid, aid = ''] = await eventually(
      'the command runs',
      () => /^(\d+) (aid1\w+) \d+\n/.exec(output) ?? false,
    );
    t.after(() => {
      try {
        process.kill(Number(pid), 'SIGKILL');
      } catch {}
    });
    return new Run(svc, Number(pid), aid);
  }
}

async function agentsOf(daemon: TestDaemon) {
  const { agents } = await daemon.call<{ agents: { aid: string; service_tcp: string; service_tcp_ok: boolean }[] }>(
    'GET',
    '/agents',
  );
  return agents;
}

test('a command has an agent while it runs, bound to its port, whatever is killed', { timeout: 120_000 }, async (t) => {
  const dataDir = temporaryDirectory(t);
  let daemon = await TestDaemon.start({ dataDir });
  t.after(() => daemon.stop());
  const isBound = async (aid: string): Promise<boolean> =>
    (await agentsOf(daemon)).some((one) => one.aid === aid && one.service_tcp !== '' && one.service_tcp_ok);

  const ended = await Run.start(t, dataDir);
  await eventually('the agent is bound', () => isBound(ended.aid));
  const answer = await daemon.request('GET', `/aid/${ended.aid}/`);
  assert.equal(answer.body, 'hello');
  process.kill(ended.pid, 'SIGTERM');
  const [code] = await once(ended.svc, 'close');
  assert.equal(code, 143);
  assert.deepEqual(await agentsOf(daemon), []);

  const killed = await Run.start(t, dataDir);
  process.kill(killed.pid, 'SIGKILL');
  await once(killed.svc, 'close');
  assert.deepEqual(await agentsOf(daemon), []);

  const orphan = await Run.start(t, dataDir);
  orphan.svc.kill('SIGKILL');
  await eventually('its agent is deleted', async () => (await agentsOf(daemon)).length === 0);

  // The command outlives the daemon, and another one ends meanwhile.
  const lasting = await Run.start(t, dataDir);
  const other = await Run.start(t, dataDir);
  await eventually('both are bound', async () => (await isBound(lasting.aid)) && (await isBound(other.aid)));
  const port = new URL(daemon.api).host;
  await daemon.kill();
  process.kill(other.pid, 'SIGKILL');
  await once(other.svc, 'close');
  daemon = await TestDaemon.start({ dataDir, args: ['--api-addr', port] });
  await eventually('the other agent is deleted', async () => (await agentsOf(daemon)).length === 1);
  assert.ok(await isBound(lasting.aid));
  await daemon.call('DELETE', `/agents/${lasting.aid}`);
  await eventually('it is registered again, and bound', () => isBound(lasting.aid));
  process.kill(lasting.pid, 'SIGTERM');
  await once(lasting.svc, 'close');
  assert.deepEqual(await agentsOf(daemon), []);
});
