import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { svc, svcJson, svcOk } from '../support/cli.ts';
import { TestDaemon } from '../support/daemon.ts';
import { type Echo, EchoService } from '../support/echo-service.ts';
import { eventually } from '../support/eventually.ts';
import { readAll } from '../support/link-world.ts';
import { TestNetwork } from '../support/network.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

test('the main job, through the command line alone', async (t) => {
  await using network = await TestNetwork.start(2);
  await using service = await EchoService.start();
  const [here, there] = [network.at(0), network.at(1)];
  const masterFile = join(temporaryDirectory(t), 'master.key');

  const mine = await svcOk(here, 'register', '--quiet', '--save-master', masterFile);
  assert.match(mine, /^aid1[a-z0-9]+$/);
  assert.equal(statSync(masterFile).mode & 0o777, 0o600);
  assert.match(readFileSync(masterFile, 'utf8'), /^[0-9a-f]{64}$/m);
  const theirs = await svcJson<{ aid: string; published: boolean; replicas: number }>(
    there,
    'register',
    '--service-tcp',
    service.address,
  );
  assert.equal(theirs.published, true);

  assert.match(
    await svcOk(
      there,
      'publish',
      'lang.translate',
      '--brief',
      'Translates',
      '--tag',
      'fast',
      '--protocol',
      'http',
      '-y',
    ),
    /Published lang\.translate/,
  );
  assert.equal(await svcOk(here, 'search', 'lang.translate', '--filter-tag', 'fast', '--quiet'), theirs.aid);
  assert.equal(await svcOk(here, 'search', 'lang.translate', '--filter-tag', 'slow', '--quiet'), '');
  assert.match(await svcOk(here, 'resolve', theirs.aid, '--quiet'), /^quic:\/\/127\.0\.0\.1:\d+$/);
  assert.match(await svcOk(here, 'info', theirs.aid), /endpoints:/);

  const got: Echo = JSON.parse(await svcOk(here, 'get', theirs.aid, '/x?y=1', '--header', 'X-Test: a'));
  assert.equal(got.url, '/x?y=1');
  assert.equal(got.headers['x-test'], 'a');
  assert.equal(got.headers['svc-caller-aid'], mine);
  const posted: Echo = JSON.parse(await svcOk(here, 'post', theirs.aid, '/z', '-d', '{"a":1}'));
  assert.equal(posted.body, '{"a":1}');
  assert.equal(posted.headers['content-type'], 'application/json');

  const listen = await svcOk(here, 'tunnel', 'open', theirs.aid, '--quiet');
  assert.equal((await fetch(`http://${listen}/tunnelled`)).status, 200);
  const { tunnels } = await svcJson<{ tunnels: { id: string; listen: string }[] }>(here, 'tunnel', 'status');
  assert.deepEqual(
    tunnels.map((one) => one.listen),
    [listen],
  );
  await svcOk(here, 'tunnel', 'reset', tunnels[0]?.id ?? '');
  await svcOk(here, 'tunnel', 'close', tunnels[0]?.id ?? '');
  assert.equal(await svcOk(here, 'tunnel', 'status', '--quiet'), '');
  const [host, port] = (await svcOk(here, 'connect', theirs.aid, '--quiet')).split(':');
  const socket = connect({ host: host ?? '', port: Number(port) });
  socket.end('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  assert.match((await readAll(socket)).toString(), /^HTTP\/1\.1 200/);

  assert.match(await svcOk(there, 'agents'), new RegExp(theirs.aid.slice(0, 12)));
  assert.match(await svcOk(there, 'agents', 'get', theirs.aid), /lang\.translate/);
  await svcOk(there, 'agents', 'topic', 'add', theirs.aid, 'lang.detect');
  await svcOk(there, 'agents', 'topic', 'del', theirs.aid, 'lang.detect');
  await svcOk(there, 'unpublish', 'lang.translate');
  await svcOk(there, 'agents', 'heartbeat', theirs.aid);
  assert.match(await svcOk(there, 'agents', 'publish', theirs.aid), /Published with seq \d+/);
  assert.match(await svcOk(there, 'agents', 'probe', theirs.aid), /responds in/);
  assert.match(await svcOk(there, 'inbound', 'bind', '--addr', `http://${service.address}`, '--replace'), /Calls to/);
  assert.match(await svcOk(there, 'agents', 'update', theirs.aid, '--service-tcp', ''), /none bound/);
});

test('an agent moves to another daemon by export and import', async (t) => {
  await using network = await TestNetwork.start(2);
  const file = join(temporaryDirectory(t), 'agent.json');
  const aid = await svcOk(network.at(0), 'agents', 'new', '--quiet', '--save-master', `${file}.master`);
  await svcOk(network.at(0), 'agents', 'export', aid, '-o', file);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.equal(
    (await svc(network.at(0), ['agents', 'export', aid, '-o', file])).code,
    1,
    'an existing file is never overwritten',
  );
  await svcOk(network.at(0), 'agents', 'del', aid, '-y');
  assert.equal((await svc(network.at(0), ['agents', 'get', aid])).code, 5);
  assert.equal(await svcOk(network.at(1), 'agents', 'import', file, '--quiet'), aid);
  assert.equal((await svcJson<{ aid: string }>(network.at(1), 'agents', 'get', aid)).aid, aid);
});

test('the saved master key replaces the operational key of an agent, and moves it to another daemon', async (t) => {
  await using network = await TestNetwork.start(3);
  const file = join(temporaryDirectory(t), 'master.key');
  const aid = await svcOk(network.at(0), 'register', '--quiet', '--save-master', file);
  await svcOk(network.at(0), 'publish', 'lang.translate', '-y');
  // Delegation times have a resolution of one second, and a delegation with the same time is not newer.
  const second = (): number => Math.floor(Date.now() / 1000);
  const first = second();
  await eventually('the next second', () => second() > first);
  assert.equal(await svcOk(network.at(0), 'register', '--quiet', '--master-key', file), aid);
  const { services } = await svcJson<{ services: unknown[] }>(network.at(0), 'agents', 'get', aid);
  assert.equal(services.length, 1, 'the agent keeps its services');
  await eventually('another second', () => second() > first + 1);
  assert.equal(await svcOk(network.at(1), 'register', '--quiet', '--master-key', file), aid);
  const found = await svcJson<{ endpoints: string[] }>(network.at(2), 'resolve', aid);
  assert.deepEqual(found.endpoints, [`quic://${network.at(1).quicAddress}`], 'the newer delegation wins');
});

test('nothing is registered when the master key cannot be saved', async (t) => {
  await using daemon = await TestDaemon.start();
  const file = join(temporaryDirectory(t), 'master.key');
  writeFileSync(file, 'the only copy of another identity');
  const { code, stderr } = await svc(daemon, ['register', '--save-master', file]);
  assert.equal(code, 1);
  assert.match(stderr, /exists and is never overwritten/);
  assert.equal(readFileSync(file, 'utf8'), 'the only copy of another identity');
  assert.equal(await svcOk(daemon, 'agents', '--quiet'), '');
});

test('exit codes distinguish failures', async () => {
  await using daemon = await TestDaemon.start({
    config: 'api_token = "a-token-of-enough-length"\nrequire_local_token = true\n',
  });
  const code = async (...args: string[]): Promise<number | null> => (await svc(daemon, args)).code;
  const token = ['--token', 'a-token-of-enough-length'];
  assert.equal(await code('status', ...token), 0);
  assert.equal(await code('status'), 4);
  assert.equal(await code('nonsense'), 2);
  assert.equal(await code('resolve', 'aid1nonsense', ...token), 2);
  assert.equal(await code('config', 'get', 'no_such_key', ...token), 5);
  assert.equal((await svc(daemon, ['status', '--api', 'http://127.0.0.1:9'])).code, 3);
  const failed = await svc(daemon, ['status', '--json']);
  assert.equal(JSON.parse(failed.stderr).error, 'unauthorized');
  assert.equal(failed.stdout, '');
});

test('the configuration is read and changed, and a secret comes from standard input', async () => {
  await using daemon = await TestDaemon.start();
  assert.equal(await svcOk(daemon, 'config', 'get', 'log_level'), 'info');
  assert.match(await svcOk(daemon, 'config', 'set', 'log_level', 'debug'), /applied/);
  assert.equal(await svcOk(daemon, 'config', 'get', 'log_level'), 'debug');
  assert.match(await svcOk(daemon, 'config', 'set', 'min_observed_peers', '5'), /after a restart/);
  assert.equal((await svc(daemon, ['config', 'set', 'api_token'], 'piped-token-of-length\n')).code, 0);
  assert.doesNotMatch(await svcOk(daemon, 'config', 'get'), /piped-token/);
  assert.match(readFileSync(join(daemon.dataDir, 'config.toml'), 'utf8'), /api_token = "piped-token-of-length"/);
  assert.equal((await svc(daemon, ['config', 'set', 'network', 'mine'])).code, 2);
});

test('help has examples, and completions are valid shell', async (t) => {
  await using daemon = await TestDaemon.start();
  for (const command of [['--help'], ['publish', '--help'], ['tunnel', 'open', '--help'], ['register', '--help']]) {
    const { code, stdout } = await svc(daemon, command);
    assert.equal(code, 0);
    assert.match(stdout, /Examples?:/, command.join(' '));
  }
  const directory = temporaryDirectory(t);
  const aid = await daemon.newAgent();
  await svcOk(daemon, 'alias', 'add', 'my laptop', aid);
  const file = join(directory, 'completion.sh');
  writeFileSync(file, await svcOk(daemon, 'completion', 'bash'));
  // As a plain bash does at a TAB, without the package bash-completion.
  const tab = (...words: string[]) => {
    const script = `svc() { "${process.execPath}" bin/svc "$@"; }
      source "$1" && shift && COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
      _svc_complete svc && printf '%s\n' "\${COMPREPLY[@]}"`;
    const args = ['--norc', '--noprofile', '-c', script, 'bash', file, 'svc', ...words];
    return spawnSync('bash', args, { encoding: 'utf8', env: { ...process.env, SVC_API: daemon.api } });
  };
  for (const [words, reply] of [
    [['tun'], 'tunnel\n'],
    [['tunnel', 'res'], 'reset\n'],
    [['agents', 'get', 'my'], 'my\\ laptop\n'],
    [['backup', ''], '\n'],
  ] as const) {
    const { stdout, stderr } = tab(...words);
    assert.deepEqual([stdout, stderr], [reply, ''], words.join(' '));
  }
});

test('registration gives an identity a label, but not one that is in use', async (t) => {
  await using daemon = await TestDaemon.start();
  const key = join(temporaryDirectory(t), 'master.key');
  const aid = await svcOk(daemon, 'register', '--label', 'Home', '--no-publish', '--quiet');
  const labels = () => daemon.call<{ aliases: object }>('GET', '/node/address-book');
  assert.deepEqual((await labels()).aliases, { [aid]: 'Home' });
  const taken = await svc(daemon, ['register', '--label', 'home', '--no-publish', '--save-master', key]);
  assert.equal(taken.code, 2);
  assert.match(taken.stderr, new RegExp(`"home" is the label of ${aid}`));
  const { agents } = await daemon.call<{ agents: unknown[] }>('GET', '/agents');
  assert.deepEqual([agents.length, existsSync(key)], [1, false], 'nothing was created for it');

  const unfit = await svc(daemon, ['register', '--label', 'two\u0007words', '--no-publish', '--quiet']);
  assert.equal(unfit.code, 0, 'the identity remains');
  assert.match(unfit.stderr, /could not get the label .*svc alias add/);
});
