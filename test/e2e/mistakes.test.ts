import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { runSvc } from '../support/cli-run.ts';
import { TestDaemon } from '../support/daemon.ts';
import { EchoService } from '../support/echo-service.ts';
import { newIdentity } from '../support/identities.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

/** Common user mistakes, and the messages for them. */
interface Mistake {
  readonly line: string;
  readonly code: number;
  /** The error message. */
  readonly error: RegExp;
  /** The hint: a command, a value or the correct syntax. */
  readonly hint: RegExp;
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
}

/** `OWN` and `TWO` are local agents, `FAR` is an unknown agent, `DIR` is a folder. */
const MISTAKES: readonly Mistake[] = [
  { line: 'staus', code: 2, error: /unknown command 'staus'/, hint: /Did you mean svc status\?/ },
  { line: 'tunel open FAR', code: 2, error: /unknown command 'tunel'/, hint: /Did you mean svc tunnel\?/ },
  { line: 'tunnel opne FAR', code: 2, error: /unknown command 'opne'/, hint: /Did you mean svc tunnel open\?/ },
  { line: 'service install', code: 2, error: /unknown command/, hint: /Did you mean svcd service/ },
  { line: 'start', code: 2, error: /unknown command/, hint: /Did you mean svcd\?/ },
  { line: 'update --chek', code: 2, error: /unknown option/, hint: /Did you mean --check\?/ },
  { line: 'get', code: 2, error: /missing required argument 'aid'/, hint: /svc get --help/ },
  {
    line: 'agents update OWN',
    code: 2,
    error: /--service-tcp <address>' not specified/,
    hint: /svc agents update --help/,
  },
  { line: 'get bob', code: 2, error: /"bob" is neither an AID nor a label/, hint: /svc alias list/ },
  { line: 'get FARx', code: 2, error: /is not a valid AID/, hint: /Copy the whole AID/ },
  {
    line: 'get FAR health --local-aid OWN',
    code: 2,
    error: /A path must begin with "\/"/,
    hint: /svc get \S+ \/health/,
  },
  { line: 'get FAR / --header x --local-aid OWN', code: 2, error: /"x" is not a header/, hint: /Name:value/ },
  { line: 'get FAR --local-aid OWN', code: 5, error: /was not found in the network/, hint: /svc netcheck/ },
  { line: 'get TWO --local-aid OWN', code: 1, error: /has no service bound/, hint: /svc inbound bind/ },
  { line: 'publish lang.translate', code: 2, error: /There are several agents/, hint: /--as, .*svc use.*svc agents/ },
  { line: 'publish Bad! --aid OWN', code: 2, error: /A service name is 1 to 128 characters/, hint: /lang\.translate/ },
  { line: 'publish a.b --aid OWN --ttl 1', code: 2, error: /^svc: --ttl must be at least 10\.$/m, hint: /10/ },
  {
    line: 'tunnel open TWO --local-aid OWN --local-port 99999',
    code: 2,
    error: /--local-port must be at most 65535/,
    hint: /65535/,
  },
  { line: 'tunnel open TWO --local-port http', code: 2, error: /Not an integer/, hint: /svc tunnel open --help/ },
  { line: 'tunnel close 12345678', code: 5, error: /No tunnel starts with/, hint: /svc tunnel status/ },
  { line: 'tunnel close first', code: 2, error: /"first" is not a tunnel/, hint: /svc tunnel status/ },
  { line: 'agents get FAR', code: 5, error: /This agent is not registered here/, hint: /svc agents/ },
  { line: 'agents del OWN', code: 2, error: /Nothing was done: this needs a confirmation/, hint: /Use -y/ },
  { line: 'agents rm FAR', code: 5, error: /This agent is not registered here/, hint: /svc agents/ },
  {
    line: 'agents profile set OWN --skill a --skill b --skill c --skill d',
    code: 2,
    error: /--skill may be given at most 3 times/,
    hint: /3 times/,
  },
  { line: 'agents import DIR/none', code: 5, error: /none cannot be read/, hint: /ENOENT/ },
  { line: 'agents import DIR/text', code: 2, error: /is not an exported agent/, hint: /damaged/ },
  { line: 'serve abc', code: 2, error: /"abc" is neither a local port/, hint: /1 to 65535.*tcp:\/\/host:port/ },
  { line: 'serve 70000', code: 2, error: /"70000" is neither a local port/, hint: /a port such as 8080/ },
  { line: 'status --data-dir DIR', code: 2, error: /unknown option '--data-dir'/, hint: /SVCD_DATA_DIR=<dir> svc/ },
  {
    line: 'register --service-tcp 8080',
    code: 2,
    error: /Invalid service address/,
    hint: /not a host and a port/,
  },
  {
    line: 'register --save-master DIR/text',
    code: 1,
    error: /exists and is never overwritten/,
    hint: /Choose another name/,
  },
  { line: 'register --master-key DIR/none', code: 2, error: /neither a private key/, hint: /64 hex characters/ },
  {
    line: 'inbound bind --addr API --aid OWN',
    code: 2,
    error: /Invalid service address/,
    hint: /API address of the daemon/,
  },
  { line: 'note send OWN TWO', code: 2, error: /Give the recipient and the body/, hint: /--text/ },
  { line: 'note send OWN TWO --text x --msg-type -1', code: 2, error: /--msg-type must be at least 0/, hint: /0/ },
  { line: 'chat send TWO hi --aid OWN', code: 4, error: /are not friends/, hint: /svc chat request/ },
  { line: 'chat request OWN --aid OWN', code: 2, error: /cannot do this with itself/, hint: /svc agents/ },
  { line: 'chat accept TWO --aid OWN', code: 1, error: /no request from this peer/, hint: /svc chat contacts/ },
  { line: 'group read plans --aid OWN', code: 2, error: /"plans" is not a group/, hint: /svc group list/ },
  { line: 'object put DIR/none --aid OWN', code: 5, error: /none cannot be read/, hint: /none/ },
  {
    line: 'config get loglevel',
    code: 5,
    error: /Unknown configuration key "loglevel"/,
    hint: /Did you mean log_level\?/,
  },
  { line: 'config set log-levl debug', code: 2, error: /Unknown configuration key/, hint: /Did you mean log_level\?/ },
  { line: 'config set log_level loud', code: 2, error: /log_level must be one of/, hint: /debug, info, warn, error/ },
  { line: 'config set api_addr here', code: 2, error: /api_addr must be host:port/, hint: /host:port/ },
  {
    line: 'events --types chat.unred --aid OWN',
    code: 2,
    error: /Unknown event type "chat.unred"/,
    hint: /chat\.unread/,
  },
  { line: 'join svc://aid1/join/x', code: 2, error: /The invitation is damaged/, hint: /svc invite/ },
  { line: 'admin allow OWN --expires soon', code: 2, error: /argument 'soon' is invalid/, hint: /30m, 12h, 7d/ },
  { line: 'agents export OWN -o DIR/none/file', code: 1, error: /The directory .* does not exist/, hint: /none/ },
  {
    line: 'admin password',
    code: 2,
    error: /the lines differ/,
    hint: /first line is the secret/,
    input: 'one\ntwo\n',
  },
  { line: 'admin password short', code: 2, error: /--secret|password|secret/, hint: /at least \d+ characters/ },
  { line: 'group list', code: 2, error: /There are several agents: /, hint: /Name one with --as.*"svc use <agent>"/ },
  { line: 'get FAR', code: 2, error: /There are several agents: /, hint: /Name one with --as.*"svc use <agent>"/ },
  { line: 'note list', code: 2, error: /There are several agents: /, hint: /Name one with --as.*"svc use <agent>"/ },
  { line: 'group list --as nobody', code: 2, error: /"nobody" is neither an AID nor a label/, hint: /svc alias list/ },
  { line: 'group list --as OWN --aid TWO', code: 2, error: /Two agents are named/, hint: /Omit one/ },
  { line: 'version --as OWN', code: 2, error: /No agent acts in this command/, hint: /Omit --as/ },
  { line: 'use FAR', code: 5, error: /This agent is not registered here/, hint: /svc agents/ },
  { line: 'use OWN --via FAR', code: 4, error: /selects an agent of this machine/, hint: /--as/ },
  { line: 'alias add 127.0.0.1 FAR', code: 2, error: /looks like an AID, a key, a host/, hint: /Choose another label/ },
  { line: 'alias add aid1bob FAR', code: 2, error: /looks like an AID/, hint: /Choose another label/ },
  { line: 'alias del nobody', code: 5, error: /No agent has the label "nobody"/, hint: /svc alias list/ },
  { line: 'ssh -v OWN', code: 2, error: /unknown option '-v'/, hint: /svc ssh --help/ },
  { line: 'inbound unbnd', code: 2, error: /unknown command 'unbnd'/, hint: /Did you mean svc inbound unbind\?/ },
  { line: 'completion pwsh', code: 2, error: /'pwsh' is invalid for argument 'shell'/, hint: /powershell/ },
  { line: 'status --api 127.0.0.1:1', code: 3, error: /No daemon answers at/, hint: /Start it with "svcd"/ },
  {
    line: 'config get loglevel',
    code: 5,
    error: /SVC_TOKN is unknown/,
    hint: /mean SVC_TOKEN\?/,
    env: { SVC_TOKN: 'x' },
  },
];

