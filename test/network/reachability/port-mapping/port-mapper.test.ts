import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SvcError } from '../../../../src/foundation/errors.ts';
import { silentLog } from '../../../../src/foundation/log.ts';
import type { Gateway, PortGrantor } from '../../../../src/network/reachability/port-mapping/gateway.ts';
import {
  GATEWAY_CHECK_MS,
  MAPPING_LIFETIME_S,
  type MappedPort,
  PortMapper,
} from '../../../../src/network/reachability/port-mapping/port-mapper.ts';
import { TestClock } from '../../../support/test-clock.ts';

const HOME: Gateway = { host: '10.9.0.1', ownHost: '10.9.0.2' };

/** A mapper with a router that the test can change. */
function world() {
  const clock = new TestClock();
  const router = {
    gateway: HOME as Gateway | null,
    host: '203.0.114.7',
    refuses: 0,
    offset: 0,
    lifetimeS: MAPPING_LIFETIME_S,
  };
  const asked: string[] = [];
  const reported: (readonly MappedPort[])[] = [];
  const grantor: PortGrantor = {
    protocol: 'upnp',
    grant: async (internalPort, suggestedPort) => {
      asked.push(`grant ${internalPort} ${suggestedPort}`);
      if (internalPort === router.refuses) throw new SvcError('connect_failed', {});
      return { external: { host: router.host, port: internalPort + router.offset }, lifetimeS: router.lifetimeS };
    },
    release: async (internalPort, externalPort) => void asked.push(`release ${internalPort} ${externalPort}`),
  };
  const mapper = new PortMapper({
    clock,
    log: silentLog,
    ports: () => [4122, 4121],
    findGateway: async () => router.gateway,
    grantors: () => [async () => null, async () => grantor],
    onMapped: (ports) => reported.push(ports),
  });
  const hosts = () => reported.at(-1)?.map(({ external }) => `${external.host}:${external.port}`);
  return { clock, router, asked, reported, mapper, hosts };
}

test('ports are mapped, renewed at half of their lifetime, and released', async () => {
  const { clock, router, asked, reported, mapper, hosts } = world();
  router.offset = 1000;
  await mapper.start();
  assert.equal(mapper.view().state, 'searching');
  await clock.run(0);
  assert.equal(mapper.view().state, 'mapped');
  assert.deepEqual(hosts(), ['203.0.114.7:5122', '203.0.114.7:5121']);
  assert.deepEqual(asked.splice(0), ['grant 4122 4122', 'grant 4121 4121']);
  await clock.run((MAPPING_LIFETIME_S / 2) * 1000 - 1);
  assert.deepEqual(asked, []);
  await clock.run(1);
  assert.deepEqual(asked.splice(0), ['grant 4122 5122', 'grant 4121 5121'], 'the same external ports');
  assert.equal(reported.length, 1, 'no change is reported');
  await mapper.stop();
  assert.deepEqual(asked, ['release 4122 5122', 'release 4121 5121']);
  assert.equal(clock.timers, 0);
});

test('a changed external address is reported', async () => {
  const { clock, router, mapper, hosts } = world();
  await mapper.start();
  await clock.run(0);
  router.host = '203.0.114.8';
  await clock.run((MAPPING_LIFETIME_S / 2) * 1000);
  assert.deepEqual(hosts(), ['203.0.114.8:4122', '203.0.114.8:4121']);
  await mapper.stop();
});

test('a router with a private or shared address is behind another NAT: this is shown, but not published', async () => {
  for (const host of ['192.168.0.9', '100.64.0.7', '0.0.0.0']) {
    const { clock, router, mapper, reported } = world();
    router.host = host;
    await mapper.start();
    await clock.run(0);
    assert.equal(mapper.view().state, 'double_nat');
    assert.deepEqual(reported, [[]]);
    await mapper.stop();
  }
});

test('either all ports are mapped or none: after a refusal, granted ports are released', async () => {
  const { clock, router, asked, mapper, reported } = world();
  router.refuses = 4121;
  await mapper.start();
  await clock.run(0);
  assert.deepEqual(asked.splice(0), ['grant 4122 4122', 'grant 4121 4121', 'release 4122 4122']);
  assert.deepEqual(mapper.view(), { state: 'none', ports: [] });
  router.refuses = 0;
  await clock.run(60_000);
  assert.equal(mapper.view().state, 'mapped', 'the mapping is retried');
  assert.deepEqual(
    reported.map((ports) => ports.length),
    [0, 2],
  );
  await mapper.stop();
});

test('a network change is noticed, and so is the loss of the network', async () => {
  const { clock, router, asked, mapper, hosts } = world();
  await mapper.start();
  await clock.run(0);
  asked.length = 0;
  router.gateway = { host: '10.8.0.1', ownHost: '10.8.0.2' };
  router.host = '203.0.114.9';
  await clock.run(GATEWAY_CHECK_MS);
  await clock.run(0);
  assert.deepEqual(asked.splice(0), ['grant 4122 4122', 'grant 4121 4121'], 'no suggestion from the old network');
  assert.deepEqual(hosts(), ['203.0.114.9:4122', '203.0.114.9:4121']);
  router.gateway = null;
  await clock.run(GATEWAY_CHECK_MS);
  await clock.run(0);
  assert.deepEqual(mapper.view(), { state: 'off', ports: [] });
  assert.deepEqual(hosts(), []);
  await mapper.stop();
  assert.deepEqual(asked, []);
});

test('a very short or infinite lifetime is renewed at a reasonable interval', async () => {
  const { clock, router, asked, mapper } = world();
  router.lifetimeS = 1;
  await mapper.start();
  await clock.run(0);
  asked.length = 0;
  await clock.run(29_000);
  assert.deepEqual(asked, []);
  await clock.run(1000);
  assert.equal(asked.length, 2);
  await mapper.stop();
});
