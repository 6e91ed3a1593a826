/** When a connection gets more lanes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LossWatch } from '../../../src/capabilities/tunnels/wide/loss-watch.ts';
import { MAX_LANES } from '../../../src/capabilities/tunnels/wide/wide-stream.ts';
import { FEW_LANES, Widening } from '../../../src/capabilities/tunnels/wide/widening.ts';
import {
  MAX_WINDOWS_BYTES,
  MAX_WINDOWS_PER_PEER_BYTES,
  WindowBudget,
  WindowShare,
} from '../../../src/capabilities/tunnels/wide/window-budget.ts';
import { settle } from '../../support/link-world.ts';
import { TestClock } from '../../support/test-clock.ts';

const MIB = 1024 * 1024;
const S = 1000;

/** A path of 40 ms whose packets the test counts, and a widening that opens lanes at once. */
function world({ opens = true } = {}) {
  const clock = new TestClock();
  const path = { sent: 0, lost: 0, rttMs: 40 };
  const opened: number[] = [];
  const openLane = async (index: number): Promise<void> => {
    if (!opens) throw new Error('not to be had');
    opened.push(index);
  };
  return { clock, path, opened, widening: new Widening({ path: () => path, openLane }, { clock }) };
}

test('a path without loss, a small exchange and a writer that does not wait keep their one lane', async () => {
  const { clock, path, opened, widening } = world();
  clock.advance(10 * S);
  path.sent = 1000;
  widening.progress(10 * MIB, true);
  path.lost = 20;
  widening.progress(100_000, true);
  widening.progress(10 * MIB, false);
  await settle();
  assert.deepEqual(opened, []);
});

test('loss that does not hold the connection back is no reason either', async () => {
  const { clock, path, opened, widening } = world();
  // 20,000 packets a second with this loss: it cannot be what bounds the speed.
  clock.advance(S);
  Object.assign(path, { sent: 20_000, lost: 100 });
  widening.progress(20 * MIB, true);
  await settle();
  assert.deepEqual(opened, []);
});

test('loss that holds it back brings a few lanes, and all of them where these make it faster', async () => {
  const { clock, path, opened, widening } = world();
  clock.advance(2 * S);
  Object.assign(path, { sent: 600, lost: 6 });
  widening.progress(600_000, true);
  await settle();
  assert.deepEqual(opened, [1, 2, 3]);
  clock.advance(S);
  widening.progress(600_000 + 400_000, true);
  await settle();
  assert.equal(opened.length, FEW_LANES - 1, 'hardly faster');
  clock.advance(S);
  widening.progress(1_000_000 + 1_200_000, true);
  await settle();
  assert.deepEqual(
    opened,
    Array.from({ length: MAX_LANES - 1 }, (_, i) => i + 1),
  );
});

test('the other side can ask for lanes; where none can be had, they are not tried for again', async () => {
  const asked = world();
  asked.clock.advance(S);
  asked.widening.ask();
  asked.widening.progress(MIB, false);
  await settle();
  assert.equal(asked.opened.length, FEW_LANES - 1);
  const without = world({ opens: false });
  without.widening.ask();
  without.widening.progress(MIB, false);
  await settle();
  without.widening.progress(2 * MIB, false);
  await settle();
  assert.deepEqual(without.opened, []);
});

test('loss counts only from where the writer began to wait', () => {
  const clock = new TestClock();
  const path = { sent: 100, lost: 50, rttMs: 40 };
  const watch = new LossWatch(() => path, { clock });
  clock.advance(S);
  path.sent = 300;
  assert.equal(watch.isLossy(MIB, true), false);
  path.lost = 60;
  assert.equal(watch.isLossy(MIB, true), true);
  assert.equal(watch.isLossy(MIB, false), false);
  assert.equal(watch.isLossy(MIB, true), false);
});

test('windows are bounded for each peer and in all, and room for new connections is left', () => {
  const budget = new WindowBudget();
  const first = new WindowShare(budget, 'first');
  assert.equal(first.grow(MAX_WINDOWS_PER_PEER_BYTES / 2), true);
  assert.equal(first.grow(1), false);
  assert.equal(first.begin(MAX_WINDOWS_PER_PEER_BYTES / 2), true);
  assert.equal(first.begin(1), false);
  const others = MAX_WINDOWS_BYTES / MAX_WINDOWS_PER_PEER_BYTES - 1;
  for (let i = 0; i < others; i++)
    assert.equal(new WindowShare(budget, `other ${i}`).begin(MAX_WINDOWS_PER_PEER_BYTES), true);
  assert.equal(new WindowShare(budget, 'one more').begin(1), false);
  first.giveAll();
  assert.equal(first.begin(MAX_WINDOWS_PER_PEER_BYTES), true);
});