test('forty mistakes: each gets a clear error, an exit code and a hint', async (t) => {
  const directory = temporaryDirectory(t);
  writeFileSync(join(directory, 'text'), 'no agent');
  await using daemon = await TestDaemon.start();
  const [own, two] = [await daemon.newAgent(), await daemon.newAgent()];
  const meant: Readonly<Record<string, string>> = {
    OWN: own,
    TWO: two,
    FAR: newIdentity().aid,
    DIR: directory,
    API: daemon.api.replace('http://', ''),
  };
  for (const { line, code, error: says, hint: next, env = {}, input = '' } of MISTAKES) {
    const args = line.split(' ').map((word) => word.replace(/^(?:OWN|TWO|FAR|DIR|API)/, (name) => meant[name] ?? name));
    const result = await runSvc(args, { env: { SVC_API: daemon.api, ...env }, input });
    assert.equal(result.stdout, '', line);
    assert.match(result.stderr, says, line);
    assert.match(result.stderr, next, line);
    assert.equal(result.code, code, `${line}\n${result.stderr}`);
    assert.doesNotMatch(
      result.stderr,
      /must match|must be [<>]|pattern|schema|Invalid (body|path|query|request)|\bat \/|_aid\b/,
      line,
    );
    // Programs get the same in JSON.
    const { code: jsonCode, stderr } = await runSvc([...args, '--json'], {
      env: { SVC_API: daemon.api, ...env },
      input,
    });
    assert.equal(jsonCode, code, line);
    assert.equal(typeof (JSON.parse(stderr) as { error: unknown }).error, 'string', line);
  }
});

