/** When packet loss counts as the reason why a connection is slow. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LONG_PATH_MS, LossWatch, lossyNodes } from '../../../src/network/links/loss-watch.ts';
import { TestClock } from '../../support/test-clock.ts';

const MIB = 1024 * 1024;
const S = 1000;
const NODE_KEY = new Uint8Array(32).fill(7);

/** A path of 40 ms whose packets the test counts. */
function world({ rttMs = 40, isUpgraded = false } = {}) {
  const clock = new TestClock();
  const lossy = lossyNodes(clock);
  const counts = { sent: 0, lost: 0 };
  const link = {
    nodeKey: NODE_KEY,
    packets: () => ({ ...counts }),
    path: () => ({ kind: 'direct', remote: null, source: null, rttMs, isUpgraded }) as const,
  };
  const watch = (): LossWatch => new LossWatch(link, lossy, clock);
  return { clock, counts, watch, link, lossy };
}

/** Losses that limit the speed. */
function loseMany({ clock, counts }: ReturnType<typeof world>): void {
  clock.advance(2 * S);
  counts.sent += 600;
  counts.lost += 6;
}

test('loss that slows a connection down counts, from the moment at which its writer waits', () => {
  const path = world();
  Object.assign(path.counts, { sent: 100, lost: 50 });
  const watch = path.watch();
  path.clock.advance(S);
  path.counts.sent = 300;
  assert.equal(watch.isLossy(MIB), false);
  loseMany(path);
  assert.equal(watch.isLossy(MIB), true);
});

test('neither a path without loss, nor a small exchange, nor a short or upgraded path counts', () => {
  const clean = world();
  const watch = clean.watch();
  clean.clock.advance(10 * S);
  clean.counts.sent = 1000;
  assert.equal(watch.isLossy(10 * MIB), false);
  loseMany(clean);
  assert.equal(watch.isLossy(60_000), false);
  for (const options of [{ rttMs: LONG_PATH_MS - 1 }, { isUpgraded: true }]) {
    const other = world(options);
    const quick = other.watch();
    loseMany(other);
    assert.equal(quick.isLossy(MIB), false);
  }
  const local = new LossWatch({ nodeKey: null, path: clean.link.path }, clean.lossy, clean.clock);
  assert.equal(local.isLossy(MIB), false);
});

test('loss that does not limit the speed does not count', () => {
  const path = world();
  const watch = path.watch();
  // 20,000 packets per second with this loss: something else limits the speed.
  path.clock.advance(S);
  Object.assign(path.counts, { sent: 20_000, lost: 100 });
  assert.equal(watch.isLossy(20 * MIB), false);
});

test('the next connection to a node with recent loss does not measure it again', () => {
  const path = world();
  const first = path.watch();
  loseMany(path);
  assert.equal(path.watch().isLossy(MIB), false);
  assert.equal(first.isLossy(MIB), true);
  assert.equal(path.watch().isLossy(MIB), true);
  path.clock.advance(3600 * S);
  assert.equal(path.watch().isLossy(MIB), false);
});
