import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { ServiceMonitor } from '../../../src/capabilities/agents/service-monitor.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { TestClock } from '../../support/test-clock.ts';

/** Services on even ports of 127.0.0.1 answer. */
function world(services: string[]) {
  const clock = new TestClock();
  const seen: number[] = [];
  let open = 0;
  let most = 0;
  const monitor = new ServiceMonitor(
    clock,
    silentLog,
    () => services,
    async ({ port }) => {
      seen.push(port);
      open += 1;
      most = Math.max(most, open);
      await turn();
      open -= 1;
      return { ok: port % 2 === 0, ms: 1 };
    },
  );
  return { clock, seen, monitor, most: () => most };
}

async function turns(n: number): Promise<void> {
  for (let i = 0; i < n; i++) await turn();
}

test('checks all services in rounds with limited concurrency', async () => {
  const services = Array.from({ length: 100 }, (_, i) => `127.0.0.1:${9000 + i}`);
  const { clock, seen, monitor, most } = world(services);
  monitor.start();
  assert.equal(monitor.last('127.0.0.1:9000'), null);
  clock.advance(0);
  await turns(50);
  assert.equal(seen.length, 100);
  assert.ok(most() <= 8, `${most()} concurrent checks`);
  assert.equal(monitor.last('127.0.0.1:9000'), true);
  assert.equal(monitor.last('127.0.0.1:9001'), false);
  services.length = 1;
  clock.advance(30_000);
  await turns(50);
  assert.equal(seen.length, 101);
  assert.equal(monitor.last('127.0.0.1:9001'), null);
  monitor.stop();
  assert.equal(clock.timers, 0);
});

test('concurrent checks share a connection, and a fresh result is reused', async () => {
  const { clock, seen, monitor } = world([]);
  const service = '127.0.0.1:9000';
  assert.deepEqual(await Promise.all([monitor.check(service), monitor.check(service), monitor.state(service)]), [
    { ok: true, ms: 1 },
    { ok: true, ms: 1 },
    true,
  ]);
  assert.equal(seen.length, 1);
  clock.advance(4999);
  assert.equal(await monitor.state(service), true);
  assert.equal(seen.length, 1);
  clock.advance(1);
  await monitor.state(service);
  assert.equal(seen.length, 2);
});

test('a fresh failure is reused too', async () => {
  const { seen, monitor } = world([]);
  const service = '127.0.0.1:9001';
  assert.deepEqual([await monitor.state(service), await monitor.state(service)], [false, false]);
  assert.equal(seen.length, 1);
});

test('a stop ends a running round', async () => {
  const services = Array.from({ length: 100 }, (_, i) => `127.0.0.1:${9000 + i}`);
  const { clock, seen, monitor } = world(services);
  monitor.start();
  clock.advance(0);
  monitor.stop();
  await turns(50);
  assert.ok(seen.length <= 8);
  assert.equal(clock.timers, 0);
});

test('notifies of services that start or stop answering, and of new ones that do not answer', async () => {
  const answers = new Map([['127.0.0.1:2', true]]);
  const monitor = new ServiceMonitor(
    new TestClock(),
    silentLog,
    () => [],
    async ({ host, port }) =>
      answers.get(`${host}:${port}`) === true ? { ok: true, ms: 1 } : { ok: false, ms: 1, error: 'refused' },
  );
  const reported: unknown[] = [];
  monitor.changed.add(({ service, ok, error }) => reported.push([service, ok, error]));
  for (const service of ['127.0.0.1:1', '127.0.0.1:2', '127.0.0.1:2']) await monitor.check(service);
  answers.clear();
  answers.set('127.0.0.1:1', true);
  for (const service of ['127.0.0.1:1', '127.0.0.1:2', '127.0.0.1:2']) await monitor.check(service);
  assert.deepEqual(reported, [
    ['127.0.0.1:1', false, 'refused'],
    ['127.0.0.1:1', true, ''],
    ['127.0.0.1:2', false, 'refused'],
  ]);
});

test('a service with two addresses answers if both do', async () => {
  const { monitor, seen } = world([]);
  assert.deepEqual(await monitor.check('http://127.0.0.1:2,tcp://127.0.0.1:4'), { ok: true, ms: 1 });
  assert.equal((await monitor.check('http://127.0.0.1:2,tcp://127.0.0.1:3')).ok, false);
  assert.equal((await monitor.check('http://127.0.0.1:1,tcp://127.0.0.1:4')).ok, false);
  assert.deepEqual(seen, [2, 4, 2, 3, 1, 4]);
});
