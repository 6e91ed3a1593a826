/** Errors that callers get from a killed node, and how they find it again after it restarts. */
import assert from 'node:assert/strict';
import { cpSync, readFileSync, rmSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { svcOk } from '../support/cli.ts';
import { type ApiAnswer, TestDaemon } from '../support/daemon.ts';
import { EchoService } from '../support/echo-service.ts';
import { eventually } from '../support/eventually.ts';
import { ready } from '../support/network.ts';
import { quietPort } from '../support/programs.ts';
import { dial, endOf } from '../support/tcp.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

test('calls and tunnels to a killed node fail clearly, and work again after it restarts at its address', async (t) => {
  await using near = await TestDaemon.start();
  await using service = await EchoService.start();
  // The daemon restarts at these ports, so no other process may get them meanwhile.
  const options = {
    dataDir: temporaryDirectory(t),
    bootstrap: [near.dhtAddress],
    args: ['--listen', `127.0.0.1:${await quietPort()}`],
    env: { SVCD_QUIC_LISTEN_ADDR: `127.0.0.1:${await quietPort()}` },
  };
  const first = await TestDaemon.start(options);
  await Promise.all([ready(near), ready(first)]);
  const aid = await first.newAgent(service.address);
  await first.call('POST', `/agents/${aid}/publish`);
  const call = (method: string): Promise<ApiAnswer> => near.request(method, `/aid/${aid}/`);
  // A stream that has served a call stays open for the next one.
  assert.equal((await call('GET')).status, 200);
  const { listen } = await near.call<{ listen: string }>('POST', `/tunnel/${aid}`, { idle_timeout_sec: -1 });
  await first.kill();
  for (const method of ['POST', 'GET']) {
    const { status, body } = await call(method);
    assert.equal(status, 502);
    assert.equal((body as { error: string }).error, 'connect_failed');
  }
  assert.equal(await endOf(await dial(listen)), 'ECONNRESET');
  await using second = await TestDaemon.start(options);
  assert.equal(second.quicAddress, first.quicAddress);
  assert.equal((await call('POST')).status, 200);
  const client = await dial(listen);
  client.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  assert.equal(await endOf(client), 'end');
});

test('after a kill that lost the newest database changes, agents are closed until the owner confirms', async (t) => {
  await using near = await TestDaemon.start();
  await using service = await EchoService.start();
  const dataDir = temporaryDirectory(t);
  const at = (name: string): string => join(dataDir, name);
  const options = {
    dataDir,
    bootstrap: [near.dhtAddress],
    args: ['--listen', `127.0.0.1:${await quietPort()}`],
    env: { SVCD_QUIC_LISTEN_ADDR: `127.0.0.1:${await quietPort()}` },
  };
  const first = await TestDaemon.start(options);
  await Promise.all([ready(near), ready(first)]);
  const aid = await first.newAgent(service.address);
  await first.call('POST', `/agents/${aid}/publish`);
  await first.kill('SIGTERM');
  const copy = join(temporaryDirectory(t), 'svcd.db');
  cpSync(at('svcd.db'), copy);
  const from = async (daemon: TestDaemon): Promise<number> => (await daemon.request('POST', `/aid/${aid}/`)).status;
  const harm: readonly (readonly [string, () => void])[] = [
    ['an empty journal', () => truncateSync(at('svcd.db-wal'))],
    [
      'an old backup',
      () => {
        for (const suffix of ['-wal', '-shm']) rmSync(at(`svcd.db${suffix}`), { force: true });
        cpSync(copy, at('svcd.db'));
      },
    ],
  ];
  for (const [name, damage] of harm) {
    const before = await TestDaemon.start(options);
    assert.equal(await from(near), 200, `before ${name}`);
    const number = readFileSync(at('svcd.db-number'), 'utf8');
    await before.call('PATCH', `/agents/${aid}/acl`, { default: 'public' });
    await eventually('a mark of the newest state', () => readFileSync(at('svcd.db-number'), 'utf8') !== number);
    await before.kill();
    const { body } = await near.request('POST', `/aid/${aid}/`);
    // The caller may have noticed by now that no other node answers.
    assert.match(JSON.stringify(body), /"error":"(connect_failed|network_unavailable)"/);
    damage();
    await using after = await TestDaemon.start(options);
    assert.equal((await after.call<{ database_rolled_back?: true }>('GET', '/status')).database_rolled_back, true);
    assert.equal(await from(near), 403, `after ${name}`);
    assert.equal(await from(after), 200, "the node's own agents may call");
    assert.match(await svcOk(after, 'status'), /svc access confirm/);
    const { findings } = await after.call<{ findings: { check: string; level: string }[] }>('GET', '/node/doctor');
    assert.ok(findings.some(({ check, level }) => check === 'data' && level === 'FAIL'));
    assert.equal((await near.request('POST', `/via/${aid}/node/access/confirm`)).status, 403);
    await svcOk(after, 'access', 'confirm');
    assert.equal(await from(near), 200, `${name}, confirmed`);
  }
});
