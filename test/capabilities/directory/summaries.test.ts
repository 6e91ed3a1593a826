import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ENDPOINTS } from '../../../src/capabilities/directory/publishing.ts';
import { Summaries } from '../../../src/capabilities/directory/summaries.ts';
import { DirectoryWorld } from '../../support/directory-world.ts';

const HOUR_MS = 3600_000;

/** Compares the cached summaries of two agents with uncached ones after each step. */
function setUp() {
  const world = new DirectoryWorld();
  const aids = [world.add().aid, world.add().aid] as const;
  const kept = new Summaries(world);
  const same = (what: string): void => assert.deepEqual(kept.of(aids), new Summaries(world).of(aids), `after ${what}`);
  return { world, aids, kept, same };
}

test('the cache matches the database after every kind of change', () => {
  const { world, aids, kept, same } = setUp();
  const { publications, clock } = world;
  const [a, b] = aids;
  const ack = (seq: number, settled: boolean) => ({
    ...{ type: 1, name: '', seq, replicas: seq, dirty: 0, settled, digest: null },
    publishedAt: clock.now(),
  });
  const steps: Readonly<Record<string, () => unknown>> = {
    nothing: () => {},
    adopt: () => publications.createMissingEndpoints(clock.now(), 3600),
    claim: () => publications.claim(a, clock.now() + 5),
    put: () => publications.put(a, ENDPOINTS),
    service: () => publications.put(a, { type: 0x10, name: 'a.b', payload: new Uint8Array([1]), ttl: 60 }),
    acknowledge: () => publications.acknowledge(a, [ack(3, false)]),
    schedule: () => publications.schedule(a, { claim: false, state: 'active', dueAt: clock.now() + 7, failures: 0 }),
    touchUnsettled: () => publications.touchUnsettled(clock.now() + 1),
    touchMoved: () => publications.touchMoved('elsewhere', clock.now(), a),
    touchEndpoints: () => publications.touchEndpoints(a, clock.now() - 1),
    touchAll: () => publications.touchAll(clock.now()),
    spreadOverdue: () => publications.spreadOverdue(clock.now(), 0.5),
    touch: () => publications.touch(a),
    hold: () => publications.schedule(a, { claim: false, state: 'held', dueAt: null, failures: 0 }),
    'wait for a caller': () => publications.schedule(a, { claim: false, state: 'active', dueAt: null, failures: 0 }),
    resume: () => publications.resume(clock.now() + 11),
    repairTimes: () => publications.repairTimes(clock.now() - HOUR_MS),
    remove: () => publications.remove(a, 0x10, 'a.b'),
    'another agent': () => publications.acknowledge(b, [ack(1, true)]),
    'a rolled-back publication': () => {
      const undone = (): void =>
        publications.transaction(() => {
          publications.acknowledge(a, [ack(9, true)]);
          throw new RangeError('disk failure');
        });
      assert.throws(undone, RangeError);
    },
  };
  for (const [what, step] of Object.entries(steps)) {
    step();
    same(what);
  }
  assert.equal(kept.of([a]).get(a)?.seq, 3);
  world.store.close();
});

test('a record expires with time, and a deleted agent is removed', async () => {
  const { world, aids, kept, same } = setUp();
  const [a] = aids;
  await world.directory.publish(a);
  same('a publication');
  assert.equal(kept.of([a]).get(a)?.published, true);
  await world.clock.run(HOUR_MS);
  same('an hour');
  assert.equal(kept.of([a]).get(a)?.published, false);
  assert.equal(world.directory.summaries([a]).get(a)?.seq, 1);
  world.remove(a);
  await world.directory.agentChanged({ aid: a, kind: 'deleted' });
  assert.equal(world.directory.summaries([a]).get(a)?.seq, 0);
  world.store.close();
});

test('a repeated list reads only the rows that changed', async (t) => {
  const { world, aids, kept } = setUp();
  await world.directory.publish(aids[0]);
  kept.of(aids);
  const read = t.mock.method(world.publications, 'publicationsOf');
  kept.of(aids);
  assert.equal(read.mock.callCount(), 0);
  await world.directory.publish(aids[0]);
  kept.of(aids);
  assert.deepEqual(
    read.mock.calls.map(({ arguments: [asked] }) => asked),
    [[aids[0]]],
  );
  world.store.close();
});
