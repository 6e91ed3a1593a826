import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { fill, PLACE, type Text } from '../../panel/src/lib/text.ts';
import { deDoctor } from '../../panel/src/words/de-doctor.ts';
import { readDaemonInfo } from '../../src/foundation/data-dir/daemon-info.ts';
import type { Finding } from '../../src/foundation/domain/findings.ts';
import { VERSION } from '../../src/foundation/version.ts';
import { type RunOptions, runSvc } from '../support/cli-run.ts';
import { TestDaemon } from '../support/daemon.ts';
import { EchoService } from '../support/echo-service.ts';
import { eventually } from '../support/eventually.ts';
import { ready, TestNetwork } from '../support/network.ts';
import { quietPort, run } from '../support/programs.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

interface Report {
  readonly code: number | null;
  readonly ok: boolean;
  readonly findings: readonly Finding[];
}

async function doctor(
  api: string | undefined,
  options: RunOptions & { args?: readonly string[] } = {},
): Promise<Report> {
  const at = api === undefined ? [] : ['--api', api];
  const { code, stdout } = await runSvc([...at, '--json', 'doctor', ...(options.args ?? [])], {
    version: VERSION,
    ...options,
  });
  const { ok, findings } = JSON.parse(stdout) as Omit<Report, 'code'>;
  assert.equal(code, ok ? 0 : 1);
  assert.equal(ok, !findings.some(({ level }) => level === 'FAIL'));
  for (const finding of findings) {
    const { level, hint, what, code, values = {} } = finding;
    if (level === 'FAIL' || level === 'WARN') assert.ok(hint, `a hint for: ${what}`);
    if (code === undefined) continue;
    // The values fill the places of the translations.
    const own: Readonly<Record<string, Text>> = deDoctor;
    for (const text of [own[`finding.${code}`], own[`hint.${code}`]])
      assert.doesNotMatch(fill(text ?? '', 'de', values), PLACE, what);
    assert.equal(hint === undefined, own[`hint.${code}`] === undefined, what);
  }
  return { code, ok, findings };
}

/** Returns the finding, which must be in the report. */
function findingOf({ findings }: Report, check: Finding['check'], level: Finding['level'], what: RegExp): Finding {
  const one = findings.find((f) => f.check === check && f.level === level && what.test(f.what));
  assert.ok(one, `${level} ${check} ${what} in\n${findings.map((f) => `${f.level} ${f.check} ${f.what}`).join('\n')}`);
  return one;
}

function failures({ findings }: Report): string[] {
  return findings.filter(({ level }) => level === 'FAIL').map(({ check }) => check);
}

