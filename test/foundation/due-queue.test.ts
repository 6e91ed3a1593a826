import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { type Due, DueQueue, type DueQueueDependencies, type DueQueueOptions } from '../../src/foundation/due-queue.ts';
import { silentLog } from '../../src/foundation/log.ts';
import { dueRows } from '../../src/foundation/store/due-rows.ts';
import { integerOf, textOf } from '../../src/foundation/store/row.ts';
import { Store } from '../../src/foundation/store/store.ts';
import { TestClock } from '../support/test-clock.ts';

const TABLE = `CREATE TABLE work (id INTEGER PRIMARY KEY, peer TEXT NOT NULL, due_at INTEGER NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 0) STRICT; CREATE INDEX work_due ON work (due_at)`;
const YEAR_MS = 365 * 86_400_000;

/** A row of the table. */
interface Job {
  readonly id: number;
  readonly peer: string;
}

/** A queue over a real table. Jobs of failing peers fail. Jobs of hanging peers end when the test resolves their promise. */
class World {
  readonly clock = new TestClock();
  readonly store = Store.open(':memory:', [TABLE]);
  readonly begun: string[] = [];
  readonly done: string[] = [];
  readonly failing = new Set<string>();
  readonly hanging = new Map<string, PromiseWithResolvers<void>>();
  readonly network = { ready: false, changed: (): void => {} };
  /** Rows that the queue has read. */
  read = 0;
  /** The operations that the disk rejects. */
  broken: 'read' | 'write' | null = null;
  readonly queue: DueQueue<Job>;

  constructor(options: Partial<DueQueueOptions> = {}, more: Partial<DueQueueDependencies<Job>> = {}) {
    const columns = { table: 'work', dueAt: 'due_at', id: 'CAST(id AS TEXT)', key: 'peer' };
    const read = (row: Parameters<typeof integerOf>[0]): Job => ({
      id: integerOf(row, 'id'),
      peer: textOf(row, 'peer'),
    });
    const table = dueRows(this.store, columns, read, ({ id }, at) => {
      this.#write();
      this.store.run`UPDATE work SET due_at = ${at}, attempts = attempts + 1 WHERE id = ${id}`;
    });
    const due = (...range: Parameters<typeof table.due>): readonly Due<Job>[] => {
      if (this.broken === 'read') throw new Error('the disk fails');
      const rows = table.due(...range);
      this.read += rows.length;
      return rows;
    };
    this.queue = new DueQueue(
      {
        name: 'jobs',
        retry: { firstMs: 1000, maxMs: 60_000, jitter: 0.5 },
        atOnce: { total: 4, perKey: 2 },
        ...options,
      },
      {
        clock: this.clock,
        log: silentLog,
        random: () => 0,
        table: { ...table, due },
        work: (job, signal) => this.#work(job, signal),
        network: {
          reachability: () => this.network,
          onReachability: (handler) => {
            this.network.changed = handler;
            return () => {};
          },
        },
        ...more,
      },
    );
  }

  add(peer: string, inMs = 0, count = 1): void {
    this.store.run`
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})
      INSERT INTO work (peer, due_at) SELECT ${peer}, ${this.clock.now() + inMs} FROM n`;
    this.queue.soon();
  }

  get left(): number {
    return integerOf(this.store.one`SELECT count(*) AS n FROM work`, 'n');
  }

  #write(): void {
    if (this.broken === 'write') throw new Error('the disk is full');
  }

  async #work({ id, peer }: Job, signal: AbortSignal): Promise<void> {
    this.begun.push(peer);
    await this.hanging.get(peer)?.promise;
    if (this.failing.has(peer) || signal.aborted) throw new Error('away');
    this.#write();
    this.store.run`DELETE FROM work WHERE id = ${id}`;
    this.done.push(peer);
  }
}

test('failed work is repeated with growing delays up to the longest one', async () => {
  const { clock, begun, failing, queue, ...world } = new World();
  failing.add('a');
  world.store.run`INSERT INTO work (peer, due_at) VALUES ('a', ${clock.now()})`;
  queue.start();
  await clock.run(0);
  for (const [n, ms] of [1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000].entries()) {
    await clock.run(ms - 1);
    assert.equal(begun.length, n + 1, `${ms}`);
    await clock.run(1);
    assert.equal(begun.length, n + 2, `${ms}`);
  }
  await queue.stop();
  assert.equal(clock.timers, 0);
});

test('waits are spread by the given randomness', async () => {
  const world = new World({}, { random: () => 0.5 });
  world.failing.add('a');
  world.queue.start();
  world.add('a');
  await world.clock.run(749);
  assert.equal(world.begun.length, 1);
  await world.clock.run(1);
  assert.equal(world.begun.length, 2);
  await world.queue.stop();
});

test('items that a clock planned that was ahead are due when it is right, all of them', async () => {
  const world = new World();
  world.clock.jump(YEAR_MS);
  for (const peer of ['a', 'b', 'c']) world.add(peer, 60_000);
  world.clock.jump(-YEAR_MS);
  // An item with a right time does not hide them.
  world.failing.add('d');
  world.add('d');
  world.queue.start();
  await world.clock.run(10);
  assert.deepEqual(world.done, ['a', 'b', 'c']);
  await world.queue.stop();
});

test('a clock that is set back while the queue waits delays an item by its longest wait at most', async () => {
  const world = new World();
  world.queue.start();
  world.failing.add('a');
  world.add('a');
  await world.clock.run(31_000);
  const before = world.begun.length;
  world.clock.jump(-YEAR_MS);
  await world.clock.run(60_000);
  assert.equal(world.begun.length, before + 1);
  await world.queue.stop();
});

