import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { runSvc } from '../support/cli-run.ts';
import { TestDaemon } from '../support/daemon.ts';
import { newIdentity } from '../support/identities.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

/** What people get wrong, and what they are told. */
interface Mistake {
  readonly line: string;
  readonly code: number;
  /** What was wrong, as it is said. */
  readonly says: RegExp;
  /** What helps: a command, a value, or the words of the right form. */
  readonly next: RegExp;
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
}

/** `OWN` and `TWO` are agents here, `FAR` is one that nobody knows, `DIR` is a folder. */
const MISTAKES: readonly Mistake[] = [
  { line: 'staus', code: 2, says: /unknown command 'staus'/, next: /Did you mean status\?/ },
  { line: 'tunel open FAR', code: 2, says: /unknown command 'tunel'/, next: /Did you mean tunnel\?/ },
  { line: 'tunnel opne FAR', code: 2, says: /unknown command 'opne'/, next: /Did you mean open\?/ },
  { line: 'service install', code: 2, says: /unknown command/, next: /of the daemon: svcd service/ },
  { line: 'start', code: 2, says: /unknown command/, next: /of the daemon: svcd$/m },
  { line: 'update --chek', code: 2, says: /unknown option/, next: /Did you mean --check\?/ },
  { line: 'get', code: 2, says: /missing required argument 'aid'/, next: /svc get --help/ },
  {
    line: 'agents update OWN',
    code: 2,
    says: /--service-tcp <address>' not specified/,
    next: /svc agents update --help/,
  },
  { line: 'get bob', code: 2, says: /"bob" is neither an AID nor a label/, next: /svc alias list/ },
  { line: 'get FARx', code: 2, says: /is neither an AID nor a label/, next: /typos/ },
  {
    line: 'get FAR health --local-aid OWN',
    code: 2,
    says: /A path must begin with "\/"/,
    next: /svc get \S+ \/health/,
  },
  { line: 'get FAR / --header x --local-aid OWN', code: 2, says: /"x" is not a header/, next: /Name:value/ },
  { line: 'get FAR --local-aid OWN', code: 5, says: /was not found in the network/, next: /svc netcheck/ },
  { line: 'get TWO --local-aid OWN', code: 1, says: /has no service bound/, next: /svc inbound bind/ },
  { line: 'publish lang.translate', code: 2, says: /There are several agents|several agents/i, next: /aid/ },
  { line: 'publish Bad! --aid OWN', code: 2, says: /A service name is 1 to 128 characters/, next: /lang\.translate/ },
  { line: 'publish a.b --aid OWN --ttl 1', code: 2, says: /^svc: --ttl must be at least 10\.$/m, next: /10/ },
  {
    line: 'tunnel open TWO --local-aid OWN --local-port 99999',
    code: 2,
    says: /--local-port must be at most 65535/,
    next: /65535/,
  },
  { line: 'tunnel open TWO --local-port http', code: 2, says: /Not an integer/, next: /svc tunnel open --help/ },
  { line: 'tunnel close 12345678', code: 5, says: /No tunnel starts with/, next: /svc tunnel status/ },
  { line: 'tunnel close first', code: 2, says: /"first" is not a tunnel/, next: /svc tunnel status/ },
  { line: 'agents get FAR', code: 5, says: /This agent is not registered here/, next: /svc agents/ },
  { line: 'agents del OWN', code: 2, says: /Nothing was done: this cannot be undone/, next: /Use -y/ },
  {
    line: 'agents profile set OWN --skill a --skill b --skill c --skill d',
    code: 2,
    says: /--skill may be given at most 3 times/,
    next: /3 times/,
  },
  { line: 'agents import DIR/none', code: 5, says: /none cannot be read/, next: /ENOENT/ },
  { line: 'agents import DIR/text', code: 2, says: /is not an exported agent/, next: /damaged/ },
  {
    line: 'register --service-tcp 8080',
    code: 2,
    says: /Invalid service address/,
    next: /not a host and a port/,
  },
  {
    line: 'register --save-master DIR/text',
    code: 1,
    says: /exists and is never overwritten/,
    next: /Choose another name/,
  },
  { line: 'register --master-key DIR/none', code: 2, says: /neither a private key/, next: /64 hex characters/ },
  {
    line: 'inbound bind --addr API --aid OWN',
    code: 2,
    says: /Invalid service address/,
    next: /API address of the daemon/,
  },
  { line: 'note send OWN TWO', code: 2, says: /Give sender, recipient and body/, next: /--text/ },
  { line: 'note send OWN TWO --text x --msg-type -1', code: 2, says: /--msg-type must be at least 0/, next: /0/ },
  { line: 'chat send TWO hi --aid OWN', code: 4, says: /are not friends/, next: /svc chat request/ },
  { line: 'chat request OWN --aid OWN', code: 2, says: /cannot do this with itself/, next: /svc agents/ },
  { line: 'chat accept TWO --aid OWN', code: 1, says: /has sent no request/, next: /svc chat contacts/ },
  { line: 'group read plans --aid OWN', code: 2, says: /"plans" is not a group/, next: /svc group list/ },
  { line: 'object put DIR/none --aid OWN', code: 5, says: /none cannot be read/, next: /none/ },
  {
    line: 'config get loglevel',
    code: 5,
    says: /Unknown configuration key "loglevel"/,
    next: /Did you mean log_level\?/,
  },
  { line: 'config set log-levl debug', code: 2, says: /Unknown configuration key/, next: /Did you mean log_level\?/ },
  { line: 'config set log_level loud', code: 2, says: /log_level must be one of/, next: /debug, info, warn, error/ },
  { line: 'config set api_addr here', code: 2, says: /api_addr must be host:port/, next: /host:port/ },
  {
    line: 'events --types chat.unred --aid OWN',
    code: 2,
    says: /Unknown event type "chat.unred"/,
    next: /chat\.unread/,
  },
  { line: 'join svc://aid1/join/x', code: 2, says: /The invitation is damaged/, next: /svc invite/ },
  { line: 'admin allow OWN --expires soon', code: 2, says: /argument 'soon' is invalid/, next: /30m, 12h, 7d/ },
  { line: 'agents export OWN -o DIR/none/file', code: 1, says: /The directory .* does not exist/, next: /none/ },
  {
    line: 'admin password',
    code: 2,
    says: /the lines differ/,
    next: /first line is the secret/,
    input: 'one\ntwo\n',
  },
  { line: 'status --api 127.0.0.1:1', code: 3, says: /No daemon answers at/, next: /Start it with "svcd"/ },
  {
    line: 'config get loglevel',
    code: 5,
    says: /SVC_TOKN is unknown/,
    next: /mean SVC_TOKEN\?/,
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
  for (const { line, code, says, next, env = {}, input = '' } of MISTAKES) {
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
    // Programs read the same as JSON.
    const { code: jsonCode, stderr } = await runSvc([...args, '--json'], {
      env: { SVC_API: daemon.api, ...env },
      input,
    });
    assert.equal(jsonCode, code, line);
    assert.equal(typeof (JSON.parse(stderr) as { error: unknown }).error, 'string', line);
  }
});

test('a second daemon whose ports are taken is told once, with a line that works', async (t) => {
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
    const said = stderr.split('\n').filter((line) => line.startsWith('svcd: '));
    assert.equal(said.length, 1, stderr);
    assert.match(said[0] ?? '', /: svcd --data-dir \.\/second --listen :0 --api-addr 127\.0\.0\.1:0$/);
  }
  await using second = await TestDaemon.start({ args: ['--listen', ':0', '--api-addr', '127.0.0.1:0'] });
  assert.notEqual(second.api, daemon.api);
});
