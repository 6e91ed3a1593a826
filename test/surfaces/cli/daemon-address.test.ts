import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { runSvc } from '../../support/cli-run.ts';
import { one } from '../../support/event-world.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

/** No process has a pid this high. */
const NOBODY = 2 ** 30;

/** A server that responds like a daemon and records its requests. */
async function listener(t: TestContext): Promise<{ address: string; asked: string[] }> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    response.setHeader('content-type', 'application/json').end('{"ok":true}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  return { address: `127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
}

function announce(dataDir: string, pid: number, api_addr: string | null): void {
  const info = { pid, api_addr, started_at: '2026-01-01T00:00:00.000Z', version: '0', proof_key: '' };
  writeFileSync(join(dataDir, 'daemon.json'), JSON.stringify(info));
}

const DELETE = ['agents', 'del', one, '-y'];

test('a named data directory selects its own daemon or none', async (t) => {
  const { address, asked } = await listener(t);
  const usual = temporaryDirectory(t);
  announce(usual, process.pid, address);
  const named = temporaryDirectory(t);
  const env = { SVCD_DATA_DIR: named };

  const absent = await runSvc(DELETE, { dataDir: usual, env });
  assert.equal(absent.code, 3);
  assert.ok(absent.stderr.includes(`No daemon runs on ${named}`), absent.stderr);
  // Another node may use its address now.
  announce(named, NOBODY, address);
  const dead = await runSvc(DELETE, { dataDir: usual, env });
  assert.equal(dead.code, 3);
  assert.ok(dead.stderr.includes(`No daemon runs on ${named}`), dead.stderr);
  announce(named, process.pid, null);
  const starting = await runSvc(DELETE, { dataDir: usual, env });
  assert.equal(starting.code, 3);
  assert.match(starting.stderr, /is still starting, or has no API/);
  assert.deepEqual(asked, []);

  announce(named, process.pid, address);
  assert.equal((await runSvc(DELETE, { dataDir: usual, env })).code, 0);
  assert.deepEqual(asked, [`DELETE /agents/${one}`]);
});

test('an address overrides the directory', async (t) => {
  const { address, asked } = await listener(t);
  const env = { SVCD_DATA_DIR: temporaryDirectory(t) };
  assert.equal((await runSvc([...DELETE, '--api', address], { env })).code, 0);
  assert.equal((await runSvc(DELETE, { env: { ...env, SVC_API: address } })).code, 0);
  assert.equal(asked.length, 2);
  assert.deepEqual(await runSvc(['version'], { env }), { code: 0, stdout: 'svc 0, svcd not reachable\n', stderr: '' });
});

test('a terminal shows that another daemon answers in place of a stopped one', async (t) => {
  const { address } = await listener(t);
  const dataDir = temporaryDirectory(t);
  const texts = async (args: readonly string[] = [], env = {}, terminal = true) =>
    (await runSvc([...DELETE, ...args], { dataDir, env, terminal })).stderr;
  const note = `Your daemon (${dataDir}) does not run. Another one answers at http://${address}.`;
  announce(dataDir, NOBODY, address);
  // No daemon has used this directory.
  assert.equal(await texts(), '');
  writeFileSync(join(dataDir, 'svcd.db'), '');
  assert.ok((await texts()).startsWith(note));
  assert.equal((await texts()).split('\n').filter((line) => line !== '').length, 1);
  for (const [args, env, terminal] of [
    [[], {}, false],
    [['--json'], {}, true],
    [['--quiet'], {}, true],
    [[], { SVC_API: address }, true],
  ] as const)
    assert.equal(await texts(args, env, terminal), '');
  announce(dataDir, process.pid, address);
  assert.equal(await texts(), '');
});

test('the doctor examines the named directory', async (t) => {
  const dataDir = temporaryDirectory(t);
  writeFileSync(join(dataDir, 'config.toml'), 'nonsense = 1\n', { mode: 0o600 });
  const { code, stdout } = await runSvc(['doctor'], { env: { SVCD_DATA_DIR: dataDir } });
  assert.equal(code, 1);
  assert.ok(stdout.includes(`FAIL  no daemon of ${dataDir} responds`), stdout);
  assert.match(stdout, /FAIL {2}.*line 1/);
  assert.doesNotMatch(stdout, /127\.0\.0\.1:2121/);
});
