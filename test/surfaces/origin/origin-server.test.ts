/** A local address over a link in memory: what becomes of a call when its answer is through, and when its client goes. */
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

/** An address of an agent whose service answers at once, or begins to and never ends. */
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
    push: { register: async () => null, behind: () => null, end: () => {} },
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
  /** Says in parts what the service sends back, the next one when the one before is back. */
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

test('a call whose answer is through is left to its end: its link serves the next one', async (t) => {
  const { world, signals, asked } = await address(t);
  const before = world.far.authorized.length;
  const bodies = ['', '{"a":1}', JSON.stringify('x'.repeat(100_000))];
  for (const body of [...bodies, ...bodies]) await asked('/', body);
  // All but the last are over: they came one behind the other on one connection.
  assert.deepEqual(
    signals.slice(0, -1).map((signal) => signal?.aborted),
    [false, false, false, false, false],
  );
  assert.equal(world.far.authorized.length - before, 1);
});

test('a call whose client goes is given up', async (t) => {
  const { signals, ask, world } = await address(t);
  const answer = await ask('/endless');
  await once(answer, 'data');
  answer.on('error', () => {});
  answer.destroy();
  await eventually('the call is given up', () => signals[0]?.aborted === true);
  await eventually('the service is left', () => world.server.active === 0);
});

test('a body of parts that are nothing of ours is not held back, and comes as it was sent', async (t) => {
  const { echoed } = await address(t);
  assert.ok(await echoed(['{"a":1}\n', '{"b":2}\n', '{"c":3}']));
  assert.ok(await echoed([`["${'x'.repeat(5 * 1024 * 1024)}`, 'y"]']));
});

test('a page cannot install a service worker, which would answer for the next agent at this port', async (t) => {
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

test('cookies that fill the head of a request are cleared', async (t) => {
  const { port } = await address(t);
  const answer = await fetchFrom(port, '/', { cookie: 'c'.repeat(700_000), 'sec-fetch-site': 'none' });
  assert.equal(answer.statusCode, 431);
  assert.equal(answer.headers['clear-site-data'], '"cookies"');
});