test('an item may wait longer than a retry if the queue allows it', async () => {
  const world = new World({ maxWaitMs: 3_600_000 });
  world.queue.start();
  world.add('a', 3_600_000);
  await world.clock.run(3_599_999);
  assert.deepEqual(world.done, []);
  await world.clock.run(1);
  assert.deepEqual(world.done, ['a']);
  await world.queue.stop();
});

test('failed items are due when the network is ready again, and others keep their time', async () => {
  const world = new World({ maxWaitMs: YEAR_MS });
  world.queue.start();
  world.add('failed', 50_000);
  world.add('planned', 3_600_000);
  await world.clock.run(10);
  world.network.changed();
  await world.clock.run(10);
  assert.deepEqual(world.done, [], 'it is not ready');
  world.network.ready = true;
  world.network.changed();
  await world.clock.run(10);
  assert.deepEqual(world.done, ['failed']);
  world.add('other', 50_000);
  world.network.changed();
  await world.clock.run(10);
  assert.deepEqual(world.done, ['failed'], 'the network is not new');
  await world.queue.stop();
});

test('the work on thousands of due items is limited in total and per key, and reads few rows', async () => {
  const world = new World({ atOnce: { total: 4, perKey: 2 } });
  world.hanging.set('slow', Promise.withResolvers());
  world.add('slow', 0, 2000);
  world.add('quick', 1, 3);
  world.queue.start();
  await world.clock.run(10);
  assert.deepEqual(world.begun.sort(), ['quick', 'quick', 'quick', 'slow', 'slow']);
  assert.ok(world.read < 100, `${world.read} rows`);
  world.hanging.get('slow')?.resolve();
  await world.clock.run(10_000);
  assert.equal(world.left, 0);
  assert.ok(world.read < 2000 * 12, `${world.read} rows`);
  await world.queue.stop();
});

test('keys that have no room do not hide others', async () => {
  const world = new World(
    { atOnce: { total: 4, perKey: 2, reserved: 2 } },
    { holderOf: ({ key }) => ({ node: key, source: `10.0.${key.length}.1`, named: key === 'friend' }) },
  );
  for (let n = 1; n < 100; n++) {
    world.hanging.set('s'.repeat(n), Promise.withResolvers());
    world.add('s'.repeat(n));
  }
  world.add('friend', 1);
  world.queue.start();
  await world.clock.run(10);
  assert.deepEqual(world.begun, ['s', 'ss', 'friend']);
});

test('a pause delays further work', async () => {
  let next = 0;
  const pauseMs = (): number => {
    const ms = Math.max(0, next - world.clock.now());
    if (ms === 0) next = world.clock.now() + 1000;
    return ms;
  };
  const world: World = new World({}, { pauseMs });
  world.queue.start();
  world.add('a', 0, 3);
  await world.clock.run(10);
  for (const expected of [1, 2, 3]) {
    assert.equal(world.done.length, expected);
    await world.clock.run(1000);
  }
  await world.queue.stop();
});

test('an item that must wait does not delay others, and starts when its wait is over', async () => {
  const world: World = new World(
    {},
    { waitMs: ({ peer }) => (peer === 'slow' ? Math.max(0, over - world.clock.now()) : 0) },
  );
  const over = world.clock.now() + 700;
  world.add('slow', 0, 50);
  world.add('quick', 1, 2);
  world.add('later', 500);
  world.queue.start();
  await world.clock.run(10);
  assert.deepEqual(world.done, ['quick', 'quick']);
  assert.ok(world.read < 100, `${world.read} rows`);
  await world.clock.run(500);
  assert.deepEqual(world.done.slice(2), ['later']);
  await world.clock.run(180);
  assert.equal(world.done.length, 3);
  await world.clock.run(10);
  assert.equal(world.done.length, 53);
  await world.queue.stop();
});

test('a stop aborts the work under way, waits until it ends, and leaves the table alone', async () => {
  const world = new World();
  const hanging = Promise.withResolvers<void>();
  world.hanging.set('a', hanging);
  world.queue.start();
  world.add('a');
  await world.clock.run(1);
  let isStopped = false;
  const stopping = world.queue.stop().then(() => {
    isStopped = true;
  });
  await turn();
  assert.equal(isStopped, false);
  world.add('b');
  hanging.resolve();
  await stopping;
  world.store.close();
  assert.deepEqual([world.begun, world.clock.timers], [['a'], 0]);
  world.queue.soon();
  await world.clock.run(100_000);
});

test('a table that cannot be read is read again after a pause, even if items are added', async () => {
  const world = new World();
  world.broken = 'read';
  world.queue.start();
  await world.clock.run(4999);
  world.broken = null;
  world.add('a');
  assert.deepEqual(world.done, []);
  await world.clock.run(1);
  assert.deepEqual(world.done, ['a']);
  await world.queue.stop();
});

test('work is not repeated without a pause while its result cannot be written', async () => {
  const world = new World();
  world.queue.start();
  world.broken = 'write';
  for (const peer of ['a', 'b', 'c']) world.add(peer);
  await world.clock.run(29_999);
  assert.equal(world.begun.length, 3);
  world.broken = null;
  world.add('d');
  await world.clock.run(10);
  assert.deepEqual(world.done.sort(), ['a', 'b', 'c', 'd']);
  await world.queue.stop();
});
