/** A local address over an in-memory link: calls after their response, and calls of a client that disconnects. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import { type TestContext, test } from 'node:test';
import { SvcError } from '../../../src/foundation/errors.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { originServers } from '../../../src/surfaces/origin/origin-server.ts';
import type { RemoteCaller } from '../../../src/surfaces/rest/remote-call.ts';
import { callWorld, webService } from '../../support/call-world.ts';
import { eventually } from '../../support/eventually.ts';

/** A local address of an agent whose service responds immediately, or starts an endless response. */
async function address(t: TestContext) {
  const world = await callWorld(t);
  const service = await webService(t, (asked, response) => {
    if (asked.url === '/sw.js') response.writeHead(200, { 'service-worker-allowed': '/', 'x-own': '1' }).end();
    else if (asked.url === '/endless') {
      asked.resume();
      response.writeHead(200).write('x');
    } else asked.pipe(response);
  });
  world.bound.set(world.remote, service.bound);
  const signals: (AbortSignal | undefined)[] = [];
  const caller: RemoteCaller = {
    request: (local, remote, call) => {
      signals.push(call.signal);
      return world.caller.request(local, remote, call);
    },
    upgrade: (local, remote, call, protocols) => world.caller.upgrade(local, remote, call, protocols),
  };
  const noCard = (): never => {
    throw new SvcError('not_found');
  };
  const { clock, local, remote } = world;
  const cards = { toLocalCard: async () => noCard() };
  const serve = originServers({
    caller,
    clock,
    log: silentLog,
    cards,
    signedCard: async () => null,
    push: { register: async () => null, findByUrl: () => null, remove: () => {} },
    carry: async () => {},
  });
  const target = { id: 'x', localAid: local, remoteAid: remote, accessToken: undefined };
  const server = await serve(() => target, 0);
  const { port } = server;
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  t.after(async () => {
    agent.destroy();
    await server.close();
  });
  const ask = (path: string, body = ''): Promise<IncomingMessage> =>
    new Promise((resolve, reject) => {
      const headers = body === '' ? {} : { 'content-type': 'application/json' };
      const method = body === '' ? 'GET' : 'POST';
      request({ host: '127.0.0.1', port: server.port, method, path, agent, headers }, resolve)
        .on('error', reject)
        .end(body);
    });
  /** Sends parts to an echo service, each after the echo of the previous one. */
  const echoed = async (parts: readonly string[]): Promise<boolean> => {
    const headers = { 'content-type': 'application/json', 'transfer-encoding': 'chunked' };
    const asking = request({ host: '127.0.0.1', port: server.port, method: 'POST', path: '/', agent, headers });
    let back = '';
    let sent = '';
    asking.flushHeaders();
    const answer = once(asking, 'response').then(([it]: IncomingMessage[]) => it?.on('data', (part) => (back += part)));
    for (const part of parts) {
      sent += part;
      asking.write(part);
      await eventually('it is back', () => back === sent);
    }
    asking.end();
    const it = await answer;
    if (it !== undefined && !it.readableEnded) await once(it, 'end');
    return back === sent;
  };
  const asked = async (path: string, body?: string): Promise<void> => {
    const answer = await ask(path, body);
    answer.resume();
    await once(answer, 'end');
  };
  return { world, signals, ask, asked, echoed, port };
}

function fetchFrom(port: number, path: string, headers: Record<string, string>): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request({ host: '127.0.0.1', port, path, headers, agent: false }, (answer) => resolve(answer.resume()))
      .on('error', reject)
      .end();
  });
}

test('a completed call does not block the next call on its link', async (t) => {
  const { world, signals, asked } = await address(t);
  const before = world.far.authorized.length;
  const bodies = ['', '{"a":1}', JSON.stringify('x'.repeat(100_000))];
  for (const body of [...bodies, ...bodies]) await asked('/', body);
  // All but the last are complete, because they used one connection.
  assert.deepEqual(
    signals.slice(0, -1).map((signal) => signal?.aborted),
    [false, false, false, false, false],
  );
  assert.equal(world.far.authorized.length - before, 1);
});

test('aborts a call whose client disconnects', async (t) => {
  const { signals, ask, world } = await address(t);
  const answer = await ask('/endless');
  await once(answer, 'data');
  answer.on('error', () => {});
  answer.destroy();
  await eventually('the call is given up', () => signals[0]?.aborted === true);
  await eventually('the service is left', () => world.server.active === 0);
});

test('streams an irrelevant body unchanged without buffering', async (t) => {
  const { echoed } = await address(t);
  assert.ok(await echoed(['{"a":1}\n', '{"b":2}\n', '{"c":3}']));
  assert.ok(await echoed([`["${'x'.repeat(5 * 1024 * 1024)}`, 'y"]']));
});

test('a page cannot install a service worker, which would affect the next agent on this port', async (t) => {
  const { port, signals } = await address(t);
  const browser = {
    'sec-fetch-site': 'same-origin',
    'sec-fetch-mode': 'same-origin',
    'sec-fetch-dest': 'serviceworker',
  };
  const refused = await fetchFrom(port, '/sw.js', { ...browser, 'service-worker': 'script' });
  assert.equal(refused.statusCode, 403);
  assert.equal(refused.headers['svc-error'], 'access_denied');
  assert.equal(signals.length, 0);
  const script = await fetchFrom(port, '/sw.js', { 'sec-fetch-site': 'same-origin' });
  assert.equal(script.headers['x-own'], '1');
  assert.equal(script.headers['service-worker-allowed'], undefined);
});

test('clears cookies that fill the head of a request', async (t) => {
  const { port } = await address(t);
  const answer = await fetchFrom(port, '/', { cookie: 'c'.repeat(700_000), 'sec-fetch-site': 'none' });
  assert.equal(answer.statusCode, 431);
  assert.equal(answer.headers['clear-site-data'], '"cookies"');
});
