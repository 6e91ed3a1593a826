import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import type { ServiceOffer } from '../../../src/capabilities/directory/cards.ts';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { agentKey, serviceKey } from '../../../src/foundation/records/keys.ts';
import { decodeEndpointsPayload } from '../../../src/foundation/records/payloads.ts';
import { RECORD } from '../../../src/foundation/records/types.ts';
import { DirectoryWorld } from '../../support/directory-world.ts';
import { TestClock } from '../../support/test-clock.ts';

const SECOND_MS = 1000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3600_000;
const DAY_MS = 24 * HOUR_MS;
const OFFER: ServiceOffer = {
  services: ['a.b'],
  name: 'Test',
  protocols: [],
  tags: [],
  brief: '',
  meta: null,
  ttl: 3600,
};

/** The timers run normally, but the time of day is shifted. */
class SkewedClock extends TestClock {
  skew = 0;

  override now(): number {
    return super.now() + this.skew;
  }
}

describe('renewal', () => {
  let world: DirectoryWorld;

  beforeEach(() => {
    world = new DirectoryWorld();
  });

  afterEach(async () => {
    await world.directory.stop();
    assert.equal(world.clock.timers, 0, 'timers are still running');
    assert.equal(world.network.listeners, 0, 'listeners are still registered');
    world.store.close();
  });

  async function found(aid: Aid, type: number, key = agentKey(aid)): Promise<boolean> {
    return (await world.network.list(key, [type])).some((record) => record.aid === aid);
  }

  test('all records of an active agent remain in the network for days', async () => {
    await world.directory.start();
    const { aid } = world.add();
    await world.directory.publish(aid);
    await world.clock.run(7 * MINUTE_MS);
    await world.directory.registerServices(aid, OFFER);
    await world.clock.run(9 * MINUTE_MS);
    await world.directory.publishRecord(aid, 7, new Uint8Array([1]), 600);
    await world.directory.setProfile(aid, { name: 'Test' });
    await world.directory.publishRecord(aid, RECORD.encryptionKeys, new Uint8Array([2]), 30 * 24 * 3600);
    for (let at = 0; at < 3 * DAY_MS; at += 5 * MINUTE_MS) {
      await world.clock.run(5 * MINUTE_MS);
      for (const type of [RECORD.endpoints, 7, RECORD.profile, RECORD.encryptionKeys])
        assert.ok(await found(aid, type), `type ${type} after ${at / MINUTE_MS} min`);
      assert.ok(await found(aid, RECORD.service, serviceKey('a.b')));
    }
    const times = world.kept(aid).map((record) => record.timestamp);
    assert.ok(times.length >= 144 && times.length <= 190, `${times.length} endpoint records in 3 days`);
    for (const [i, time] of times.entries())
      assert.ok(time - (times[i - 1] ?? time) <= 1800, 'never later than half of the lifetime');
    assert.equal(world.kept(aid, RECORD.encryptionKeys).length, 1);
    assert.ok(world.kept(aid, 7).length >= 864);
  });

  test('a renewal without acknowledgments is retried at growing intervals', async () => {
    await world.directory.start();
    const { aid } = world.add();
    await world.directory.publish(aid);
    await world.clock.run(26 * MINUTE_MS);
    world.network.replicas = 0;
    let puts = 0;
    world.network.beforePut = () => void puts++;
    await world.clock.run(HOUR_MS);
    assert.ok(puts >= 20 && puts <= 60, `${puts} attempts in an hour`);
    world.network.replicas = 8;
    await world.clock.run(2 * MINUTE_MS);
    assert.ok(await found(aid, RECORD.endpoints));
  });

  test('a full disk and the network are not retried in a tight loop', async () => {
    await world.directory.start();
    const { aid } = world.add();
    await world.directory.publish(aid);
    await world.clock.run(20 * MINUTE_MS);
    world.store.one('PRAGMA query_only = ON');
    const before = world.network.reads;
    await world.clock.run(HOUR_MS);
    const reads = world.network.reads - before;
    assert.ok(reads > 0 && reads <= 120, `${reads} reads in an hour`);
    world.store.one('PRAGMA query_only = OFF');
    await world.clock.run(MINUTE_MS);
    assert.ok(await found(aid, RECORD.endpoints));
  });

  test('records with a lifetime of a month are renewed after half a month', async () => {
    await world.directory.start();
    const { aid } = world.add();
    await world.directory.publishRecord(aid, RECORD.encryptionKeys, new Uint8Array([2]), 30 * 24 * 3600);
    await world.clock.run(13 * DAY_MS);
    assert.equal(world.kept(aid, RECORD.encryptionKeys).length, 1);
    await world.clock.run(2 * DAY_MS);
    assert.equal(world.kept(aid, RECORD.encryptionKeys).length, 2);
  });

  test('an idle agent remains in the network, with and without a service that answers', async () => {
    await world.directory.start();
    const [idle, bound] = [world.add(), world.add()];
    world.bound.set(bound.aid, '127.0.0.1:9000');
    for (const { aid } of [idle, bound]) await world.directory.publish(aid);
    for (let at = 0; at < DAY_MS; at += 5 * MINUTE_MS) {
      await world.clock.run(5 * MINUTE_MS);
      for (const { aid } of [idle, bound]) assert.ok(await found(aid, RECORD.endpoints), `after ${at / MINUTE_MS} min`);
    }
    assert.notEqual(world.directory.summary(idle.aid).nextRepublishAt, null);
  });

  test('an idle agent is published again when the daemon starts after a night off', async () => {
    await world.directory.start();
    const agent = world.add();
    const { aid } = agent;
    await world.directory.publish(aid);
    await world.directory.stop();
    const { store, clock, network, node } = world;
    await clock.run(9 * HOUR_MS);
    assert.equal(await found(aid, RECORD.endpoints), false);
    world = new DirectoryWorld({ store, clock, network, node });
    world.add(agent);
    await world.directory.start();
    await clock.run(10 * SECOND_MS);
    assert.ok(await found(aid, RECORD.endpoints));
  });

  test('a thousand idle agents are renewed once per half lifetime, spread over it', async () => {
    await world.directory.start();
    const agents = Array.from({ length: 1000 }, () => world.add());
    for (const { aid } of agents) await world.directory.publish(aid);
    await world.clock.run(HOUR_MS);
    const before = world.network.kept.length;
    const perMinute: number[] = [];
    for (let minute = 0; minute < 60; minute++) {
      const start = world.network.kept.length;
      await world.clock.run(MINUTE_MS);
      perMinute.push(world.network.kept.length - start);
    }
    const renewals = world.network.kept.length - before;
    assert.ok(renewals >= 2000 && renewals <= 2300, `${renewals} records in an hour`);
    assert.ok(Math.max(...perMinute) <= 20 * 60, `at most ${Math.max(...perMinute)} in a minute`);
    for (const { aid } of agents) assert.ok(world.directory.summary(aid).published);
  });

  test('new addresses are published within seconds, and many changes once', async () => {
    await world.directory.start();
    const [published, silent] = [world.add(), world.add()];
    await world.directory.publish(published.aid);
    await world.clock.run(MINUTE_MS);
    const before = world.kept(published.aid).length;
    for (let i = 0; i < 10; i++) {
      world.moveTo(`quic://198.51.100.${i}:4122`);
      await world.clock.run(100);
    }
    await world.clock.run(3 * SECOND_MS);
    const records = world.kept(published.aid);
    assert.equal(records.length, before + 1);
    assert.deepEqual(decodeEndpointsPayload(records.at(-1)?.payload ?? new Uint8Array())?.endpoints, [
      'quic://198.51.100.9:4122',
    ]);
    assert.equal(world.kept(silent.aid).length, 0);
  });

  test('changes that do not affect reachability are published together, or with an urgent one', async () => {
    await world.directory.start();
    const { aid } = world.add();
    await world.directory.publish(aid);
    await world.clock.run(MINUTE_MS);
    const before = world.kept(aid).length;
    for (let natType = 0; natType < 5; natType++) {
      world.findNatType(natType);
      await world.clock.run(5 * SECOND_MS);
    }
    assert.equal(world.kept(aid).length, before);
    await world.clock.run(10 * SECOND_MS);
    assert.equal(world.kept(aid).length, before + 1);
    world.findNatType(2);
    world.moveTo('quic://198.51.100.7:4122');
    await world.clock.run(MINUTE_MS);
    assert.equal(world.kept(aid).length, before + 2);
  });

  test('new addresses are published as soon as a full disk has space again', async () => {
    await world.directory.start();
    const { aid } = world.add();
    await world.directory.publish(aid);
    await world.clock.run(MINUTE_MS);
    world.store.one('PRAGMA query_only = ON');
    world.moveTo('quic://198.51.100.7:4122');
    world.network.become({ ready: false });
    world.network.become({ ready: true, peers: 40 });
    await world.clock.run(3 * MINUTE_MS);
    world.store.one('PRAGMA query_only = OFF');
    await world.clock.run(MINUTE_MS);
    const last = decodeEndpointsPayload(world.kept(aid).at(-1)?.payload ?? new Uint8Array());
    assert.deepEqual(last?.endpoints, ['quic://198.51.100.7:4122']);
  });

  test('addresses that change during a publication are published after it', async () => {
    await world.directory.start();
    const { aid } = world.add();
    await world.directory.publish(aid);
    const gate = Promise.withResolvers<void>();
    world.network.beforePut = async () => gate.promise;
    const second = world.directory.publish(aid);
    await world.clock.run(SECOND_MS);
    world.moveTo('quic://198.51.100.7:4122');
    await world.clock.run(2 * SECOND_MS);
    gate.resolve();
    await second;
    await world.clock.run(2 * SECOND_MS);
    const last = decodeEndpointsPayload(world.kept(aid).at(-1)?.payload ?? new Uint8Array());
    assert.deepEqual(last?.endpoints, ['quic://198.51.100.7:4122']);
  });

  test('endpoint records contain the bound service, and follow its changes', async () => {
    await world.directory.start();
    const { aid } = world.add();
    const service = (): string | undefined =>
      decodeEndpointsPayload(world.kept(aid).at(-1)?.payload ?? new Uint8Array())?.service;
    await world.directory.publish(aid);
    assert.equal(service(), undefined);
    for (const [text, expected] of [
      ['127.0.0.1:9000', '127.0.0.1:9000'],
      [`http://${'a'.repeat(60)}.${'b'.repeat(60)}:80`, undefined],
      ['http://localhost:80', 'http://localhost:80'],
      ['', undefined],
    ] as const) {
      world.bound.set(aid, text);
      await world.directory.agentChanged({ aid, kind: 'bound' });
      await world.clock.run(SECOND_MS);
      assert.equal(service(), expected);
    }
    assert.equal(world.kept(aid).length, 5);
  });

  test('the endpoint record lists a new custom type, and no longer lists a removed profile', async () => {
    await world.directory.start();
    const { aid } = world.add();
    const types = (): readonly number[] | undefined =>
      decodeEndpointsPayload(world.kept(aid).at(-1)?.payload ?? new Uint8Array())?.customTypes;
    await world.directory.publish(aid);
    assert.deepEqual(types(), []);
    await world.directory.setProfile(aid, { name: 'Test' });
    await world.directory.publishRecord(aid, 9, new Uint8Array([1]), 3600);
    await world.clock.run(SECOND_MS);
    assert.deepEqual(types(), [2, 9]);
    await world.directory.deleteProfile(aid);
    await world.clock.run(SECOND_MS);
    assert.deepEqual(types(), [9]);
    const cards = world.kept(aid, RECORD.profile).length;
    await world.clock.run(DAY_MS);
    assert.equal(world.kept(aid, RECORD.profile).length, cards, 'a removed card is not renewed');
  });

  test('a withdrawn service is not renewed', async () => {
    await world.directory.start();
    const { aid } = world.add();
    await world.directory.registerServices(aid, { ...OFFER, services: ['a.b', 'c.d'] });
    await world.directory.unregisterService(aid, 'a.b');
    await world.clock.run(3 * HOUR_MS);
    assert.equal(await found(aid, RECORD.service, serviceKey('a.b')), false);
    assert.ok(await found(aid, RECORD.service, serviceKey('c.d')));
  });

  test('a record stored only on this node is published again when a network is available', async () => {
    world.network.state = { ...world.network.state, ready: false, peers: 0 };
    await world.directory.start();
    const { aid } = world.add();
    assert.deepEqual(await world.directory.publish(aid), { seq: 1, replicas: 0 });
    await world.clock.run(10 * MINUTE_MS);
    assert.equal(world.kept(aid).length, 1);
    const { published, lastPublishAt, everPublished } = world.directory.summary(aid);
    assert.deepEqual([published, lastPublishAt, everPublished], [false, null, false], 'no other node stores it');
    world.network.replicas = 2;
    world.network.become({ ready: true, peers: 2 });
    await world.clock.run(2 * SECOND_MS);
    assert.equal(world.kept(aid).length, 2);
    assert.equal(world.directory.summary(aid).replicas, 2);
    world.network.replicas = 8;
    world.network.become({ peers: 30 });
    await world.clock.run(2 * MINUTE_MS);
    assert.equal(world.kept(aid).length, 2, 'two replicas on two nodes were the maximum');
  });

  test('a renewal that was due without other nodes runs when one appears', async () => {
    await world.directory.start();
    const { aid } = world.add();
    await world.directory.publish(aid);
    world.network.become({ ready: false, peers: 0 });
    await world.clock.run(45 * MINUTE_MS);
    const alone = world.kept(aid).length;
    world.network.become({ ready: true, peers: 2 });
    await world.clock.run(2 * SECOND_MS);
    assert.equal(world.kept(aid).length, alone + 1);
  });

  test('a record stored on the only reachable node of a network counts as published', async () => {
    world.network.state = { ...world.network.state, ready: true, peers: 0 };
    await world.directory.start();
    const { aid } = world.add();
    assert.deepEqual(await world.directory.publish(aid), { seq: 1, replicas: 0 });
    assert.equal(world.directory.summary(aid).published, true);
  });

  test('if there are other nodes and none stores a record, publishing fails', async () => {
    world.network.replicas = 0;
    world.network.state = { ...world.network.state, ready: true, peers: 4 };
    await world.directory.start();
    const { aid } = world.add();
    await assert.rejects(world.directory.publish(aid), { code: 'not_acknowledged' });
    assert.equal(world.directory.summary(aid).published, false);
  });

  test('a record with few replicas is published again when there are more nodes', async () => {
    await world.directory.start();
    await world.clock.run(2 * MINUTE_MS);
    const { aid } = world.add();
    world.network.replicas = 3;
    await world.directory.publish(aid);
    await world.clock.run(5 * MINUTE_MS);
    assert.equal(world.kept(aid).length, 1);
    world.network.replicas = 8;
    world.network.become({ peers: 30 });
    await world.clock.run(2 * MINUTE_MS);
    assert.equal(world.directory.summary(aid).replicas, 8);
  });

  test('after the clock was set back, an agent still publishes, also after a restart', async () => {
    const clock = new SkewedClock();
    for (const restart of [false, true]) {
      const first = new DirectoryWorld({ clock });
      const agent = first.add();
      await first.directory.start();
      clock.skew = DAY_MS;
      await first.directory.publish(agent.aid);
      await clock.run(2 * MINUTE_MS);
      clock.skew = 0;
      const before = first.kept(agent.aid).length;
      const { store, network, node } = first;
      if (restart) await first.directory.stop();
      const last = restart ? new DirectoryWorld({ store, network, node, clock }) : first;
      if (restart) {
        last.add(agent);
        await last.directory.start();
      }
      await clock.run(2 * MINUTE_MS);
      assert.equal(last.kept(agent.aid).length, before + 1);
      const late = (last.publications.publisher(agent.aid)?.dueAt ?? Number.POSITIVE_INFINITY) - clock.now();
      assert.ok(late <= HOUR_MS / 2);
      await last.directory.stop();
      store.close();
    }
  });

  test('after the clock was wrong for a while, ahead or behind, an agent still publishes', async () => {
    for (const skew of [365 * DAY_MS, -365 * DAY_MS]) {
      const clock = new SkewedClock();
      const there = new DirectoryWorld({ clock });
      const [agent, late, bound] = [there.add(), there.add(), there.add()];
      there.bound.set(bound.aid, '127.0.0.1:9000');
      await there.directory.start();
      for (const { aid } of [agent, bound]) await there.directory.publish(aid);
      await clock.run(20 * MINUTE_MS);
      clock.skew = skew;
      there.network.replicas = 0;
      await clock.run(5 * MINUTE_MS);
      await assert.rejects(there.directory.publish(late.aid));
      clock.skew = 0;
      there.network.replicas = 8;
      await clock.run(12 * MINUTE_MS);
      for (const { aid } of [agent, late, bound])
        assert.ok(there.directory.summary(aid).published && there.kept(aid).length > 0, `${skew}`);
      await clock.run(2 * HOUR_MS);
      for (const { aid } of [agent, late, bound]) assert.ok(there.directory.summary(aid).published, `${skew}, later`);
      await there.directory.stop();
      there.store.close();
    }
  });

  test('after a sleep, due records are renewed immediately', async () => {
    const clock = new SkewedClock();
    const sleeper = new DirectoryWorld({ clock });
    const { aid } = sleeper.add();
    await sleeper.directory.start();
    await sleeper.directory.publish(aid);
    clock.skew = 8 * HOUR_MS;
    await clock.run(MINUTE_MS);
    assert.equal(sleeper.kept(aid).length, 2);
    await sleeper.directory.stop();
    sleeper.store.close();
  });

  test('after a start, renewal waits for the network for a limited time', async () => {
    world.network.state = { ...world.network.state, ready: false };
    const { aid } = world.add();
    await world.directory.publish(aid);
    await world.clock.run(2 * HOUR_MS);
    await world.directory.start();
    await world.clock.run(4 * SECOND_MS);
    assert.equal(world.kept(aid).length, 1);
    await world.clock.run(3 * SECOND_MS);
    assert.equal(world.kept(aid).length, 2);
  });
});
