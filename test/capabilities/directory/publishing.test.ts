import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import type { ServiceOffer } from '../../../src/capabilities/directory/cards.ts';
import { unixSeconds } from '../../../src/foundation/clock.ts';
import { MAX_NAMES_PER_CALL, MAX_SERVICES } from '../../../src/foundation/domain/directory.ts';
import type { SvcError } from '../../../src/foundation/errors.ts';
import { agentKey } from '../../../src/foundation/records/keys.ts';
import { decodeEndpointsPayload } from '../../../src/foundation/records/payloads.ts';
import { RECORD } from '../../../src/foundation/records/types.ts';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { DirectoryWorld } from '../../support/directory-world.ts';
import { delegateAnew, newIdentity } from '../../support/identities.ts';
import { idle } from '../../support/idle.ts';
import { testRecord } from '../../support/records.ts';
import { slowDisk } from '../../support/slow-disk.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

const HOUR_MS = 3600_000;

function offer(...services: string[]): ServiceOffer {
  return { services, name: 'Test', protocols: ['http'], tags: [], brief: '', meta: null, ttl: 3600 };
}

test('publishing stores a signed endpoint record and returns the number of replicas', async () => {
  const world = new DirectoryWorld();
  const { aid } = world.add();
  assert.deepEqual(await world.directory.publish(aid), { seq: 1, replicas: 8 });
  assert.deepEqual(await world.directory.publish(aid), { seq: 2, replicas: 8 });
  const [first, second] = world.kept(aid);
  assert.equal(first?.ttl, 3600);
  assert.deepEqual(decodeEndpointsPayload(second?.payload ?? new Uint8Array()), {
    endpoints: ['quic://192.0.2.1:4122'],
    natType: 1,
    nodeKey: world.node.publicKey,
    helpers: [],
    customTypes: [],
  });
  assert.deepEqual(world.published, [first, second]);
  const summary = world.directory.summary(aid);
  assert.equal(summary.seq, 2);
  assert.equal(summary.published, true);
  assert.equal(summary.lastPublishAt, world.clock.now());
  assert.equal(summary.recordExpiresAt, world.clock.now() + HOUR_MS);
  assert.equal(summary.replicas, 8);
  world.store.close();
});

test('a record is sent only after its number is on disk, and not at all if the disk fails', async (t) => {
  const disk = slowDisk(t);
  const store = Store.open(join(temporaryDirectory(t), 'a.db'), MIGRATIONS);
  store.reserveJournal();
  disk.complete();
  const world = new DirectoryWorld({ store });
  const { aid } = world.add();
  const { network } = world;
  const published = world.directory.publish(aid);
  await idle();
  assert.deepEqual([network.kept.length, disk.pending.length], [0, 1]);
  disk.complete();
  assert.equal((await published).seq, 1);
  const refused = assert.rejects(world.directory.publish(aid), { code: 'not_writable' });
  await idle();
  disk.complete(Object.assign(new Error('disk failure'), { syscall: 'fdatasync' }));
  await refused;
  assert.equal(network.kept.length, 1);
  const again = world.directory.publish(aid);
  await idle();
  disk.complete();
  assert.equal((await again).seq, 3, 'a number is never assigned twice');
  world.store.close();
});

test('accompanying records are published together with the endpoint record', async () => {
  const world = new DirectoryWorld();
  const { aid } = world.add();
  const payload = new Uint8Array([1]);
  let isDue = true;
  world.directory.accompany((one) => (isDue && one === aid ? { type: 3, name: '', payload, ttl: 7200 } : null));
  assert.deepEqual(await world.directory.publish(aid), { seq: 1, replicas: 8 });
  assert.deepEqual(
    world.network.kept.map(({ type, seq, ttl }) => [type, seq, ttl]),
    [
      [1, 1, 3600],
      [3, 2, 7200],
    ],
  );
  assert.equal(world.network.reads, 1);
  isDue = false;
  assert.equal((await world.directory.publish(aid)).seq, 3);
  assert.deepEqual([world.kept(aid).length, world.kept(aid, 3).length], [2, 1]);
  world.store.close();
});

