import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { Semaphore } from '../../../src/foundation/concurrency.ts';
import { AnsweringDaemon } from '../../support/answering-daemon.ts';
import { runSvc } from '../../support/cli-run.ts';
import { commandLines } from '../../support/command-lines.ts';
import { hostileDaemon } from '../../support/hostile-daemon.ts';
import { newIdentity } from '../../support/identities.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

const { aid } = newIdentity();

/** An output whose writes fail starting with one of them, counted from 0. */
function failing(code: string, from = 0): Writable & { readonly taken: string[] } {
  const taken: string[] = [];
  const stream = new Writable({
    decodeStrings: false,
    write(chunk: unknown, _encoding, done) {
      if (taken.length >= from) return done(Object.assign(new Error(`${code}: write`), { code }));
      taken.push(String(chunk));
      done();
    },
  });
  return Object.assign(stream, { taken });
}

/** Commands that print a secret once: for them a closed pipe is a failure. */
const ONCE =
  /^(?:register|agents new|agents new-\w+|identity new|identity new-\w+|(?:agents acl|admin) allow|agents export|expose token add)$/;

test('no command loses its output silently', async (t) => {
  const api = await hostileDaemon(t, aid, false);
  const directory = temporaryDirectory(t);
  const running = new Semaphore(16);
  let failed = 0;
  const runs = (await commandLines(aid)).map(({ name, line }) =>
    running.run(async () => {
      const env = { SVC_API: api, HOME: directory };
      const whole = await runSvc(line, { env });
      for (const way of [[], ['--json'], ['--quiet']]) {
        const args = [...way, ...line];
        const full = await runSvc(args, { env, stdout: failing('ENOSPC') });
        assert.doesNotMatch(full.stderr, /\n +at /, args.join(' '));
        if (whole.code === 0 && whole.stdout !== '' && way.length === 0) {
          assert.deepEqual([full.code, /\(ENOSPC\)/.test(full.stderr)], [1, true], `${args.join(' ')}: ${full.stderr}`);
          failed++;
        }
        const closed = await runSvc(args, { env, stdout: failing('EPIPE') });
        assert.doesNotMatch(closed.stderr, /\n +at /, args.join(' '));
        if (whole.code === 0 && way.length === 0)
          assert.equal(closed.code, ONCE.test(name) ? 1 : 0, `${args.join(' ')}: ${closed.stderr}`);
      }
    }),
  );
  await Promise.all(runs);
  assert.ok(failed > 80, `only ${failed} commands printed something`);
});

/** A daemon that registers and publishes on request. */
async function registering(t: Parameters<typeof AnsweringDaemon.start>[0]): Promise<AnsweringDaemon> {
  return AnsweringDaemon.start(t, (line, body) => {
    if (line.startsWith('GET /node/address-book')) return [200, { aliases: {}, favorites: [] }];
    if (/^GET \/agents(?:\?|$)/.test(line)) return [200, { agents: [] }];
    if (line === 'POST /agents') return [201, { aid, ...(body as object) }];
    return [200, { ok: true, seq: 1, replicas: 1, hooks: [], services: [] }];
  });
}

const MAKING = [
  ['register'],
  ['agents', 'new'],
  ['agents', 'new-eth'],
  ['serve', '8080', '--print-master'],
  ['register', '--json'],
];

test('registers no agent if its master key cannot be written', async (t) => {
  for (const args of MAKING)
    for (const code of ['ENOSPC', 'EPIPE']) {
      const daemon = await registering(t);
      const done = await runSvc(args, { env: { SVC_API: daemon.api }, stdout: failing(code) });
      assert.equal(done.code, 1, args.join(' '));
      assert.ok(done.stderr.includes(`cannot be written (${code})`), done.stderr);
      assert.ok(!daemon.asked.includes('POST /agents'), `${args.join(' ')}: ${daemon.asked.join(', ')}`);
    }
  const daemon = await registering(t);
  const quiet = await runSvc(['register', '--quiet'], { env: { SVC_API: daemon.api }, stderr: failing('ENOSPC') });
  assert.deepEqual([quiet.code, quiet.stdout, daemon.asked.includes('POST /agents')], [1, '', false]);
});

test('prints the master key of an agent that a command needs only to a terminal, or if the user wants it', async (t) => {
  const file = join(temporaryDirectory(t), 'key');
  for (const [options, terminal, code] of [
    [[], false, 2],
    [['--json'], false, 2],
    [['--print-master'], false, 0],
    [['--save-master', file], false, 0],
    [[], true, 0],
  ] as const) {
    const daemon = await registering(t);
    const run = { env: { SVC_API: daemon.api }, terminal };
    const done = await runSvc(['serve', '8080', ...options], run);
    assert.equal(done.code, code, `${options.join(' ')}: ${done.stderr}`);
    assert.equal(daemon.asked.includes('POST /agents'), code === 0);
    if (code !== 0) assert.match(done.stderr, /--save-master <file>, or print it with --print-master/);
  }
});

test('names an agent whose response was cut off after its key', async (t) => {
  const daemon = await registering(t);
  for (const code of ['ENOSPC', 'EPIPE']) {
    const stdout = failing(code, 1);
    const done = await runSvc(['register'], { env: { SVC_API: daemon.api }, stdout });
    assert.match(stdout.taken.join(''), /^aid: +(\S+)\nmaster key: +[0-9a-f]{64}\n$/);
    assert.equal(done.code, 1);
    assert.match(done.stderr, /The agent \S+ is registered\. If its master key was lost, delete it: svc agents rm/);
  }
});

