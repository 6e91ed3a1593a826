import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type OriginListener, Origins, type OriginTarget } from '../../../src/capabilities/origins/origins.ts';
import { MAX_ORIGINS } from '../../../src/foundation/domain/services.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { OriginStore } from '../../../src/foundation/store/origins.ts';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { testAid } from '../../support/agents.ts';
import { testSecrets } from '../../support/stored-secrets.ts';
import { TestClock } from '../../support/test-clock.ts';

const LOCAL = testAid(1);
const REMOTE = testAid(2);

function setUp(memory = new OriginStore(Store.open(':memory:', MIGRATIONS), testSecrets())) {
  const clock = new TestClock();
  const taken = new Set<number>();
  /** Open listeners, by port. */
  const open = new Map<number, OriginTarget>();
  const probes: number[] = [];
  const failure: { next: SvcError | null } = { next: null };
  let free = 5000;
  const origins = new Origins({
    clock,
    log: silentLog,
    memory,
    serve: async (target, wanted): Promise<OriginListener> => {
      const port = wanted === 0 ? free++ : wanted;
      if (taken.has(port) || open.has(port)) throw new SvcError('port_in_use');
      open.set(port, target);
      return {
        port,
        connections: 2,
        served: 3,
        lastError: { code: 'timeout', message: 'slow', at: 1 },
        close: async () => void open.delete(port),
      };
    },
    probe: async ({ port }) => {
      probes.push(port);
      if (failure.next !== null) throw failure.next;
    },
  });
  return { clock, memory, taken, open, probes, failure, origins };
}

const request = (more: object = {}) => ({ localAid: LOCAL, remoteAid: REMOTE, port: 0, ...more });

test('an address is opened, saved and reused', async () => {
  const { clock, memory, open, probes, origins } = setUp();
  const { origin, reused } = await origins.open(request({ accessToken: 'token' }));
  assert.equal(reused, false);
  assert.deepEqual(origin, {
    id: origin.id,
    localAid: LOCAL,
    remoteAid: REMOTE,
    url: 'http://127.0.0.1:5000',
    isServed: true,
    openedAt: clock.now(),
    connections: 2,
    served: 3,
    lastError: { code: 'timeout', message: 'slow', at: 1 },
  });
  assert.deepEqual(origins.list(), [origin]);
  const saved = { id: origin.id, localAid: LOCAL, remoteAid: REMOTE, accessToken: 'token', port: 5000 };
  assert.deepEqual(memory.list(), [{ ...saved, openedAt: clock.now() }]);
  assert.deepEqual(await origins.open(request()), { origin, reused: true });
  assert.deepEqual(await origins.open(request({ accessToken: 'token', port: 5000 })), { origin, reused: true });
  assert.deepEqual(probes, [0], 'an unchanged address is not checked again');
  const other = await origins.open(request({ remoteAid: testAid(3) }));
  assert.deepEqual([other.reused, other.origin.url], [false, 'http://127.0.0.1:5001']);
  const another = await origins.open(request({ localAid: testAid(4) }));
  assert.equal(another.reused, false, 'each local agent has its own address');
  assert.deepEqual([...open.keys()], [5000, 5001, 5002]);
});

test('an agent that cannot be reached gets no address, and an address does not change', async () => {
  const { memory, open, failure, origins } = setUp();
  failure.next = new SvcError('access_denied');
  await assert.rejects(origins.open(request()), { code: 'access_denied' });
  assert.deepEqual([origins.list(), memory.list(), open.size], [[], [], 0]);
  failure.next = null;
  await origins.open(request({ accessToken: 'old' }));
  failure.next = new SvcError('access_denied');
  await assert.rejects(origins.open(request({ accessToken: 'new' })), { code: 'access_denied' });
  assert.equal(memory.list()[0]?.accessToken, 'old');
});

test('the access token and the port of an address change', async () => {
  const { memory, open, origins } = setUp();
  const first = await origins.open(request({ accessToken: 'old' }));
  const second = await origins.open(request({ accessToken: 'new' }));
  assert.deepEqual([second.reused, second.origin.url], [true, first.origin.url]);
  assert.equal(open.get(5000)?.().accessToken, 'new', 'the listener uses the new token at the next request');
  const third = await origins.open(request({ port: 6000 }));
  assert.deepEqual([third.reused, third.origin.id, third.origin.url], [true, first.origin.id, 'http://127.0.0.1:6000']);
  assert.deepEqual([...open.keys()], [6000], 'the old port is closed');
  assert.deepEqual([memory.list()[0]?.port, memory.list()[0]?.accessToken], [6000, 'new']);
});

