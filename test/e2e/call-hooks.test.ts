/** Programs that answer calls (`svc on call`). */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { dirname, join, resolve } from 'node:path';
import { type TestContext, test } from 'node:test';
import { MAX_HOOK_CALL_BYTES } from '../../src/foundation/domain/hooks.ts';
import { listening } from '../../src/foundation/stream-listeners.ts';
import { addHook } from '../support/add-hook.ts';
import { runSvc } from '../support/cli-run.ts';
import { TestDaemon } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { FIXTURE } from '../support/shared-mcp.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const PROGRAM = `
const { readFileSync, writeSync } = require('node:fs');
const { call, from } = JSON.parse(readFileSync(0));
console.error('a note for the owner');
if (call.path === '/fail') process.exit(7);
if (call.path === '/bytes') writeSync(1, Buffer.from([0xff, 0x00]));
else if (call.path === '/text') process.stdout.write('plain');
else process.stdout.write(JSON.stringify({ from, call }));
`;

async function world(t: TestContext) {
  const daemon = await TestDaemon.start();
  t.after(() => daemon.stop());
  const folder = temporaryDirectory(t);
  writeFileSync(join(folder, 'answer.cjs'), PROGRAM);
  const [caller, called] = [await daemon.newAgent(), await daemon.newAgent()];
  const command = [process.execPath, join(folder, 'answer.cjs')];
  const id = await addHook(daemon, { aid: called, kind: 'call', command, folder });
  const fetch = (method: string, path: string, body?: string) =>
    daemon.call<{ status: number; headers: Record<string, string[]>; body: string }>('POST', `/fetch/${called}`, {
      local_aid: caller,
      method,
      path,
      headers: { 'X-Two': ['a', 'b'], 'Svc-Caller-Aid': 'aid1forged' },
      ...(body === undefined ? {} : { body_base64: Buffer.from(body, 'latin1').toString('base64') }),
    });
  return { daemon, folder, caller, called, command, id, fetch };
}

test('a program answers calls, without a service', async (t) => {
  const { daemon, caller, id, fetch } = await world(t);
  const answered = await fetch('POST', '/a?b=c', 'hällo');
  assert.equal(answered.status, 200);
  assert.deepEqual(answered.headers['content-type'], ['application/json']);
  const { from, call } = JSON.parse(Buffer.from(answered.body, 'base64').toString()) as {
    from: string;
    call: { headers: Record<string, string> } & Record<string, unknown>;
  };
  assert.equal(from, caller);
  const { headers, ...request } = call;
  assert.deepEqual(request, {
    method: 'POST',
    path: '/a?b=c',
    body_base64: Buffer.from('hällo', 'latin1').toString('base64'),
  });
  const { traceparent: _, ...own } = headers;
  assert.deepEqual(own, { 'x-two': 'a, b' });
  const text = await fetch('GET', '/text');
  assert.deepEqual(text.headers['content-type'], ['text/plain; charset=utf-8']);
  const bytes = await fetch('GET', '/bytes');
  assert.deepEqual(bytes.headers['content-type'], ['application/octet-stream']);
  assert.equal(bytes.body, '/wA=');
  const head = await fetch('HEAD', '/text');
  assert.deepEqual([head.status, head.body], [200, '']);
  const { deliveries } = await daemon.call<{ deliveries: { from: string }[] }>('GET', `/hooks/${id}/deliveries`);
  assert.deepEqual(
    deliveries.map((one) => one.from),
    Array.from({ length: 4 }, () => caller),
  );
});

test('a program finds svc, after the programs of the user', async (t) => {
  const folder = temporaryDirectory(t);
  // Without a folder that contains svc, and possibly without Node.
  const daemon = await TestDaemon.start({ env: { PATH: `${folder}:/usr/bin:/bin` } });
  t.after(() => daemon.stop());
  const aid = await daemon.newAgent();
  const answer = async (): Promise<string> => (await fetch(`${daemon.api}/aid/${aid}/`)).text();
  const command = ['echo "$PATH"; svc whoami --quiet'];
  await addHook(daemon, { aid, kind: 'call', command, shell: true, folder });
  const folders = [folder, '/usr/bin', '/bin', resolve('bin'), dirname(process.execPath)];
  assert.equal(await answer(), `${folders.join(':')}\n${aid}\n`);
  writeFileSync(join(folder, 'svc'), '#!/bin/sh\necho my own', { mode: 0o755 });
  assert.equal(await answer(), `${folders.join(':')}\nmy own\n`);
});

test('commands about a service name the hook that answers its calls', async (t) => {
  const { daemon, called, folder, id } = await world(t);
  const env = { SVC_API: daemon.api };
  const svc = async (line: string): Promise<string> => {
    const { code, stderr } = await runSvc(line.split(' '), { env, dataDir: daemon.dataDir });
    assert.equal(code, 0, `${line}: ${stderr}`);
    return stderr;
  };
  const [first, rest] = [`Calls of all callers to ${called} reach`, `"svc hooks rm ${id}" ends this.`];
  const lines = [
    `serve 127.0.0.1:9 --replace --aid ${called}`,
    'serve',
    `agents get ${called}`,
    `mcp share --on-demand --replace --aid ${called} -- ${process.execPath} ${FIXTURE}`,
    `on call --as ${called} --dir ${folder} -- ${process.execPath}`,
  ];
  for (const line of lines) {
    const shown = await svc(line);
    assert.ok(shown.includes(first) && shown.includes(rest), `${line}: ${shown}`);
  }
  const { hooks } = await daemon.call<{ hooks: { id: string }[] }>('GET', '/hooks');
  for (const one of hooks) await daemon.call('PATCH', `/hooks/${one.id}`, { paused: true });
  for (const line of lines.slice(0, 4)) assert.doesNotMatch(await svc(line), /hook/, line);
});

test('a failed program, a large request, and a paused hook', async (t) => {
  const { daemon, folder, called, id } = await world(t);
  const gateway = (path: string, init: RequestInit = {}) => fetch(`${daemon.api}/aid/${called}${path}`, init);
  const failed = await gateway('/fail');
  assert.equal(failed.status, 502);
  const { error, message } = (await failed.json()) as { error: string; message: string };
  assert.deepEqual(
    [error, message],
    ['bad_response', 'The program that answers calls of the remote agent failed. Its owner can see why.'],
  );
  const large = await gateway('/', { method: 'POST', body: 'x'.repeat(MAX_HOOK_CALL_BYTES + 1) });
  assert.equal(large.status, 413);
  assert.equal((await gateway('/', { method: 'POST', body: 'x'.repeat(MAX_HOOK_CALL_BYTES) })).status, 200);

  const server = createServer((_, response) => response.end('the service')).listen(0, '127.0.0.1');
  t.after(() => server.close());
  await listening(server);
  const address = server.address();
  const port = address !== null && typeof address === 'object' ? address.port : 0;
  await daemon.call('PATCH', `/agents/${called}`, { service_tcp: `127.0.0.1:${port}` });
  assert.equal(await (await gateway('/text')).text(), 'plain');
  await daemon.call('PATCH', `/hooks/${id}`, { paused: true });
  assert.equal(await (await gateway('/text')).text(), 'the service');
  await daemon.call('DELETE', `/hooks/${id}`);
  await addHook(daemon, { aid: called, kind: 'call', command: ['/nowhere/program'], folder });
  assert.equal((await gateway('/text')).status, 502);
});

test('a request for access starts a program, which can allow it', async (t) => {
  const daemon = await TestDaemon.start();
  t.after(() => daemon.stop());
  const folder = temporaryDirectory(t);
  const [caller, called] = [await daemon.newAgent(), await daemon.newAgent()];
  await daemon.call('PATCH', `/agents/${called}/acl`, { default: 'ask' });
  const id = await addHook(daemon, { aid: called, kind: 'access', command: ['cat'], folder });
  const ask = () => daemon.request('POST', `/fetch/${called}`, { local_aid: caller, path: '/', note: 'Ada here' });
  assert.equal((await ask()).status, 403);
  const [delivery] = await eventually('the program has run', async () => {
    const path = `/hooks/${id}/deliveries?state=done`;
    const { deliveries } = await daemon.call<{ deliveries: { id: number; from: string }[] }>('GET', path);
    return deliveries.length === 1 && deliveries;
  });
  assert.equal(delivery?.from, caller);
  const path = `/hooks/${id}/deliveries/${delivery.id}`;
  const { output } = await daemon.call<{ output: string }>('GET', path);
  const { kind, access } = JSON.parse(output) as { kind: string; access: { id: string; kind: string; note: string } };
  assert.deepEqual([kind, access.kind, access.note], ['access', 'call', 'Ada here']);
  await daemon.call('POST', `/access/requests/${access.id}/allow`, {});
  assert.equal((await ask()).status, 503);
});