/** Environment that makes Node run a piece of code first. */
function preload(code: string): Readonly<Record<string, string>> {
  return { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(code)}` };
}

/** Environment of a daemon with a wrong clock. */
function clockOff(seconds: number): Readonly<Record<string, string>> {
  return preload(`const now = Date.now; Date.now = () => now() + ${seconds * 1000}`);
}

/** Simulates a disk with 8 MiB and a read-only disk on machines that cannot mount one. */
const FULL = `
import fs from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
fs.statfs = async () => ({ bavail: 2048, bsize: 4096 });
syncBuiltinESMExports();`;
const READ_ONLY = `
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
fs.writeFileSync = () => { throw Object.assign(new Error('read-only'), { code: 'EROFS' }); };
syncBuiltinESMExports();`;

test('the daemon does not answer: the doctor reports the cause', async (t) => {
  const directory = temporaryDirectory(t);
  const dataDir = join(directory, 'data');
  const nowhere = `127.0.0.1:${await quietPort()}`;
  const never = await doctor(nowhere, { dataDir });
  findingOf(never, 'daemon', 'FAIL', /does not respond: ECONNREFUSED/);
  findingOf(never, 'daemon', 'INFO', /svcd has not run here/);
  assert.match(findingOf(never, 'daemon', 'FAIL', /./).hint ?? '', /Start it with "svcd"/);

  mkdirSync(dataDir, { mode: 0o700 });
  const daemon = await TestDaemon.start({ dataDir });
  t.after(() => daemon.stop());
  const elsewhere = await doctor(nowhere, { dataDir });
  assert.match(
    findingOf(elsewhere, 'daemon', 'WARN', /responds at another address/).hint ?? '',
    new RegExp(daemon.api),
  );
  await daemon.kill('SIGKILL');
  findingOf(await doctor(undefined, { dataDir }), 'daemon', 'INFO', /crashed or was killed/);

  writeFileSync(join(dataDir, 'config.toml'), 'log_level = "info"\nnonsense = 1\n', { mode: 0o600 });
  findingOf(await doctor(undefined, { dataDir }), 'config', 'FAIL', /line 2/);

  await using other = await EchoService.start();
  findingOf(await doctor(other.address, { dataDir }), 'daemon', 'FAIL', /not svcd/);
});

test('an API token that is missing, wrong or not required', async () => {
  const token = 'a-token-of-enough-length';
  await using closed = await TestDaemon.start({ config: `api_token = "${token}"\nrequire_local_token = true\n` });
  findingOf(await doctor(closed.api), 'token', 'FAIL', /none was given/);
  findingOf(await doctor(closed.api, { args: ['--token', 'another'] }), 'token', 'FAIL', /did not prove/);
  const { dataDir } = closed;
  const wrong = await doctor(closed.api, { dataDir, args: ['--token', 'another'] });
  findingOf(wrong, 'token', 'FAIL', /rejects the token/);
  const accepted = await doctor(closed.api, { args: ['--token', token] });
  findingOf(accepted, 'daemon', 'PASS', /responds/);
  findingOf(accepted, 'mcp', 'PASS', /can connect/);
  assert.doesNotMatch(JSON.stringify(accepted.findings), new RegExp(token));
  await using unlocked = await TestDaemon.start();
  findingOf(
    await doctor(unlocked.api, { dataDir: unlocked.dataDir, args: ['--token', token] }),
    'token',
    'INFO',
    /requires none/,
  );
});

test('a node alone: no network, another version, pending changes, a deleted data directory', async (t) => {
  const directory = temporaryDirectory(t);
  const dataDir = join(directory, 'data');
  mkdirSync(dataDir, { mode: 0o700 });
  await using daemon = await TestDaemon.start({ dataDir });
  await daemon.call('PATCH', '/config', { min_observed_peers: 5 });
  const report = await doctor(daemon.api, { version: '9.9.9' });
  assert.match(findingOf(report, 'network', 'FAIL', /no other node/).hint ?? '', /--bootstrap/);
  findingOf(report, 'version', 'WARN', new RegExp(`svc has version 9\\.9\\.9, the daemon ${VERSION}`));
  findingOf(report, 'config', 'WARN', /not applied yet: min_observed_peers/);
  findingOf(report, 'config', 'INFO', /set by a flag.*api_addr/);
  findingOf(report, 'reachability', 'WARN', /only this machine can use that/);
  findingOf(report, 'clock', 'INFO', /no other node has reported its clock/);
  findingOf(report, 'publication', 'INFO', /no agent is registered/);
  findingOf(report, 'start', 'INFO', /started by hand/);
  findingOf(report, 'data', 'PASS', /can be written/);
  findingOf(report, 'disk', 'PASS', /MiB are free/);
  findingOf(report, 'keys', 'PASS', /no other user/);

  chmodSync(join(dataDir, 'keys'), 0o755);
  const exposed = await doctor(daemon.api);
  assert.match(findingOf(exposed, 'keys', 'FAIL', /other users of this machine can read .*keys/).hint ?? '', /chmod/);
  chmodSync(join(dataDir, 'keys'), 0o700);
  renameSync(dataDir, `${dataDir}-moved`);
  findingOf(await doctor(daemon.api), 'data', 'FAIL', /was deleted/);
  renameSync(`${dataDir}-moved`, dataDir);
});

test('a full disk, and a read-only disk', async (t) => {
  const directory = temporaryDirectory(t);
  chmodSync(directory, 0o700);
  const mount = `mount -t tmpfs -o size=8m,mode=0700 none "${directory}"`;
  const command = `"${process.execPath}" bin/svc doctor --json --api 127.0.0.1:${await quietPort()}`;
  const mounting = await run('unshare', ['-Urm', 'sh', '-c', mount]).catch(() => null);
  const outputs =
    mounting?.code === 0
      ? [
          [mount, command],
          [mount, `mount -o remount,ro "${directory}"`, command],
        ].map((commands) =>
          run('unshare', ['-Urm', 'sh', '-c', commands.join(' && ')], { env: { SVCD_DATA_DIR: directory } }),
        )
      : [FULL, READ_ONLY].map((change) =>
          run('sh', ['-c', command], { env: { SVCD_DATA_DIR: directory, ...preload(change) } }),
        );
  if (mounting?.code !== 0) t.diagnostic('cannot mount a disk here: the system calls are simulated');
  const [full, readOnly] = (await Promise.all(outputs)).map(({ stdout, stderr }): Report => {
    assert.notEqual(stdout, '', stderr);
    return { code: 1, ...(JSON.parse(stdout) as Omit<Report, 'code'>) };
  });
  assert.ok(full !== undefined && readOnly !== undefined);
  findingOf(full, 'disk', 'FAIL', /only 8 MiB are free/);
  findingOf(full, 'data', 'PASS', /can be written/);
  findingOf(readOnly, 'data', 'FAIL', /cannot be written \(EROFS\)/);
});

test('a daemon that runs as a system service', async (t) => {
  const dataDir = temporaryDirectory(t);
  chmodSync(dataDir, 0o700);
  const config = 'api_addr = "127.0.0.1:0"\nlisten_addr = "127.0.0.1:0"\nmdns = false\n';
  writeFileSync(join(dataDir, 'config.toml'), config, { mode: 0o600 });
  const supervisor = spawn(process.execPath, ['bin/svcd', '--data-dir', dataDir, 'service', 'run'], {
    stdio: 'ignore',
  });
  const ended = once(supervisor, 'exit');
  t.after(async () => {
    supervisor.kill('SIGTERM');
    await ended;
  });
  const api = await eventually('the daemon answers', () => readDaemonInfo(dataDir)?.api_addr ?? undefined);
  findingOf(await doctor(api), 'start', 'PASS', /runs as a system service/);
});

test('an assistant that cannot connect', async (t) => {
  await using daemon = await TestDaemon.start();
  // A reverse proxy that forwards everything except MCP.
  const proxy = createServer((incoming, outgoing) => {
    if (incoming.url?.startsWith('/mcp') === true) return void outgoing.writeHead(502).end('bad gateway');
    const { method, url, headers } = incoming;
    const onward = request(`${daemon.api}${url}`, { method, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(outgoing);
    });
    incoming.pipe(onward);
  }).listen(0, '127.0.0.1');
  t.after(() => (proxy.closeAllConnections(), proxy.close()));
  await once(proxy, 'listening');
  const address = proxy.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  findingOf(await doctor(`127.0.0.1:${address.port}`), 'mcp', 'FAIL', /status 502/);
});

test('agents and the clock, in a network', async (t) => {
  await using network = await TestNetwork.start(4);
  await using service = await EchoService.start();
  const [here, there] = [network.at(0), network.at(1)];
  await ready(here, 3);
  const healthy = await here.newAgent(service.address);
  await eventually('three nodes store the record', async () => {
    const { replicas } = await here.call<{ replicas: number }>('POST', `/agents/${healthy}/publish`);
    return replicas >= 3;
  });
  const fine = await doctor(here.api);
  assert.deepEqual(failures(fine), []);
  findingOf(fine, 'network', 'PASS', /the network is ready, 3 nodes/);
  findingOf(fine, 'clock', 'PASS', /agrees/);
  findingOf(fine, 'publication', 'PASS', /was published \d+ (s|min) ago and is stored by [34] nodes/);
  findingOf(fine, 'service', 'PASS', /answers at/);

  const deaf = await here.newAgent(`127.0.0.1:${await quietPort()}`);
  await here.call('POST', `/agents/${deaf}/publish`);
  const moved = await here.newAgent();
  await here.call('POST', `/agents/${moved}/publish`);
  const {
    service_tcp: _unbound,
    aid: _same,
    ...credentials
  } = await here.call<Record<string, string>>('GET', `/agents/${moved}/export`);
  await there.call('POST', '/agents', credentials);
  await there.call('POST', `/agents/${moved}/publish`);
  const report = await eventually('the network points to another node', async () => {
    const one = await doctor(here.api);
    return one.findings.some(({ what }) => what.includes('also runs on another node')) && one;
  });
  assert.deepEqual(failures(report).sort(), ['publication', 'service']);
  assert.match(findingOf(report, 'service', 'FAIL', /does not answer at/).hint ?? '', /svc inbound bind/);
  findingOf(report, 'publication', 'FAIL', /also runs on another node/);
  findingOf(report, 'service', 'INFO', /no service bound/);

  for (const [seconds, word] of [
    [600, 'ahead of'],
    [-600, 'behind'],
  ] as const) {
    const wrong = await TestDaemon.start({
      bootstrap: network.daemons.map((d) => d.dhtAddress),
      env: clockOff(seconds),
    });
    t.after(() => wrong.stop());
    await ready(wrong, 3);
    const off = await eventually('three nodes have sent their time', async () => {
      const one = await doctor(wrong.api);
      return one.findings.some(({ check, level }) => check === 'clock' && level === 'FAIL') && one;
    });
    assert.match(findingOf(off, 'clock', 'FAIL', new RegExp(`(59|60)\\d s ${word}`)).hint ?? '', /NTP/);
    await wrong.stop();
  }
});

test('an idle agent is renewed after hours off, and a record without a network expires', async (t) => {
  const dataDir = temporaryDirectory(t);
  chmodSync(dataDir, 0o700);
  /** With another node with the same clock, which stores the records. */
  const start = async (seconds: number): Promise<{ daemon: TestDaemon; other: TestDaemon }> => {
    const other = await TestDaemon.start({ env: clockOff(seconds) });
    t.after(() => other.stop());
    const daemon = await TestDaemon.start({ dataDir, bootstrap: [other.dhtAddress], env: clockOff(seconds) });
    t.after(() => daemon.stop());
    await ready(daemon, 1);
    return { daemon, other };
  };
  /** With the same clock as the daemon. */
  const report = async (daemon: TestDaemon, seconds: number): Promise<Report> => {
    const { stdout } = await run(process.execPath, ['bin/svc', '--api', daemon.api, '--json', 'doctor'], {
      env: clockOff(seconds),
    });
    return { code: 1, ...(JSON.parse(stdout) as Omit<Report, 'code'>) };
  };
  const { daemon: first } = await start(0);
  const aid = await first.newAgent();
  await first.call('POST', `/agents/${aid}/publish`);
  await first.stop();

  const { daemon: later, other } = await start(3 * 3600);
  await eventually('the record is renewed', async () => {
    const { last_publish_at } = await later.call<{ last_publish_at: string }>('GET', `/agents/${aid}`);
    return Date.parse(last_publish_at) > Date.now() + 2 * 3600_000;
  });
  await other.call('POST', `/resolve/${aid}`);
  await later.stop();

  const alone = await TestDaemon.start({ dataDir, env: clockOff(5 * 3600) });
  t.after(() => alone.stop());
  const expired = findingOf(
    await report(alone, 5 * 3600),
    'publication',
    'FAIL',
    /published [12] h ago, and the record has expired/,
  );
  assert.match(expired.hint ?? '', new RegExp(`svc agents publish ${aid}`));
});