test('the endpoint record is published even if an accompanying record cannot be built or stored', async () => {
  const world = new DirectoryWorld();
  const { aid } = world.add();
  let broken = true;
  world.directory.accompany(() => {
    if (broken) throw new Error('disk failure');
    return { type: 3, name: '', payload: new Uint8Array([1]), ttl: 7200 };
  });
  assert.deepEqual(await world.directory.publish(aid), { seq: 1, replicas: 8 });
  broken = false;
  world.network.beforePut = ({ type }) => {
    if (type === 3) throw new Error('network down');
  };
  assert.deepEqual(await world.directory.publish(aid), { seq: 2, replicas: 8 });
  assert.equal(world.publications.publications(aid).find(({ type }) => type === 3)?.publishedAt, null);
  world.network.beforePut = () => {};
  await world.directory.start();
  await world.clock.run(60_000);
  assert.ok(world.kept(aid, 3).length > 0);
  await world.directory.stop();
  world.store.close();
});

test('an agent that is deleted while its publication waits for the disk is not published', async () => {
  const world = new DirectoryWorld();
  const { aid } = world.add();
  const published = world.directory.publish(aid);
  world.remove(aid);
  await assert.rejects(published, { code: 'not_found' });
  assert.equal(world.publications.publisher(aid), null);
  assert.equal(world.kept(aid).length, 0);
  world.store.close();
});

test('an unknown agent is not found', async () => {
  const world = new DirectoryWorld();
  const { aid } = newIdentity();
  const calls = [
    world.directory.publish(aid),
    world.directory.publishRecord(aid, 3, new Uint8Array(1), 60),
    world.directory.setProfile(aid, {}),
    world.directory.deleteProfile(aid),
    world.directory.unregisterService(aid, 'a.b'),
  ];
  for (const call of calls) await assert.rejects(call, { code: 'not_found' });
  world.store.close();
});

test('without an acknowledgment, publishing fails with this error and is retried until one arrives', async () => {
  const world = new DirectoryWorld();
  const { aid } = world.add();
  await world.directory.start();
  await world.clock.run(10_000);
  world.network.become({ peers: 3 });
  world.network.replicas = 0;
  await assert.rejects(world.directory.publish(aid), { code: 'not_acknowledged' });
  assert.equal(world.directory.summary(aid).everPublished, false);
  await world.clock.run(30_000);
  assert.equal(world.kept(aid).length, 0);
  world.network.replicas = 3;
  await world.clock.run(60_000);
  assert.equal(world.kept(aid).length, 1);
  assert.equal(world.directory.summary(aid).replicas, 3);
  await world.directory.stop();
  world.store.close();
});

test('if every node rejects the timestamp of a record, the error says that the clock is wrong', async () => {
  const world = new DirectoryWorld();
  const { aid } = world.add();
  await world.directory.start();
  world.network.become({ peers: 3 });
  world.network.replicas = 0;
  world.network.refused = { not_now: 2, limited: 1 };
  await assert.rejects(world.directory.publish(aid), { code: 'clock_wrong', details: { refused: 2 } });
  assert.equal(world.directory.summary(aid).everPublished, false);
  world.network.replicas = 3;
  await world.clock.run(60_000);
  assert.equal(world.directory.summary(aid).replicas, 3, 'it was retried');
  await world.directory.stop();
  world.store.close();
});

test('a put that fails or times out is retried', async () => {
  const world = new DirectoryWorld();
  const { aid } = world.add();
  await world.directory.start();
  world.network.beforePut = () => {
    throw new Error('network down');
  };
  await assert.rejects(world.directory.publish(aid), { code: 'not_acknowledged' });
  world.network.beforePut = async () => new Promise(() => {});
  const hanging = assert.rejects(world.directory.publish(aid), { code: 'timeout' });
  await world.clock.run(16_000);
  await hanging;
  world.network.beforePut = () => {};
  await world.clock.run(60_000);
  assert.ok(world.directory.summary(aid).published);
  await world.directory.stop();
  world.store.close();
});

