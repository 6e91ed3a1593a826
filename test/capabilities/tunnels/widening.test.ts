/** When a connection gets more lanes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LossWatch } from '../../../src/capabilities/tunnels/wide/loss-watch.ts';
import { LossyNodes } from '../../../src/capabilities/tunnels/wide/lossy-nodes.ts';
import { NEXT_LANE_MS, Widening } from '../../../src/capabilities/tunnels/wide/widening.ts';
import {
  MAX_WINDOWS_BYTES,
  MAX_WINDOWS_PER_NODE_BYTES,
  MAX_WINDOWS_PER_SOURCE_BYTES,
  NEW_BYTES,
  RESERVED_WINDOWS_BYTES,
  WindowBudget,
  WindowShare,
} from '../../../src/capabilities/tunnels/wide/window-budget.ts';
import type { QuotaHolder } from '../../../src/foundation/quota.ts';
import { settle } from '../../support/link-world.ts';
import { TestClock } from '../../support/test-clock.ts';

const MIB = 1024 * 1024;
const S = 1000;

/** A path of 40 ms whose packets the test counts, and a widening that opens lanes at once. */
function world({ opens = true } = {}) {
  const clock = new TestClock();
  const path = { sent: 0, lost: 0, rttMs: 40 };
  const lossy = new LossyNodes({ clock });
  const watch = new LossWatch({ counts: () => path, node: 'far', lossy }, { clock });
  const opened: { readonly lose: () => void }[] = [];
  let tries = 0;
  const openLane = async (): Promise<void> => {
    tries++;
    if (!opens) throw new Error('not to be had');
    const { promise, resolve: lose } = Promise.withResolvers<void>();
    opened.push({ lose });
    await promise;
  };
  return { clock, path, lossy, opened, tries: () => tries, widening: new Widening({ watch, openLane }, { clock }) };
}

test('a path without loss, a small exchange and a writer that does not wait keep their one lane', async () => {
  const { clock, path, opened, widening } = world();
  clock.advance(10 * S);
  path.sent = 1000;
  widening.progress(10 * MIB, true);
  path.lost = 20;
  widening.progress(60_000, true);
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

test('loss that holds it back brings a lane, and another one a while after that is lost', async () => {
  const { clock, path, opened, widening } = world();
  clock.advance(2 * S);
  Object.assign(path, { sent: 600, lost: 6 });
  const progress = async (): Promise<number> => {
    widening.progress(600_000, true);
    await settle();
    return opened.length;
  };
  assert.equal(await progress(), 1);
  assert.equal(await progress(), 1);
  opened[0]?.lose();
  await settle();
  assert.equal(await progress(), 1, 'not at once');
  clock.advance(NEXT_LANE_MS);
  assert.equal(await progress(), 2);
});

test('once packets were lost on the way to a node, the next connection there waits for no more of that', async () => {
  const { clock, path, lossy, opened, widening } = world();
  const waits = (moved: number): void => widening.progress(moved, true);
  waits(1);
  await settle();
  assert.equal(opened.length, 0);
  lossy.add('far');
  widening.progress(MIB, false);
  await settle();
  assert.equal(opened.length, 0);
  waits(1);
  await settle();
  assert.equal(opened.length, 1);
  // Who finds it out tells the others.
  const other = world();
  other.clock.advance(2 * S);
  Object.assign(other.path, { sent: 600, lost: 6 });
  assert.equal(other.lossy.has('far'), false);
  other.widening.progress(600_000, true);
  assert.equal(other.lossy.has('far'), true);
  clock.advance(S);
  assert.equal(path.lost, 0);
});

test('the other side can ask for a lane; where none can be had, it is not tried for again and again', async () => {
  const asked = world();
  asked.clock.advance(S);
  asked.widening.ask();
  asked.widening.progress(MIB, false);
  await settle();
  assert.equal(asked.opened.length, 1);
  const without = world({ opens: false });
  without.widening.ask();
  for (let i = 1; i < 4; i++) {
    without.widening.progress(i * MIB, false);
    await settle();
  }
  assert.equal(without.tries(), 1);
});

test('loss counts only from where the writer began to wait', () => {
  const clock = new TestClock();
  const path = { sent: 100, lost: 50, rttMs: 40 };
  const newWatch = (): LossWatch =>
    new LossWatch({ counts: () => path, node: 'far', lossy: new LossyNodes({ clock }) }, { clock });
  const [lossy, patient] = [newWatch(), newWatch()];
  clock.advance(S);
  path.sent = 300;
  assert.equal(lossy.isLossy(MIB, true), false);
  path.lost = 60;
  assert.equal(patient.isLossy(MIB, false), false);
  assert.equal(patient.isLossy(MIB, true), false);
  assert.equal(lossy.isLossy(MIB, true), true);
});

test('windows are bounded by node, source, network and in all, and growing ones leave room for new connections', () => {
  const budget = new WindowBudget();
  const stranger = (i: number, source: string) => ({ node: `node ${i}`, source, named: false });
  const begun = (count: number, holder: (i: number) => QuotaHolder): number =>
    Array.from({ length: count }, (_, i) => new WindowShare(budget, holder(i)).begin()).filter((is) => is).length;
  const perSource = MAX_WINDOWS_PER_SOURCE_BYTES / NEW_BYTES;
  assert.equal(
    begun(2 * perSource, (i) => stranger(i, `192.0.2.${i}`)),
    perSource,
  );
  const strangers = (MAX_WINDOWS_BYTES - RESERVED_WINDOWS_BYTES) / NEW_BYTES;
  assert.equal(
    begun(2 * strangers, (i) => stranger(i, `10.0.${i}.1`)),
    strangers - perSource,
  );
  const named = { node: 'named', source: '192.0.2.1', named: true };
  const share = new WindowShare(budget, named);
  assert.equal(share.begin(), true);
  assert.equal(share.grow(MAX_WINDOWS_PER_NODE_BYTES), true);
  assert.equal(share.grow(1), false);
  const perNode = MAX_WINDOWS_PER_NODE_BYTES / NEW_BYTES;
  assert.equal(
    begun(2 * perNode, () => named),
    perNode - 1,
  );
  share.giveAll();
  assert.equal(new WindowShare(budget, named).begin(), true);
  assert.equal(new WindowShare(budget, named).grow(MAX_WINDOWS_PER_NODE_BYTES), true);
});
