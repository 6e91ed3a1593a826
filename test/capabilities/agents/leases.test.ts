import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AgentLeases } from '../../../src/capabilities/agents/leases.ts';
import { LEASE_GRACE_MS } from '../../../src/foundation/domain/agents.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { testAid } from '../../support/agents.ts';
import { TestClock } from '../../support/test-clock.ts';

const [one, two] = [testAid(1), testAid(2)];

class World {
  readonly clock = new TestClock();
  stored: unknown;
  readonly agents = new Set<Aid>([one, two]);
  failures = 0;
  leases = this.open();

  /** Those of another daemon on the same store. */
  open(): AgentLeases {
    const leases: AgentLeases = new AgentLeases({
      clock: this.clock,
      log: silentLog,
      storage: {
        get: () => this.stored,
        set: (_, value) => {
          this.stored = value;
        },
      },
      remove: (aid) => {
        if (this.failures-- > 0) throw new Error('the disk is full');
        if (!this.agents.delete(aid)) throw new SvcError('not_found');
        leases.forget(aid);
      },
    });
    return leases;
  }
}

test('a temporary agent is deleted some time after its last stream has closed', async () => {
  const world = new World();
  const { leases, clock, agents } = world;
  await leases.start();
  leases.add(one);
  clock.advance(LEASE_GRACE_MS - 1);
  const closed = [leases.follow(one), leases.follow(one)];
  clock.advance(10 * LEASE_GRACE_MS);
  closed[0]?.();
  clock.advance(LEASE_GRACE_MS);
  assert.ok(agents.has(one));
  closed[1]?.();
  clock.advance(LEASE_GRACE_MS - 1);
  const again = leases.follow(one);
  clock.advance(LEASE_GRACE_MS);
  again();
  assert.ok(agents.has(one));
  clock.advance(LEASE_GRACE_MS);
  assert.deepEqual([[...agents], world.stored, clock.timers], [[two], [], 0]);
  // Streams of other agents change nothing.
  leases.follow(two)();
  clock.advance(LEASE_GRACE_MS);
  assert.ok(agents.has(two));
});

test('a restart deletes temporary agents whose program has ended', async () => {
  const world = new World();
  await world.leases.start();
  world.leases.add(one);
  world.leases.add(two);
  const close = world.leases.follow(one);
  await world.leases.stop();
  close();
  world.clock.advance(10 * LEASE_GRACE_MS);
  assert.equal(world.agents.size, 2);
  const leases = world.open();
  await leases.start();
  leases.follow(one);
  world.failures = 1;
  world.clock.advance(LEASE_GRACE_MS);
  assert.equal(world.agents.size, 2);
  world.clock.advance(LEASE_GRACE_MS);
  assert.deepEqual([[...world.agents], world.stored], [[one], [one]]);
  await leases.stop();
  assert.equal(world.clock.timers, 0);
});

test('an agent that was never stored is forgotten', async () => {
  const world = new World();
  world.agents.clear();
  await world.leases.start();
  world.leases.add(one);
  world.clock.advance(LEASE_GRACE_MS);
  assert.deepEqual(world.stored, []);
});
