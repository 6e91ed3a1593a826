import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { test } from 'node:test';
import { quoted } from '../../../src/surfaces/cli/commands/connect.ts';
import { AnsweringDaemon } from '../../support/answering-daemon.ts';
import { runSvc } from '../../support/cli-run.ts';
import { newIdentity } from '../../support/identities.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

const { aid } = newIdentity();

test('nc copies both directions until the other side ends', async (t) => {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    let got = '';
    socket.setEncoding('utf8').on('data', (text: string) => (got += text));
    socket.on('end', () => socket.end(`got ${got}`));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => server.close());
  const tunnel = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const daemon = await AnsweringDaemon.start(t, () => [200, { tunnel }]);
  const done = await runSvc(['nc', aid], { env: { SVC_API: daemon.api }, input: 'hello' });
  assert.deepEqual(done, { code: 0, stdout: 'got hello', stderr: '' });
  assert.deepEqual(daemon.asked, [`POST /connect/${aid}`]);
  const broken = await AnsweringDaemon.start(t, () => [200, { tunnel: '127.0.0.1:1' }]);
  assert.equal((await runSvc(['nc', aid], { env: { SVC_API: broken.api } })).code, 1);
  const refused = await runSvc(['nc', aid, '--via', aid], { env: { SVC_API: daemon.api } });
  assert.deepEqual([refused.code, /Omit --via/.test(refused.stderr)], [4, true]);
});

const TOKEN = 'the long token of the daemon';

test('ssh runs with this command as its proxy, and its exit code counts', async (t) => {
  const directory = temporaryDirectory(t);
  const output = join(directory, 'said');
  writeFileSync(
    join(directory, 'ssh'),
    `#!/bin/sh\nprintf '%s\\n' "$SVC_API" "$SVC_TOKEN" "$@" > '${output}'\nexit $CODE\n`,
  );
  chmodSync(join(directory, 'ssh'), 0o755);
  const daemon = await AnsweringDaemon.start(t, () => [200, { aliases: { [aid]: 'home' }, favorites: [] }], TOKEN);
  const env = { SVC_API: daemon.api, SVC_TOKEN: TOKEN, PATH: directory, CODE: '0' };
  assert.equal((await runSvc(['ssh', 'me@home', '--', 'ls', '-l'], { env })).code, 0);
  const [api, token, ...words] = readFileSync(output, 'utf8').trimEnd().split('\n');
  assert.deepEqual([api, token], [daemon.api, TOKEN]);
  assert.match(words[1] ?? '', new RegExp(`^ProxyCommand='[^']+' '[^']+' 'nc' '${aid}'$`));
  assert.deepEqual(words.toSpliced(1, 1), ['-o', '-o', `HostKeyAlias=${aid}`, `me@${aid}`, 'ls', '-l']);
  for (const code of [1, 2, 42, 255]) {
    const failed = await runSvc(['ssh', 'home'], { env: { ...env, CODE: String(code) } });
    assert.deepEqual([failed.code, failed.stderr], [code, '']);
  }
  assert.equal((await runSvc(['ssh', 'home', '--', '-p', '22', 'ls'], { env })).code, 0);
  assert.deepEqual(readFileSync(output, 'utf8').trimEnd().split('\n').slice(-4), [String(aid), '-p', '22', 'ls']);
  assert.equal((await runSvc(['ssh', '--', '-p', '22', 'home'], { env })).code, 2);
  assert.equal((await runSvc(['ssh', 'home'], { env: { ...env, PATH: '/nonexistent' } })).code, 5);
});

test('open prints the URL if there is no browser', async (t) => {
  const daemon = await AnsweringDaemon.start(t, () => [201, { id: '0123456789abcdef', url: 'http://127.0.0.1:7' }]);
  const { code, stdout } = await runSvc(['open', aid, '/docs'], { env: { SVC_API: daemon.api } });
  assert.deepEqual([code, stdout, daemon.asked], [0, 'http://127.0.0.1:7/docs\n', [`POST /origins/${aid}`]]);
});

test('nc sends all input after the other side closed its half', async (t) => {
  let got = 0;
  const sent = Promise.withResolvers<void>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.end('ready\n');
    socket.on('data', (bytes: Buffer) => (got += bytes.length)).once('end', sent.resolve);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => server.close());
  const tunnel = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const daemon = await AnsweringDaemon.start(t, () => [200, { tunnel }]);
  const input = 'u'.repeat(4_000_000);
  const done = await runSvc(['nc', aid], { env: { SVC_API: daemon.api }, input });
  await sent.promise;
  assert.deepEqual([done.code, done.stdout, got], [0, 'ready\n', input.length], done.stderr);
});

test('nc reports a failed output or connection', async (t) => {
  const server = createServer((socket) => void socket.write('hello', () => socket.resetAndDestroy()));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => server.close());
  let tunnel = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const daemon = await AnsweringDaemon.start(t, () => [200, { tunnel }]);
  const env = { SVC_API: daemon.api };
  const reset = await runSvc(['nc', aid], { env });
  assert.deepEqual([reset.code, reset.stderr.split('\n')[0]], [1, 'svc: The connection was lost (ECONNRESET).']);
  const stdout = new Writable({
    write: (_chunk, _encoding, done) => done(Object.assign(new Error(), { code: 'EPIPE' })),
  });
  const talking = createServer((socket) => void socket.write('hello'));
  await once(talking.listen(0, '127.0.0.1'), 'listening');
  t.after(() => talking.close());
  tunnel = `127.0.0.1:${(talking.address() as AddressInfo).port}`;
  const unread = await runSvc(['nc', aid], { env, stdout });
  assert.deepEqual([unread.code, unread.stderr], [1, 'svc: The output cannot be written (EPIPE).\n']);
});

test('a signal to svc ssh stops ssh', async (t) => {
  const directory = temporaryDirectory(t);
  writeFileSync(join(directory, 'ssh'), '#!/bin/sh\necho running\nexec sleep 60\n');
  chmodSync(join(directory, 'ssh'), 0o755);
  const env = { ...process.env, SVC_API: 'http://127.0.0.1:1', PATH: `${directory}:${process.env['PATH'] ?? ''}` };
  for (const [signal, code] of [
    ['SIGTERM', 143],
    ['SIGHUP', 129],
    ['SIGINT', 130],
  ] as const) {
    const child = spawn(process.execPath, ['bin/svc', 'ssh', aid], { env, stdio: ['ignore', 'pipe', 'inherit'] });
    await once(child.stdout, 'data');
    child.kill(signal);
    // The pipe closes after ssh, which holds it, has exited too.
    const [ended] = (await once(child, 'close')) as [number | null];
    assert.equal(ended, code, signal);
  }
});

test('words of the proxy command of ssh are quoted for the system', () => {
  assert.equal(quoted("a 'b' 100%", 'linux'), "'a '\\''b'\\'' 100%%'");
  assert.equal(quoted('C:\\Program Files\\100%', 'win32'), '"C:\\Program Files\\100%%"');
});
