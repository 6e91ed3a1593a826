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

/** A mapper whose router is an object that the test can change. */
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
  const told: (readonly MappedPort[])[] = [];
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
    onMapped: (ports) => told.push(ports),
  });
  const hosts = () => told.at(-1)?.map(({ external }) => `${external.host}:${external.port}`);
  return { clock, router, asked, told, mapper, hosts };
}

test('ports are asked for, renewed at half their time, and given back', async () => {
  const { clock, router, asked, told, mapper, hosts } = world();
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
  assert.deepEqual(asked.splice(0), ['grant 4122 5122', 'grant 4121 5121'], 'the same outer ports');
  assert.equal(told.length, 1, 'nothing new is told');
  await mapper.stop();
  assert.deepEqual(asked, ['release 4122 5122', 'release 4121 5121']);
  assert.equal(clock.timers, 0);
});

test('a router that has forgotten, or gives others, is told of', async () => {
  const { clock, router, mapper, hosts } = world();
  await mapper.start();
  await clock.run(0);
  router.host = '203.0.114.8';
  await clock.run((MAPPING_LIFETIME_S / 2) * 1000);
  assert.deepEqual(hosts(), ['203.0.114.8:4122', '203.0.114.8:4121']);
  await mapper.stop();
});

test('a router with a private or shared address is behind another one: said, not told', async () => {
  for (const host of ['192.168.0.9', '100.64.0.7', '0.0.0.0']) {
    const { clock, router, mapper, told } = world();
    router.host = host;
    await mapper.start();
    await clock.run(0);
    assert.equal(mapper.view().state, 'double_nat');
    assert.deepEqual(told, [[]]);
    await mapper.stop();
  }
});

test('all ports or none: what was granted before a refusal is given back', async () => {
  const { clock, router, asked, mapper, told } = world();
  router.refuses = 4121;
  await mapper.start();
  await clock.run(0);
  assert.deepEqual(asked.splice(0), ['grant 4122 4122', 'grant 4121 4121', 'release 4122 4122']);
  assert.deepEqual(mapper.view(), { state: 'none', ports: [] });
  router.refuses = 0;
  await clock.run(60_000);
  assert.equal(mapper.view().state, 'mapped', 'it is asked again');
  assert.deepEqual(
    told.map((ports) => ports.length),
    [0, 2],
  );
  await mapper.stop();
});

test('another network is noticed, and so is none at all', async () => {
  const { clock, router, asked, mapper, hosts } = world();
  await mapper.start();
  await clock.run(0);
  asked.length = 0;
  router.gateway = { host: '10.8.0.1', ownHost: '10.8.0.2' };
  router.host = '203.0.114.9';
  await clock.run(GATEWAY_CHECK_MS);
  await clock.run(0);
  assert.deepEqual(asked.splice(0), ['grant 4122 4122', 'grant 4121 4121'], 'nothing of the old one is suggested');
  assert.deepEqual(hosts(), ['203.0.114.9:4122', '203.0.114.9:4121']);
  router.gateway = null;
  await clock.run(GATEWAY_CHECK_MS);
  await clock.run(0);
  assert.deepEqual(mapper.view(), { state: 'off', ports: [] });
  assert.deepEqual(hosts(), []);
  await mapper.stop();
  assert.deepEqual(asked, []);
});

test('a router that grants a moment or for ever is asked in good time all the same', async () => {
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
