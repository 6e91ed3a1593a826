import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, get, type IncomingMessage } from 'node:http';
import { test } from 'node:test';
import { svc, svcOk } from '../support/cli.ts';
import type { TestDaemon } from '../support/daemon.ts';
import { EchoService } from '../support/echo-service.ts';
import { eventually } from '../support/eventually.ts';
import { TestNetwork } from '../support/network.ts';

const MIB = 1024 * 1024;
const RESPONSE_BYTES = 200 * MIB;
/** Memory that a stalled reader may cost either daemon, including garbage that is not collected yet. */
const MAX_GROWTH_BYTES = 96 * MIB;
/** Sequential requests on the same path; a sender that made no progress during them is blocked. */
const ROUND_TRIPS = 50;

function residentBytes(daemon: TestDaemon): number {
  return Number(readFileSync(`/proc/${daemon.process.pid}/statm`, 'utf8').split(' ')[1]) * 4096;
}

test('a slow reader of a 200 MB response costs bounded memory, and receives the whole response', async () => {
  await using network = await TestNetwork.start(2);
  const [near, far] = [network.at(0), network.at(1)];
  const chunk = Buffer.alloc(64 * 1024, 0x61);
  let sent = 0;
  const service = createServer((request, response) => {
    if (request.url !== '/big') return void response.end('here');
    response.writeHead(200, { 'content-length': RESPONSE_BYTES });
    const more = (): void => {
      while (sent < RESPONSE_BYTES) {
        sent += chunk.length;
        if (!response.write(chunk)) return void response.once('drain', more);
      }
      response.end();
    };
    more();
  }).listen(0, '127.0.0.1');
  await once(service, 'listening');
  const address = service.address();
  assert.ok(address !== null && typeof address === 'object');
  const aid = await far.newAgent(`127.0.0.1:${address.port}`);
  await far.call('POST', `/agents/${aid}/publish`);
  const before = [near, far].map(residentBytes);
  const answer = await new Promise<IncomingMessage>((resolve, reject) =>
    get(`${near.api}/aid/${aid}/big`, resolve).on('error', reject),
  );
  assert.equal(answer.statusCode, 200);
  answer.pause();
  // The service cannot send more: all buffers on the path are full.
  await eventually('the service is blocked', async () => {
    const held = sent;
    for (let i = 0; i < ROUND_TRIPS; i++)
      assert.equal(await (await fetch(`${near.api}/aid/${aid}/small`)).text(), 'here');
    return sent === held;
  });
  assert.ok(sent < RESPONSE_BYTES / 2, `${sent / MIB} MiB were buffered for a reader that does not read`);
  for (const [i, daemon] of [near, far].entries()) {
    const growth = residentBytes(daemon) - (before[i] ?? 0);
    assert.ok(growth < MAX_GROWTH_BYTES, `daemon ${i} grew by ${Math.round(growth / MIB)} MiB`);
  }
  let received = 0;
  for await (const part of answer) received += (part as Buffer).length;
  assert.equal(received, RESPONSE_BYTES);
  service.closeAllConnections();
  service.close();
});

test('the access list of the called agent applies to the gateway, and changes apply immediately', async () => {
  await using network = await TestNetwork.start(2);
  await using service = await EchoService.start();
  const [near, far] = [network.at(0), network.at(1)];
  const aid = await far.newAgent(service.address);
  await far.call('POST', `/agents/${aid}/publish`);
  const page = async (): Promise<Response> =>
    fetch(`${near.api}/aid/${aid}/x`, { headers: { cookie: 'secret=1', authorization: 'Bearer secret' } });
  const open = await page();
  assert.equal(open.status, 200);
  assert.match(open.headers.get('content-security-policy') ?? '', /sandbox/);
  const echo = JSON.parse(await open.text()) as { headers: Record<string, string> };
  assert.equal(echo.headers['cookie'], undefined);
  assert.equal(echo.headers['authorization'], undefined);
  const { node_aid } = await near.call<{ node_aid: string }>('GET', '/status');
  assert.equal(echo.headers['svc-caller-aid'], node_aid);
  await far.call('PATCH', `/agents/${aid}/acl`, { default: 'deny' });
  assert.equal((await page()).status, 403);
  await far.call('POST', `/agents/${aid}/acl/allow`, { aid: node_aid });
  assert.equal((await page()).status, 200);
  const friend = await near.newAgent();
  const { secret } = await far.call<{ secret: string }>('POST', `/agents/${aid}/acl/allow`, { generate_secret: true });
  const as = (headers: Record<string, string>): Promise<Response> => fetch(`${near.api}/aid/${aid}/x`, { headers });
  assert.equal((await as({ 'svc-local-aid': friend })).status, 403);
  const opened = await as({ 'svc-local-aid': friend, 'svc-access-token': secret });
  const heard = JSON.parse(await opened.text()) as { headers: Record<string, string> };
  assert.equal(heard.headers['svc-caller-aid'], friend);
  assert.ok(!JSON.stringify(heard).includes(secret));
  await far.call('POST', `/agents/${aid}/acl/deny`, { aid: node_aid });
  assert.equal((await page()).status, 403);
});

test('remote administration is off by default, never counts as local, and is logged', async () => {
  await using network = await TestNetwork.start(2);
  const [near, far] = [network.at(0), network.at(1)];
  const status = await far.call<{ node_aid: string }>('GET', '/status');
  const me = (await near.call<{ node_aid: string }>('GET', '/status')).node_aid;
  const aid = await far.newAgent();
  const refused = await svc(near, ['--via', status.node_aid, 'status']);
  assert.equal(refused.code, 4, refused.stderr);
  await svcOk(far, 'admin', 'on');
  assert.equal((await svc(near, ['--via', status.node_aid, 'status'])).code, 4, 'the access list is empty');
  await svcOk(far, 'admin', 'allow', me);
  assert.equal(await svcOk(near, '--via', status.node_aid, 'status', '--quiet'), status.node_aid);
  assert.match(await svcOk(near, '--via', status.node_aid, 'agents', '--quiet'), new RegExp(aid));
  assert.equal((await svc(near, ['--via', status.node_aid, 'agents', 'export', aid])).code, 4);
  const state = await far.call<{ last_access: { aid: string } | null }>('GET', '/node/remote-admin');
  assert.equal(state.last_access?.aid, me);
  await svcOk(far, 'admin', 'off');
  assert.equal((await svc(near, ['--via', status.node_aid, 'status'])).code, 4);
});