test('a publication during which this machine stalls is not given up', async () => {
  const world = new DirectoryWorld();
  const { aid } = world.add();
  await world.directory.start();
  const { promise: answered, resolve: answer } = Promise.withResolvers<void>();
  const put = Promise.withResolvers<void>();
  world.network.beforePut = () => {
    put.resolve();
    return answered;
  };
  const published = world.directory.publish(aid);
  await put.promise;
  world.clock.jump(20_000);
  await world.clock.run(500);
  answer();
  assert.equal((await published).replicas, world.network.replicas);
  await world.directory.stop();
  world.store.close();
});

test('publishing on request takes over from another node, and renewal there stops until it publishes again', async () => {
  const here = new DirectoryWorld();
  const there = new DirectoryWorld({ clock: here.clock, network: here.network });
  const agent = here.add();
  there.add(agent);
  await here.directory.start();
  await there.directory.start();
  for (let i = 0; i < 5; i++) await here.directory.publish(agent.aid);
  assert.equal((await there.directory.publish(agent.aid)).seq, 6);
  const hosted = (): boolean => {
    const payload = decodeEndpointsPayload(here.kept(agent.aid).at(-1)?.payload ?? new Uint8Array());
    return payload !== null && Buffer.compare(payload.nodeKey, there.node.publicKey) === 0;
  };
  await here.clock.run(6 * HOUR_MS);
  assert.ok(hosted(), 'the newer record remains');
  assert.equal(here.publications.publisher(agent.aid)?.state, 'held');
  assert.equal(here.directory.summary(agent.aid).nextRepublishAt, null);
  assert.equal(there.publications.publisher(agent.aid)?.state, 'active');
  await here.directory.publish(agent.aid);
  assert.ok(!hosted());
  await here.clock.run(6 * HOUR_MS);
  assert.ok(!hosted());
  assert.equal(there.publications.publisher(agent.aid)?.state, 'held');
  await Promise.all([here.directory.stop(), there.directory.stop()]);
  here.store.close();
  there.store.close();
});

test('a record under a newer delegation is not overwritten, and the error suggests a fix', async () => {
  const here = new DirectoryWorld();
  const there = new DirectoryWorld({ clock: here.clock, network: here.network });
  const old = here.add();
  await here.directory.publish(old.aid);
  const renewed = delegateAnew(old.master, old.delegation.issuedAt + 10);
  there.add(renewed);
  here.clock.advance(10_000);
  await there.directory.publish(old.aid);
  assert.deepEqual(here.noted, []);
  await assert.rejects(here.directory.publish(old.aid), { code: 'stale_sequence', message: /newer delegation/ });
  assert.equal(here.publications.publisher(old.aid)?.state, 'held');
  assert.deepEqual(here.noted, [[old.aid, renewed.delegation.issuedAt]]);
  here.store.close();
  there.store.close();
});

test('the owner of the master key regains an identity from an attacker that used the highest number', async () => {
  const attacker = new DirectoryWorld();
  const owner = new DirectoryWorld({ clock: attacker.clock, network: attacker.network });
  const stolen = attacker.add();
  owner.add(stolen);
  await owner.directory.publish(stolen.aid);
  attacker.publications.claim(stolen.aid, null);
  attacker.publications.reserve(stolen.aid, Number.MAX_SAFE_INTEGER - 1000, 1);
  await attacker.directory.publish(stolen.aid);
  await assert.rejects(owner.directory.publish(stolen.aid), { code: 'stale_sequence', message: /stolen/ });
  attacker.clock.advance(60_000);
  owner.add(delegateAnew(stolen.master, stolen.delegation.issuedAt + 60));
  await owner.directory.agentChanged({ aid: stolen.aid, kind: 'rotated' });
  await owner.directory.publish(stolen.aid);
  const now = await attacker.network.get(agentKey(stolen.aid), 1);
  assert.deepEqual(decodeEndpointsPayload(now?.payload ?? new Uint8Array())?.nodeKey, owner.node.publicKey);
  attacker.store.close();
  owner.store.close();
});