test('a second daemon whose ports are in use prints one message, with a command that works', async (t) => {
  await using daemon = await TestDaemon.start();
  const directory = temporaryDirectory(t);
  const api = daemon.api.replace('http://', '');
  const args = ['bin/svcd', '--data-dir', directory, '--no-open-browser'];
  for (const ports of [
    ['--listen', daemon.dhtAddress, '--api-addr', '127.0.0.1:0'],
    ['--listen', '127.0.0.1:0', '--api-addr', api],
  ]) {
    const { status, stderr } = spawnSync(process.execPath, [...args, ...ports], { encoding: 'utf8' });
    assert.equal(status, 1);
    const output = stderr.split('\n').filter((line) => line.startsWith('svcd: '));
    assert.equal(output.length, 1, stderr);
    assert.match(output[0] ?? '', /: svcd --data-dir \.\/second --listen :0 --api-addr 127\.0\.0\.1:0 \(/);
    assert.match(output[0] ?? '', /\(its status: SVCD_DATA_DIR=\.\/second svc status\)$/);
  }
  await using second = await TestDaemon.start({ args: ['--listen', ':0', '--api-addr', '127.0.0.1:0'] });
  assert.notEqual(second.api, daemon.api);
});

/** Simulates a disk with 8 MiB of free space. */
const FULL = `
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
const { statfsSync } = fs;
fs.statfsSync = (...at) => Object.assign(statfsSync(...at), { bavail: 2048, bsize: 4096 });
syncBuiltinESMExports();`;

test('the doctor examines the daemon that the user names, by address or by data directory', async () => {
  await using one = await TestDaemon.start();
  await using two = await TestDaemon.start();
  const examine = async (args: readonly string[], env: Readonly<Record<string, string>>) =>
    (await runSvc([...args, 'doctor'], { env, dataDir: one.dataDir })).stdout;
  const reports = [
    await examine(['--api', two.api], { SVC_API: one.api, SVCD_DATA_DIR: one.dataDir }),
    await examine([], { SVC_API: two.api }),
    await examine([], { SVCD_DATA_DIR: two.dataDir }),
  ];
  for (const report of reports) {
    assert.ok(report.includes(`the daemon responds at ${two.api}`), report);
    assert.ok(report.includes(two.dataDir), report);
    assert.ok(!report.includes(one.dataDir) && !report.includes(one.api), report);
  }
});

test('a mistyped key of config.toml gets a suggestion', (t) => {
  const directory = temporaryDirectory(t);
  writeFileSync(join(directory, 'config.toml'), 'log_levl = "info"\n', { mode: 0o600 });
  const { status, stderr } = spawnSync(process.execPath, ['bin/svcd', '--data-dir', directory], { encoding: 'utf8' });
  assert.equal(status, 2);
  assert.match(stderr, /line 1: log_levl is not .*did you mean log_level\?/);
});

test('the status begins with a full disk', async () => {
  const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(FULL)}`;
  await using daemon = await TestDaemon.start({ env: { NODE_OPTIONS } });
  const { stdout } = await runSvc(['status'], { env: { SVC_API: daemon.api } });
  assert.match(stdout, /^problems: +the disk is full: /);
});

test('svc mcp use fails for an agent that is no MCP server, and adds an entry only for one that may be offline', async (t) => {
  const home = temporaryDirectory(t);
  await using daemon = await TestDaemon.start();
  await using web = await EchoService.start();
  const closing = createServer((request) => request.socket.destroy());
  t.after(() => closing.close());
  await once(closing.listen(0, '127.0.0.1'), 'listening');
  const me = await daemon.newAgent();
  const webAid = await daemon.newAgent(web.address);
  const closingAid = await daemon.newAgent(`127.0.0.1:${(closing.address() as AddressInfo).port}`);
  const use = (agent: string, ...more: readonly string[]) =>
    runSvc(['mcp', 'use', agent, '--as', me, ...more], { env: { SVC_API: daemon.api, HOME: home } });
  const entries = join(home, '.cursor/mcp.json');
  for (const more of [[], ['--into', 'cursor']]) {
    const { code, stdout, stderr } = await use(webAid, ...more);
    assert.equal(code, 1, stderr);
    assert.equal(stdout, '');
    assert.match(
      stderr,
      new RegExp(`^svc: ${webAid} is not an MCP server\\. It responds with status 200, .*svc mcp share`),
    );
  }
  const offline = await use(closingAid);
  assert.equal(offline.code, 1);
  assert.match(offline.stdout, /no response now \(The remote agent is reachable, but its service gives no answer/);
  assert.equal(offline.stderr, `svc: ${closingAid} does not respond as an MCP server.\n`);
  assert.ok(!existsSync(entries));
  assert.equal((await use(closingAid, '--into', 'cursor')).code, 0);
  assert.ok(existsSync(entries));
});

test('serve names only the uses that the service admits', async () => {
  await using daemon = await TestDaemon.start();
  const aid = await daemon.newAgent();
  const named = async (address: string) => {
    const { stderr } = await runSvc(['serve', address, '--aid', aid, '--replace'], { env: { SVC_API: daemon.api } });
    return ['svc get', 'svc tunnel open'].filter((command) => stderr.includes(command));
  };
  assert.deepEqual(await named('tcp://127.0.0.1:9'), ['svc tunnel open']);
  assert.deepEqual(await named('http://127.0.0.1:9'), ['svc get']);
  assert.deepEqual(await named('127.0.0.1:9'), ['svc get', 'svc tunnel open']);
});
