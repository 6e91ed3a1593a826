import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { svc, svcJson, svcOk } from '../support/cli.ts';
import { TestDaemon } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { ready } from '../support/network.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

interface AgentState {
  readonly aid: string;
  readonly seq: number;
}

test('a second daemon on the same data directory exits with a clear message', async () => {
  await using first = await TestDaemon.start();
  await assert.rejects(TestDaemon.start({ dataDir: first.dataDir }), (error: Error) => {
    assert.match(error.message, /ended with 1/);
    assert.match(error.message, /another svcd/i);
    assert.match(error.message, new RegExp(String(first.process.pid)));
    return true;
  });
  await first.call('GET', '/health');
});

test('an API port in use stops the daemon, and the message names it', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  assert.ok(address !== null && typeof address === 'object');
  await assert.rejects(TestDaemon.start({ args: ['--api-addr', `127.0.0.1:${address.port}`] }), (error: Error) => {
    assert.match(error.message, new RegExp(`127\\.0\\.0\\.1:${address.port}`));
    assert.match(error.message, /in use/);
    return true;
  });
  server.close();
});

test('all files in the data directory are private, under any umask', async () => {
  await using daemon = await TestDaemon.start({
    command: ['sh', '-c', 'umask 0; exec "$0" bin/svcd "$@"', process.execPath],
  });
  await daemon.newAgent();
  const open = readdirSync(daemon.dataDir, { recursive: true, encoding: 'utf8' }).filter(
    // The daemon may have removed the file meanwhile.
    (name) => ((statSync(join(daemon.dataDir, name), { throwIfNoEntry: false })?.mode ?? 0) & 0o077) !== 0,
  );
  assert.deepEqual(open, []);
});

test('SIGTERM stops the daemon, and the process exits without help', async () => {
  const daemon = await TestDaemon.start();
  await daemon.newAgent();
  assert.equal(await daemon.kill('SIGTERM'), 0);
  await daemon.stop();
});

test('SIGHUP stops the daemon; unhandled signals neither stop it nor open the debugger', async () => {
  const daemon = await TestDaemon.start();
  for (const signal of ['SIGUSR1', 'SIGUSR2', 'SIGALRM', 'SIGVTALRM'] as const) {
    daemon.process.kill(signal);
    await daemon.call('GET', '/health');
  }
  // Twice, as when a terminal closes.
  daemon.process.kill('SIGHUP');
  assert.equal(await daemon.kill('SIGHUP'), 0);
  assert.match(daemon.output, /stopped/);
  assert.doesNotMatch(daemon.output, /Debugger listening/);
  assert.equal(existsSync(join(daemon.dataDir, 'daemon.json')), false);
  await daemon.stop();
});

test('a signal during the start stops the daemon', async (t) => {
  const dataDir = temporaryDirectory(t);
  const [program, ...first] = [process.execPath, 'bin/svcd', '--data-dir', dataDir, '--listen', '127.0.0.1:0'];
  const child = spawn(program ?? '', [...first, '--api-addr', '127.0.0.1:0', '--no-open-browser'], {
    stdio: 'ignore',
    env: { ...process.env, SVCD_MDNS: 'false' },
  });
  const info = join(dataDir, 'daemon.json');
  await eventually('the start has begun', () => existsSync(info) || undefined);
  child.kill('SIGTERM');
  assert.deepEqual(await once(child, 'exit'), [0, null]);
  assert.equal(existsSync(info), false);
});

test('svc reads the log and stops the daemon; a page cannot stop it, and no supervisor restarts it', async () => {
  const daemon = await TestDaemon.start();
  const lines = await svcJson<{ lines: { message: string }[] }>(daemon, 'logs', '-n', '1000');
  assert.ok(lines.lines.some(({ message }) => message === 'svcd is ready'));
  const errors = await svcJson<{ lines: unknown[] }>(daemon, 'logs', '--level', 'error');
  assert.deepEqual(errors.lines, []);
  for (const headers of [{ origin: daemon.api, 'sec-fetch-site': 'same-origin' }, { 'sec-fetch-site': 'none' }]) {
    const refused = await daemon.request('POST', '/node/stop', {}, headers);
    assert.equal(refused.status, 403, JSON.stringify(headers));
  }
  const restart = await svc(daemon, ['restart']);
  assert.equal(restart.code, 1);
  assert.match(restart.stderr, /started by hand/);
  const ended = once(daemon.process, 'exit');
  assert.equal(await svcOk(daemon, 'stop'), 'svcd stopped.');
  assert.deepEqual(await ended, [0, null]);
  assert.equal((await svc(daemon, ['logs'])).code, 3);
  await daemon.stop();
});

test('a daemon killed during many publishes keeps all its agents, and sequence numbers never decrease', async (t) => {
  const dataDir = temporaryDirectory(t);
  // A node alone publishes nothing.
  await using other = await TestDaemon.start();
  const aids: string[] = [];
  const acknowledged = new Map<string, number>();
  for (let round = 0; round < 4; round++) {
    await using daemon = await TestDaemon.start({ dataDir, bootstrap: [other.dhtAddress] });
    await ready(daemon);
    const states = await daemon.call<{ agents: AgentState[] }>('GET', '/agents?limit=100');
    assert.deepEqual(new Set(states.agents.map((a) => a.aid)), new Set(aids), `round ${round}`);
    for (const { aid, seq } of states.agents)
      assert.ok(seq >= (acknowledged.get(aid) ?? 0), `${aid} went back to ${seq}`);
    while (aids.length < 5) aids.push(await daemon.newAgent());
    let done = 0;
    const killAt = 10 + round * 20;
    const killed = once(daemon.process, 'exit');
    // Each loop publishes until the daemon is killed, so that the kill always interrupts publishing.
    const publishing = Array.from({ length: 50 }, async (_, i) => {
      const aid = aids[i % aids.length] ?? '';
      for (;;) {
        const { seq } = await daemon.call<{ seq: number }>('POST', `/agents/${aid}/publish`);
        const before = acknowledged.get(aid) ?? 0;
        acknowledged.set(aid, Math.max(before, seq));
        if (++done === killAt) daemon.process.kill('SIGKILL');
      }
    });
    await Promise.allSettled(publishing);
    assert.ok(done >= killAt, `publishing stopped after ${done} publishes, before the kill`);
    await killed;
  }
});