test('after a restored backup, publishing continues above the higher numbers used before', async () => {
  const before = new DirectoryWorld();
  const agent = before.add();
  for (let i = 0; i < 9; i++) await before.directory.publish(agent.aid);
  await before.directory.registerServices(agent.aid, offer('a.b'));
  const restored = new DirectoryWorld({ clock: before.clock, network: before.network, node: before.node });
  restored.add(agent);
  restored.publications.claim(agent.aid, null);
  restored.publications.put(agent.aid, { type: 1, name: '', payload: new Uint8Array(), ttl: 3600 });
  restored.publications.put(agent.aid, {
    type: 0x10,
    name: 'a.b',
    payload: before.published.at(-1)?.payload ?? new Uint8Array(),
    ttl: 3600,
  });
  restored.publications.schedule(agent.aid, {
    claim: false,
    state: 'active',
    dueAt: restored.clock.now(),
    failures: 0,
  });
  await restored.directory.start();
  await restored.clock.run(10_000);
  assert.ok(restored.directory.summary(agent.aid).seq > 9);
  assert.ok((before.kept(agent.aid, 0x10).at(-1)?.seq ?? 0) > 10);
  await restored.directory.stop();
  before.store.close();
  restored.store.close();
});

test('an expired delegation stops publication with a clear error', async () => {
  const world = new DirectoryWorld();
  const now = world.clock.now() / 1000;
  const agent = world.add(delegateAnew(newIdentity().master, now, now + 1000));
  await world.directory.start();
  await world.directory.publish(agent.aid);
  await world.clock.run(2 * HOUR_MS);
  assert.equal(world.kept(agent.aid).length, 1);
  await assert.rejects(world.directory.publish(agent.aid), { code: 'bad_delegation' });
  await world.directory.stop();
  world.store.close();
});

test('deleting an agent removes its publications, even during a publication', async () => {
  const world = new DirectoryWorld();
  const { aid } = world.add();
  world.network.beforePut = async () => {
    world.network.beforePut = () => {};
    world.remove(aid);
    await world.directory.agentChanged({ aid, kind: 'deleted' });
  };
  await world.directory.publish(aid);
  assert.equal(world.publications.publisher(aid), null);
  assert.deepEqual(world.publications.publications(aid), []);
  world.store.close();
});

test('publications of an agent are sent sequentially', async () => {
  const world = new DirectoryWorld();
  const { aid } = world.add();
  const results = await Promise.all(Array.from({ length: 20 }, async () => world.directory.publish(aid)));
  assert.deepEqual(
    results.map(({ seq }) => seq),
    Array.from({ length: 20 }, (_, i) => i + 1),
  );
  world.store.close();
});

test('reserved numbers are used if they are above those in the network. Otherwise higher numbers are assigned', async () => {
  const world = new DirectoryWorld();
  const identity = world.add();
  const before = new DirectoryWorld({ network: world.network, clock: world.clock });
  before.add(identity);
  await before.directory.publish(identity.aid);
  const puts: number[] = [];
  world.network.beforePut = ({ seq }) => void puts.push(seq);
  assert.deepEqual(await world.directory.publish(identity.aid), { seq: 2, replicas: 8 });
  assert.deepEqual(await world.directory.registerServices(identity.aid, offer('a.b', 'c.d')), { seq: 4, replicas: 8 });
  assert.deepEqual(puts, [2, 3, 4], 'no number that the other machine has used');
  world.store.close();
  before.store.close();
});

test('later acknowledgments update the replicas, unless the record was published again', async () => {
  const world = new DirectoryWorld();
  const { aid } = world.add();
  world.network.become({ peers: 7 });
  world.network.replicas = 4;
  assert.deepEqual(await world.directory.publish(aid), { seq: 1, replicas: 4 });
  world.network.wholes[0]?.({ replicas: 7, newer: null, refused: {} });
  await world.clock.run(0);
  assert.equal(world.directory.summary(aid).replicas, 7);
  assert.deepEqual(await world.directory.publish(aid), { seq: 2, replicas: 4 });
  world.network.wholes[0]?.({ replicas: 6, newer: null, refused: {} });
  await world.clock.run(0);
  assert.equal(world.directory.summary(aid).replicas, 4, 'the result belongs to an older record');
  world.store.close();
  world.network.wholes[1]?.({ replicas: 7, newer: null, refused: {} });
  await world.clock.run(0);
});

