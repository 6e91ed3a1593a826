import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PassThrough } from 'node:stream';
import { json } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { runCli } from '../../../src/surfaces/cli/program.ts';
import { runSvc } from '../../support/cli-run.ts';
import { newIdentity } from '../../support/identities.ts';

test('sends the timeout in milliseconds, and 0 for none', async (t) => {
  const asked: unknown[] = [];
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    asked.push(((await json(request)) as { timeout_ms?: number }).timeout_ms);
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ status: 200, headers: {}, body: '', truncated: false }));
  };
  const server = createServer((request, response) => void answer(request, response)).listen(0, '127.0.0.1');
  t.after(() => server.close());
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const { aid } = newIdentity();
  for (const args of [
    ['get', aid, '--timeout', '300'],
    ['post', aid, '--timeout', '0'],
    ['get', aid],
  ])
    assert.equal((await runSvc(['--api', `http://127.0.0.1:${port}`, ...args])).code, 0);
  assert.deepEqual(asked, [300_000, 0, undefined]);
  assert.equal((await runSvc(['get', aid, '--timeout', '601'])).code, 2);
});

/** A daemon that answers every call with an empty response. */
async function daemon(t: TestContext, onBody = (_body: Buffer): void => {}) {
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { body_base64 } = (await json(request)) as { body_base64: string };
    onBody(Buffer.from(body_base64, 'base64'));
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ status: 200, headers: {}, body: '', truncated: false }));
  };
  const server = createServer((request, response) => void answer(request, response)).listen(0, '127.0.0.1');
  t.after(() => server.close());
  await once(server, 'listening');
  return { server, port: (server.address() as AddressInfo).port };
}

/** Runs `svc post … -d -` with these bytes on standard input. Returns the bytes in the request to the daemon. */
async function posted(t: TestContext, input: Buffer): Promise<Buffer> {
  const bodies: Buffer[] = [];
  const { port } = await daemon(t, (body) => bodies.push(body));
  const stdin = new PassThrough();
  stdin.end(input);
  const io = { stdin, stdout: new PassThrough(), stderr: new PassThrough(), env: {} };
  const args = ['--api', `http://127.0.0.1:${port}`, 'post', newIdentity().aid, '/upload', '-d', '-'];
  assert.equal(await runCli(args, io, { version: '0', dataDir: '/nonexistent' }), 0);
  return bodies[0] ?? Buffer.alloc(0);
}

test('sends a body from standard input unchanged', async (t) => {
  const bytes = Buffer.from([0xff, 0x00, 0xc3, 0x28, 0x0d, 0x0a]);
  assert.deepEqual(await posted(t, bytes), bytes);
});

test('shows no progress while the body is typed', async (t) => {
  const { server, port } = await daemon(t);
  let now = 0;
  t.mock.method(performance, 'now', () => (now += 1000));
  t.mock.timers.enable({ apis: ['setInterval'] });
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
  const io = { stdin, stdout, stderr: Object.assign(stderr, { isTTY: true as const }), env: {} };
  const args = ['--api', `http://127.0.0.1:${port}`, 'post', newIdentity().aid, '/', '-d', '-'];
  const ending = runCli(args, io, { version: '0', dataDir: '/nonexistent' });
  while (stdin.listenerCount('readable') + stdin.listenerCount('data') === 0) await setImmediate();
  await setImmediate();
  t.mock.timers.tick(1000);
  assert.equal(stderr.read(), null);
  const asked = once(server, 'request');
  stdin.end('{}');
  await asked;
  t.mock.timers.tick(1000);
  assert.match(String(stderr.read()), /Calling/);
  assert.equal(await ending, 0);
});

test('a body from standard input may be larger than a secret', async (t) => {
  const bytes = Buffer.alloc(700_000, 'row\n');
  assert.ok((await posted(t, bytes)).equals(bytes));
});

test('a truncated response is an error, which names its status, and is not printed', async (t) => {
  const part = Buffer.from('the first part').toString('base64');
  const server = createServer((_request, response) => {
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ status: 500, headers: {}, body: part, truncated: true }));
  }).listen(0, '127.0.0.1');
  t.after(() => server.close());
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  for (const method of ['get', 'post'])
    for (const options of [[], ['--quiet'], ['--json']]) {
      const args = ['--api', `http://127.0.0.1:${port}`, ...options, method, newIdentity().aid];
      const { code, stdout, stderr } = await runSvc(args);
      assert.equal(code, 1, args.join(' '));
      // Programs read from the JSON that the body was cut.
      if (options[0] === '--json') assert.equal(JSON.parse(stdout).truncated, true);
      else assert.match(stderr, /status 500\..*longer than 4 MiB.*svc open/);
      if (options[0] !== '--json') assert.equal(stdout, '');
    }
});