test('prints the key before registering, as part of one document', async (t) => {
  const seen: string[] = [];
  const stdout = failing('none', Number.POSITIVE_INFINITY);
  const daemon = await AnsweringDaemon.start(t, (line) => {
    if (line === 'POST /agents') seen.push(stdout.taken.join(''));
    if (line === 'POST /agents') return [400, { error: 'bad_delegation', message: 'No.' }];
    return line.startsWith('GET /agents/') ? [404, { error: 'not_found' }] : [200, { agents: [] }];
  });
  const refused = await runSvc(['register', '--json'], { env: { SVC_API: daemon.api }, stdout });
  assert.equal(refused.code, 2);
  assert.match(seen.join(''), /"master_private_key_hex": "[0-9a-f]{64}"$/);
  const { master_private_key_hex: key, ...rest } = JSON.parse(stdout.taken.join('')) as Record<string, string>;
  assert.equal(key?.length, 64);
  assert.deepEqual(Object.keys(rest), ['aid']);
  assert.match(refused.stderr, /Nothing was registered\. Discard the master key/);
  const good = await registering(t);
  const made = await runSvc(['register', '--json', '--label', 'home'], { env: { SVC_API: good.api } });
  const document = JSON.parse(made.stdout) as Record<string, unknown>;
  assert.deepEqual(Object.keys(document).slice(0, 4), ['aid', 'label', 'master_private_key_hex', 'published']);
});

test('removes a secret that could not be shown', async (t) => {
  const entry = { id: 'ab'.repeat(8), secret: 's3cret', created_at: '2026-01-01T00:00:00.000Z' };
  const daemon = await AnsweringDaemon.start(t, (line) => [
    line.startsWith('POST') ? 201 : 200,
    { ok: true, ...entry },
  ]);
  for (const [args, path] of [
    [['agents', 'acl', 'allow', aid, '--generate'], `/agents/${aid}/acl/allow/${entry.id}`],
    [['admin', 'allow', '--generate'], `/node/remote-admin/allow/${entry.id}`],
  ] as const) {
    const done = await runSvc(args, { env: { SVC_API: daemon.api }, stdout: failing('EPIPE') });
    assert.deepEqual([done.code, /Nothing was changed/.test(done.stderr)], [1, true], done.stderr);
    assert.ok(daemon.asked.includes(`DELETE ${path}`), daemon.asked.join(', '));
  }
});

test('writes a file completely, and rejects a closed output and the null device for secrets', async (t) => {
  const daemon = await registering(t);
  const file = join(temporaryDirectory(t), 'out');
  const run = async (args: readonly string[], stdout: number | 'ignore') => {
    const env = { ...process.env, SVC_API: daemon.api };
    const child = spawn(process.execPath, ['bin/svc', ...args], { env, stdio: ['ignore', stdout, 'pipe'] });
    const stderr = child.stderr === null ? '' : await text(child.stderr);
    if (child.exitCode === null) await once(child, 'exit');
    return { code: child.exitCode, stderr };
  };
  const out = openSync(file, 'w');
  const help = await run(['--help'], out);
  closeSync(out);
  assert.deepEqual([help.code, /^Usage: svc[\s\S]*Exit codes/.test(readFileSync(file, 'utf8'))], [0, true]);
  const nothing = await run(['register'], 'ignore');
  assert.deepEqual([nothing.code, /closed or the null device/.test(nothing.stderr)], [1, true], nothing.stderr);
  if (existsSync('/dev/full')) {
    const full = openSync('/dev/full', 'w');
    for (const args of [['--version'], ['status', '--help'], ['agents', 'list'], ['identity', 'new'], ['register']])
      assert.match((await run(args, full)).stderr, /^svc: The output cannot be written \(ENOSPC\)/, args.join(' '));
    closeSync(full);
  }
  assert.ok(!daemon.asked.includes('POST /agents'), daemon.asked.join(', '));
});

test('ignores the proxy of the environment for the local daemon', async (t) => {
  const daemon = await AnsweringDaemon.start(t, () => [
    200,
    { object_id: 'ab', size: 1, url: 'svc://x', files_root: '' },
  ]);
  const file = join(temporaryDirectory(t), 'file');
  writeFileSync(file, '1');
  const proxy = 'http://127.0.0.1:9';
  const env = { ...process.env, SVC_API: daemon.api, NODE_USE_ENV_PROXY: '1', HTTP_PROXY: proxy, http_proxy: proxy };
  // The second command sends a stream.
  for (const args of [
    ['config', 'get'],
    ['object', 'put', file, '--aid', aid],
  ]) {
    const child = spawn(process.execPath, ['bin/svc', '--json', ...args], { env, stdio: ['ignore', 'ignore', 'pipe'] });
    const stderr = await text(child.stderr);
    assert.equal(stderr, '', args.join(' '));
  }
  assert.ok(
    daemon.asked.some((line) => line.startsWith('GET /config')),
    daemon.asked.join(', '),
  );
  assert.ok(
    daemon.asked.some((line) => /^POST .*\/cas\?/.test(line)),
    daemon.asked.join(', '),
  );
});