test('repeated publications read the current record from the network at most every two seconds', async () => {
  const world = new DirectoryWorld();
  const { aid } = world.add();
  const reads = async (): Promise<number> => {
    const before = world.network.reads;
    await world.directory.publish(aid);
    return world.network.reads - before;
  };
  assert.deepEqual([await reads(), await reads()], [1, 0]);
  await world.directory.registerServices(aid, offer('a.b'));
  world.clock.advance(1999);
  assert.equal(await reads(), 0);
  world.clock.advance(1);
  assert.equal(await reads(), 1);
  world.store.close();
});

test('for an AID created here less than two seconds ago, the network is not read', async () => {
  const world = new DirectoryWorld();
  const { aid } = world.add();
  world.newAids.add(aid);
  world.clock.advance(1999);
  assert.deepEqual(await world.directory.publish(aid), { seq: 1, replicas: 8 });
  assert.equal(world.network.reads, 0);
  world.clock.advance(1);
  await world.directory.publish(aid);
  assert.equal(world.network.reads, 1);
  world.store.close();
});

test('if another machine publishes a new AID, publishing continues above its number', async () => {
  const world = new DirectoryWorld();
  const agent = world.add();
  world.newAids.add(agent.aid);
  const key = agentKey(agent.aid);
  await world.network.put(key, testRecord(agent, 1, { timestamp: unixSeconds(world.clock), seq: 70 }));
  assert.equal((await world.directory.publish(agent.aid)).seq, 71);
  assert.equal(world.network.reads, 0);
  await world.directory.publish(agent.aid);
  assert.equal(world.network.reads, 1, 'the AID no longer counts as new');
  world.store.close();
});

test('if a newer record is found after the response, the record is published again above it', async () => {
  const world = new DirectoryWorld();
  const agent = world.add();
  await world.directory.start();
  await world.clock.run(10_000);
  world.network.replicas = 4;
  const { seq } = await world.directory.publish(agent.aid);
  const newer = testRecord(agent, 1, { timestamp: unixSeconds(world.clock), seq: 70 });
  const key = agentKey(agent.aid);
  await world.network.put(key, newer);
  world.network.wholes[0]?.({ replicas: 4, newer, refused: { newer: 3 } });
  await world.clock.run(5000);
  assert.deepEqual(
    world.kept(agent.aid).map((record) => record.seq),
    [seq, 70, 71],
  );
  await world.directory.stop();
  world.store.close();
});

test('the empty card that replaces a deleted profile is published once and not renewed', async () => {
  const world = new DirectoryWorld();
  const { aid } = world.add();
  await world.directory.setProfile(aid, { name: 'Test' });
  const before = world.network.kept.length;
  assert.equal((await world.directory.deleteProfile(aid)).replicas, 8);
  assert.equal(world.network.kept.length, before + 1);
  assert.deepEqual(world.publications.publications(aid), []);
  assert.equal(world.directory.summary(aid).profile, null);
  world.store.close();
});

test('services that are registered at the same time cannot exceed the limit of an agent', async () => {
  const world = new DirectoryWorld();
  const { aid } = world.add();
  const calls = MAX_SERVICES / MAX_NAMES_PER_CALL + 2;
  const wanted = Array.from({ length: calls }, (_call, i) =>
    world.directory.registerServices(
      aid,
      offer(...Array.from({ length: MAX_NAMES_PER_CALL }, (_name, n) => `s${i}.${n}`)),
    ),
  );
  const outcomes = await Promise.allSettled(wanted);
  const failures = outcomes.flatMap((one) => (one.status === 'rejected' ? [one.reason as SvcError] : []));
  assert.deepEqual(
    failures.map(({ code, details }) => [code, details?.['limit']]),
    Array.from({ length: 2 }, () => ['quota_exceeded', MAX_SERVICES]),
  );
  const services = world.publications.publications(aid).filter(({ type }) => type === RECORD.service);
  assert.equal(services.length, MAX_SERVICES);
  await world.directory.registerServices(aid, offer('s0.0'));
  world.store.close();
});
