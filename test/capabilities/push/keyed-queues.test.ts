import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeyedQueues } from '../../../src/capabilities/push/keyed-queues.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { TestClock } from '../../support/test-clock.ts';

/** Queues with items that fail as often as the test says. */
class World {
  readonly clock = new TestClock();
  readonly todo = new Map<string, string[]>();
  readonly done: string[] = [];
  readonly attempts: string[] = [];
  /** Queues that fail. */
  readonly failing = new Set<string>();
  atOnce = 0;
  most = 0;
  /** Each attempt waits for it. */
  gate: Promise<void> = Promise.resolve();
  readonly lanes = new KeyedQueues(
    { name: 'items', retry: { firstMs: 1000, maxMs: 4000, jitter: 0.5 }, atOnce: { total: 2, perKey: 2 } },
    { clock: this.clock, log: silentLog, random: () => 0, work: (lane) => this.#work(lane) },
  );

  constructor() {
    this.lanes.start();
  }

  add(lane: string, ...things: string[]): void {
    this.todo.set(lane, [...(this.todo.get(lane) ?? []), ...things]);
    this.lanes.wake(lane);
  }

  async #work(lane: string): Promise<boolean> {
    this.most = Math.max(this.most, ++this.atOnce);
    await this.gate;
    this.atOnce--;
    const [next] = this.todo.get(lane) ?? [];
    if (next === undefined) return false;
    this.attempts.push(next);
    if (this.failing.has(lane)) throw new Error('away');
    this.todo.get(lane)?.shift();
    this.done.push(next);
    return true;
  }
}

test('items of one queue run in order, several queues run concurrently', async () => {
  const world = new World();
  world.add('a', 'a1', 'a2');
  world.add('b', 'b1');
  world.add('c', 'c1');
  await world.clock.run(0);
  assert.deepEqual([...world.done].sort(), ['a1', 'a2', 'b1', 'c1']);
  assert.ok(world.done.indexOf('a1') < world.done.indexOf('a2'));
  assert.equal(world.most, 2);
  world.add('a', 'a3');
  await world.clock.run(0);
  assert.equal(world.done.at(-1), 'a3');
  assert.equal(world.clock.timers, 0);
});

test('a failing queue backs off and does not delay other queues', async () => {
  const world = new World();
  world.failing.add('a');
  world.add('a', 'a1');
  world.add('b', 'b1');
  await world.clock.run(0);
  assert.deepEqual(world.done, ['b1']);
  for (const ms of [1000, 2000, 4000, 4000]) {
    const before = world.attempts.length;
    world.lanes.wake('a');
    await world.clock.run(ms - 1);
    assert.equal(world.attempts.length, before, 'a new item does not shorten the backoff');
    await world.clock.run(1);
    assert.equal(world.attempts.length, before + 1);
  }
  world.failing.clear();
  world.lanes.retryNow('a');
  await world.clock.run(0);
  assert.deepEqual(world.done, ['b1', 'a1']);
});

test('a retry requested during a failing attempt runs immediately', async () => {
  const world = new World();
  const { promise, resolve } = Promise.withResolvers<void>();
  world.gate = promise;
  world.failing.add('a');
  world.add('a', 'a1');
  await world.clock.run(0);
  world.lanes.retryNow('a');
  resolve();
  await world.clock.run(0);
  assert.equal(world.attempts.length, 2);
  assert.equal(world.clock.timers, 1);
  await world.lanes.stop();
  assert.equal(world.clock.timers, 0);
  world.add('a', 'a2');
  await world.clock.run(0);
  assert.equal(world.attempts.length, 2, 'nothing starts after a stop');
});

test('a group with hanging queues leaves room for others', async () => {
  const clock = new TestClock();
  const done: string[] = [];
  const hanging = Promise.withResolvers<boolean>();
  const lanes = new KeyedQueues(
    { name: 'items', retry: { firstMs: 1000, maxMs: 4000, jitter: 0 }, atOnce: { total: 3, perKey: 2 } },
    {
      clock,
      log: silentLog,
      random: () => 0,
      work: async (lane) => {
        done.push(lane);
        return lane.startsWith('hangs') ? hanging.promise : false;
      },
    },
  );
  lanes.start();
  for (const name of ['1', '2', '3', '4']) lanes.wake(`hangs ${name}`);
  lanes.wake('works 1');
  lanes.wake('works 2');
  await clock.run(0);
  assert.deepEqual(done, ['hangs 1', 'hangs 2', 'works 1', 'works 2']);
  hanging.resolve(false);
  await clock.run(0);
  assert.deepEqual(done.slice(4), ['hangs 3', 'hangs 4'], 'queues that waited for their group run next');
  await lanes.stop();
});

test('hanging queues of strangers leave a share to named holders', async () => {
  const clock = new TestClock();
  const done: string[] = [];
  const lanes = new KeyedQueues(
    { name: 'items', retry: { firstMs: 1000, maxMs: 4000, jitter: 0 }, atOnce: { total: 4, perKey: 2, reserved: 2 } },
    {
      clock,
      log: silentLog,
      random: () => 0,
      holderOf: (lane) => {
        const [node = ''] = lane.split(' ');
        return { node, source: `10.0.${node.length}.1`, named: node === 'friend' };
      },
      work: async (lane) => {
        done.push(lane);
        return lane.startsWith('friend') ? false : await new Promise<boolean>(() => {});
      },
    },
  );
  lanes.start();
  for (let n = 1; n < 20; n++) lanes.wake(`${'s'.repeat(n)} 1`);
  lanes.wake('friend 1');
  await clock.run(0);
  assert.deepEqual(done, ['s 1', 'ss 1', 'friend 1']);
});
