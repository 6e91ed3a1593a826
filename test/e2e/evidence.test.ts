/**
 * Evidence through two daemons: a program calls at a local address, and the service proves the caller with a page of
 * code.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Aid } from '../../src/foundation/identity/aid.ts';
import { svc, svcOk } from '../support/cli.ts';
import { TestDaemon } from '../support/daemon.ts';
import { documentedVerifier, type ServedCall } from '../support/evidence-world.ts';
import { ready } from '../support/network.ts';

test('the service proves its callers after svc evidence enables it, also after restarts', async (t) => {
  const provenCaller = await documentedVerifier();
  const asked: ServedCall[] = [];
  const service = createServer((request, response) => {
    const { method = '', url = '', headers, rawHeaders } = request;
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.once('end', () => {
      asked.push({ method, url, headers, rawHeaders, body: Buffer.concat(chunks) });
      response.end('ok');
    });
  });
  service.listen(0, '127.0.0.1');
  await once(service, 'listening');
  t.after(() => {
    service.closeAllConnections();
    service.close();
  });
  const address = service.address();
  assert.ok(typeof address === 'object' && address !== null);
  const dataDir = mkdtempSync(join(tmpdir(), 'svcd-evidence-'));
  t.after(() => rmSync(dataDir, { recursive: true, force: true }));
  const far = await TestDaemon.start();
  t.after(() => far.stop());
  const nearOptions = { dataDir, bootstrap: [far.dhtAddress] };
  let near = await TestDaemon.start(nearOptions);
  t.after(() => near.stop());
  await Promise.all([ready(near), ready(far)]);
  const remote = (await far.newAgent(`http://127.0.0.1:${address.port}`)) as Aid;
  await far.call('POST', `/agents/${remote}/publish`);
  const local = await near.newAgent();

  const proven = (): string | null => {
    const last = asked.at(-1);
    assert.ok(last);
    return provenCaller(last, last.body, { me: remote, seen: new Set(), now: Date.now() / 1000 });
  };
  const post = async (): Promise<void> => {
    const { url } = await near.call<{ url: string }>('POST', `/origins/${remote}`);
    const answer = await fetch(`${url}/a?b=%20c`, { method: 'POST', body: '{"text":"Guten Tag"}' });
    assert.equal(await answer.text(), 'ok');
  };

  await post();
  assert.equal(proven(), null);
  assert.equal(await svcOk(near, 'evidence', 'on', '--quiet'), 'on');
  await post();
  assert.equal(proven(), local);
  await svcOk(near, 'get', remote, '/other');
  assert.equal(proven(), local);
  // A program that replays the service's evidence in its own call: the called node has seen that nonce.
  await svcOk(near, 'evidence', 'off');
  const replay = ['signature-input', 'signature', 'svc-caller-delegation', 'content-digest'].flatMap((name) => {
    const value = asked.at(-1)?.headers[name];
    return ['--header', `${name}:${String(value)}`];
  });
  const refused = await svc(near, ['get', remote, '/other', ...replay]);
  assert.deepEqual([refused.code, /svc evidence off/.test(refused.stderr)], [4, true]);
  await svcOk(near, 'evidence', 'on');

  await near.stop();
  near = await TestDaemon.start(nearOptions);
  await ready(near);
  assert.equal(await svcOk(near, 'evidence', 'status', '--quiet'), 'on');
  await post();
  assert.equal(proven(), local);
});
