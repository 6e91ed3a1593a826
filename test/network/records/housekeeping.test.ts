import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import type { Address } from '../../../src/foundation/address.ts';
import { type Log, silentLog } from '../../../src/foundation/log.ts';
import { Housekeeping } from '../../../src/network/records/record-dht.ts';
import { nodeAddress } from '../../support/named-nodes.ts';
import { TestClock } from '../../support/test-clock.ts';

function setUp() {
  const clock = new TestClock();
  const warnings: string[] = [];
  const log: Log = { ...silentLog, warn: (_fields, message) => void warnings.push(message) };
  const world = { nodes: [] as Address[], left: 0, purges: 0, saved: [] as Address[][], flushes: 0, refuses: false };
  const refuse = (): void => {
    if (world.refuses) throw new Error('the disk is full');
  };
  const store = {
    purge: () => {
      world.purges++;
      refuse();
      return world.left-- > 0;
    },
    saveNodes: (nodes: readonly Address[]) => {
      refuse();
      world.saved.push([...nodes]);
    },
    sure: async () => void world.flushes++,
  };
  return { clock, warnings, world, keeping: new Housekeeping(clock, log, store, () => world.nodes) };
}

test('expired records are removed every minute, and again immediately if many remain', () => {
  const { clock, world, keeping } = setUp();
  keeping.start();
  clock.advance(59_999);
  assert.equal(world.purges, 0);
  world.left = 2;
  clock.advance(1);
  assert.equal(world.purges, 1);
  clock.advance(400);
  assert.equal(world.purges, 3);
  clock.advance(59_999);
  assert.equal(world.purges, 3);
  clock.advance(1);
  assert.equal(world.purges, 4);
});

test('known nodes are saved and flushed if they changed, the last of each address, and at shutdown', async () => {
  const { clock, world, keeping } = setUp();
  keeping.start();
  clock.advance(60_000);
  await setImmediate();
  assert.deepEqual(world.saved, [], 'without known nodes the stored ones stay');
  const all = Array.from({ length: 60 }, (_, n) => nodeAddress(n));
  world.nodes = all.slice(0, 2);
  for (let i = 0; i < 3; i++) {
    clock.advance(60_000);
    await setImmediate();
  }
  assert.deepEqual(world.saved, [all.slice(0, 2).reverse()], 'the same nodes are not written again');
  assert.equal(world.flushes, 1);
  world.nodes = [...all.slice(30), ...all];
  clock.advance(60_000);
  await setImmediate();
  assert.deepEqual(world.saved.at(-1), all.slice(10).reverse());
  world.nodes = [nodeAddress(1)];
  clock.advance(299_999);
  await setImmediate();
  assert.equal(world.saved.length, 2, 'many nodes are written less often');
  keeping.stop();
  assert.deepEqual(world.saved.at(-1), world.nodes);
  assert.equal(clock.timers, 0);
});

test('a failed write is logged and retried; a failure at shutdown is reported', async () => {
  const { clock, warnings, world, keeping } = setUp();
  world.nodes = [nodeAddress(1)];
  world.refuses = true;
  keeping.start();
  clock.advance(60_000);
  await setImmediate();
  assert.equal(world.purges, 1);
  assert.equal(warnings.length, 2);
  world.refuses = false;
  clock.advance(300_000);
  await setImmediate();
  assert.equal(world.saved.length, 1);
  world.refuses = true;
  assert.throws(() => keeping.stop(), /the disk is full/);
  assert.equal(clock.timers, 0);
});