test('a port that is in use changes nothing', async () => {
  const { memory, taken, open, origins } = setUp();
  taken.add(6000);
  await assert.rejects(origins.open(request({ port: 6000 })), { code: 'port_in_use' });
  assert.deepEqual([origins.list(), memory.list()], [[], []]);
  await origins.open(request());
  await assert.rejects(origins.open(request({ port: 6000 })), { code: 'port_in_use' });
  assert.deepEqual([[...open.keys()], memory.list()[0]?.port], [[5000], 5000]);
});

test('saved addresses keep their port after a restart; if a port is in use, the address is opened later', async () => {
  const before = setUp();
  const ports = [request(), request({ remoteAid: testAid(3) })];
  for (const one of ports) await before.origins.open(one);
  await before.origins.stop();
  assert.equal(before.open.size, 0);
  const { taken, open, origins, probes } = setUp(before.memory);
  taken.add(5001);
  await origins.start();
  assert.deepEqual([...open.keys()], [5000]);
  assert.deepEqual(
    origins
      .list()
      .map(({ url, isServed, connections, served, lastError }) => [
        url,
        isServed,
        connections,
        served,
        lastError?.code,
      ]),
    [
      ['http://127.0.0.1:5000', true, 2, 3, 'timeout'],
      ['http://127.0.0.1:5001', false, 0, 0, undefined],
    ],
  );
  assert.deepEqual(probes, []);
  taken.clear();
  const again = await origins.open(request({ remoteAid: testAid(3) }));
  assert.deepEqual([again.reused, again.origin.url, again.origin.isServed], [true, 'http://127.0.0.1:5001', true]);
});

test('only the addresses of an agent that moved here are opened, and the ports in use are returned', async () => {
  const { memory, taken, open, origins } = setUp();
  const save = (id: string, localAid: typeof LOCAL, port: number) =>
    memory.save({ id, localAid, remoteAid: testAid(port), accessToken: undefined, port, openedAt: port });
  save('a', LOCAL, 5001);
  save('b', LOCAL, 5002);
  save('c', testAid(4), 5003);
  taken.add(5002);
  assert.deepEqual(await origins.resume(LOCAL), [5002]);
  assert.deepEqual([...open.keys()], [5001]);
});

test('an address is closed and forgotten', async () => {
  const { memory, open, origins } = setUp();
  const { origin } = await origins.open(request());
  await origins.open(request({ remoteAid: testAid(3) }));
  await origins.open(request({ localAid: testAid(4) }));
  await origins.close(origin.id);
  assert.deepEqual([...open.keys()], [5001, 5002]);
  await assert.rejects(origins.close(origin.id), { code: 'not_found' });
  await origins.closeAllOf(LOCAL);
  assert.deepEqual([...open.keys()], [5002]);
  assert.deepEqual(
    memory.list().map(({ localAid }) => localAid),
    [testAid(4)],
  );
});

test('concurrent requests for one agent open one address, and closing waits for a change', async () => {
  const { open, memory, origins } = setUp();
  const [one, two] = await Promise.all([origins.open(request()), origins.open(request())]);
  assert.deepEqual([one.reused, two.reused, two.origin.id], [false, true, one.origin.id]);
  assert.equal(open.size, 1);
  await Promise.all([origins.open(request({ port: 6000 })), origins.close(one.origin.id)]);
  assert.deepEqual([origins.list(), memory.list(), open.size], [[], [], 0]);
});

test('addresses that are opened at the same time cannot exceed the limit', async () => {
  const { origins } = setUp();
  const wanted = Array.from({ length: MAX_ORIGINS + 4 }, (_, n) =>
    origins.open(request({ remoteAid: testAid(10 + n) })),
  );
  const outcomes = await Promise.allSettled(wanted);
  assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, MAX_ORIGINS);
  assert.equal(origins.list().length, MAX_ORIGINS);
});

test('a place is free again when an address could not be opened', async () => {
  const { failure, origins } = setUp();
  failure.next = new SvcError('connect_failed');
  for (let n = 0; n <= MAX_ORIGINS; n++)
    await assert.rejects(origins.open(request({ remoteAid: testAid(10 + n) })), { code: 'connect_failed' });
  failure.next = null;
  assert.equal((await origins.open(request())).reused, false);
});

test('the number of addresses is limited; an existing one can still change', async () => {
  const { origins } = setUp();
  for (let n = 0; n < MAX_ORIGINS; n++) await origins.open(request({ remoteAid: testAid(10 + n) }));
  await assert.rejects(origins.open(request()), { code: 'quota_exceeded', details: { limit: MAX_ORIGINS } });
  assert.equal((await origins.open(request({ remoteAid: testAid(10), accessToken: 'x' }))).reused, true);
});
