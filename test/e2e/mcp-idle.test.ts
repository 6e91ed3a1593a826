/**
 * An MCP stream that is silent for half an hour, and daemons that are killed. The official client must get the same
 * results through two daemons as directly, except that it resumes a stream. The clocks of the daemons jump forward.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { svcOk } from '../support/cli.ts';
import type { DaemonOptions, TestDaemon } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { pass, startLeaping } from '../support/leaping-daemons.ts';
import { Watcher } from '../support/mcp-watcher.ts';
import { ready } from '../support/network.ts';
import { quietPort } from '../support/programs.ts';
import { FIXTURE, LEGACY, MODERN } from '../support/shared-mcp.ts';

const HALF_AN_HOUR_MS = 30 * 60_000;
/** A revision, and a path to the server. */
const CLIENTS = [LEGACY, MODERN].flatMap((revision) =>
  (['directly', 'at a local address', 'over stdio'] as const).map((transport) => ({ revision, transport })),
);

/** Ports at which a daemon restarts, so no other process may get them meanwhile. */
async function fixedPorts(): Promise<DaemonOptions> {
  return {
    args: ['--api-addr', `127.0.0.1:${await quietPort()}`, '--listen', `127.0.0.1:${await quietPort()}`],
    env: { SVCD_QUIC_LISTEN_ADDR: `127.0.0.1:${await quietPort()}` },
  };
}

describe('an MCP stream through two daemons', () => {
  let home: TestDaemon;
  let friend: TestDaemon;
  let server: ChildProcess;
  let direct: string;
  let through: string;
  let watchers: Watcher[];
  const dirs = ['home', 'friend'].map((name) => mkdtempSync(join(tmpdir(), `svcd-idle-${name}-`)));

  before(async () => {
    const port = await quietPort();
    direct = `http://127.0.0.1:${port}`;
    server = spawn(process.execPath, [FIXTURE, String(port), '--silent'], { stdio: 'inherit' });
    home = await startLeaping({ dataDir: dirs[0] ?? '', ...(await fixedPorts()) });
    friend = await startLeaping({ dataDir: dirs[1] ?? '', bootstrap: [home.dhtAddress], ...(await fixedPorts()) });
    await Promise.all([ready(home), ready(friend)]);
    await eventually('the server listens', async () => (await fetch(`${direct}/ping`).catch(() => null)) !== null);
    const aid = await home.newAgent(direct);
    await home.call('POST', `/agents/${aid}/publish`);
    await friend.newAgent();
    through = await svcOk(friend, '--quiet', 'origin', 'open', aid);
    watchers = await Promise.all(
      CLIENTS.map(({ revision, transport }) => {
        if (transport === 'over stdio') return Watcher.overStdio(friend, aid, revision);
        return Watcher.overHttp(new URL('/mcp', transport === 'directly' ? direct : through), revision);
      }),
    );
    await Promise.all(watchers.map((watcher) => watcher.listen()));
    // Clients of revisions with sessions open their streams without a request that the server reports.
    const sessions = CLIENTS.filter(({ revision }) => revision === LEGACY).length;
    await eventually(
      'the other clients listen too',
      async () => Number(await (await fetch(`${direct}/listening`)).text()) === sessions,
    );
  });

  after(async () => {
    await Promise.all(watchers.map((watcher) => watcher.close()));
    await Promise.all([home, friend].map((daemon) => daemon.stop()));
    server.kill('SIGKILL');
    for (const dir of dirs) rmSync(dir, { recursive: true, force: true });
  });

  /** Changes the tools; each client must be notified. */
  async function changeTools(): Promise<void> {
    const before = watchers.map(({ changes }) => changes);
    await fetch(`${direct}/changed`);
    await eventually('all clients are notified', () =>
      watchers.every(({ changes }, index) => changes > (before[index] ?? Infinity)),
    );
  }

  /** The results of all clients, which must be equal. */
  async function commonResults(): Promise<unknown[]> {
    return Promise.all(
      watchers.map(async (watcher) => ({ echo: await watcher.echo('ä\u2028€'), tools: await watcher.tools() })),
    );
  }

  function assertAlike(all: readonly unknown[]): void {
    for (const [index, one] of all.entries()) assert.deepEqual(one, all[0], JSON.stringify(CLIENTS[index]));
  }

  test('is silent for half an hour and continues without a reconnect', async () => {
    await changeTools();
    const streams = watchers.map((watcher) => watcher.streams);
    const started = await home.call<{ uptime_s: number }>('GET', '/status');
    await pass(HALF_AN_HOUR_MS, [home, friend], async () => {
      assert.equal((await fetch(`${through}/ping`)).status, 204);
    });
    const passed = (await home.call<{ uptime_s: number }>('GET', '/status')).uptime_s - started.uptime_s;
    assert.ok(passed >= HALF_AN_HOUR_MS / 1000, `${passed} s`);
    await changeTools();
    assert.deepEqual(
      watchers.map((watcher) => watcher.streams),
      streams,
    );
    assert.deepEqual([...new Set(watchers.map(({ changes }) => changes))], [2]);
    assertAlike(await commonResults());
  });

  for (const which of ['friend', 'home'] as const)
    test(`resumes after SIGKILL of the daemon ${which === 'home' ? 'at the server' : 'at the caller'}`, async () => {
      const killed = which === 'home' ? home : friend;
      await killed.kill('SIGKILL');
      const bootstrap = [(which === 'home' ? friend : home).dhtAddress];
      const env = { SVCD_QUIC_LISTEN_ADDR: killed.quicAddress };
      const args = ['--api-addr', new URL(killed.api).host, '--listen', killed.dhtAddress];
      const again = await startLeaping({ dataDir: killed.dataDir, bootstrap, args, env }, HALF_AN_HOUR_MS);
      if (which === 'home') home = again;
      else friend = again;
      const before = watchers.map(({ changes }) => changes);
      await eventually('all clients are notified of a change', async () => {
        await Promise.all(watchers.map((watcher) => watcher.listen()));
        await fetch(`${direct}/changed`);
        return watchers.every(({ changes }, index) => changes > (before[index] ?? Infinity));
      });
      assertAlike(await commonResults());
    });
});
