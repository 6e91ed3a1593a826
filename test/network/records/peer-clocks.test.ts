import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PeerClocks } from '../../../src/network/records/peer-health.ts';

const NOW = 1_800_000_000_000;

function peer(n: number) {
  return { host: `192.0.2.${n}`, port: 4121 };
}

/** A report of a node with a clock this many seconds ahead of the local one. */
function report(clocks: PeerClocks, n: number, aheadS: number, at = NOW): void {
  clocks.heard(peer(n), Math.floor(at / 1000) + aheadS, at, at + 1000);
}

test('the offset is the median of the reports, one per node', () => {
  const clocks = new PeerClocks();
  assert.deepEqual(clocks.compare(NOW), { offsetMs: null, peers: 0 });
  for (const n of [1, 2, 3]) report(clocks, n, 300);
  for (const n of [4, 5]) report(clocks, n, -1_000_000);
  report(clocks, 4, -2_000_000);
  assert.deepEqual(clocks.compare(NOW), { offsetMs: 300_000, peers: 5 });
});

test('old reports, reports from before a clock change, and all but the last 64 are ignored', () => {
  const clocks = new PeerClocks();
  report(clocks, 1, 50);
  assert.equal(clocks.compare(NOW + 700_000).peers, 0);
  assert.equal(clocks.compare(NOW - 700_000).peers, 0);
  for (let n = 2; n <= 101; n++) report(clocks, n, 0);
  assert.deepEqual(clocks.compare(NOW), { offsetMs: 0, peers: 64 });
});

test('the local clock is ahead if the median of at least three nodes shows it', () => {
  const clocks = new PeerClocks();
  for (const n of [1, 2]) report(clocks, n, -300);
  assert.equal(clocks.aheadMs(NOW), 0);
  report(clocks, 3, 300);
  assert.equal(clocks.aheadMs(NOW), 300_000);
  for (const n of [4, 5]) report(clocks, n, 300);
  assert.equal(clocks.aheadMs(NOW), 0);
});

test('with one or two nodes, each must show that the local clock is ahead by more than ten minutes', () => {
  const clocks = new PeerClocks();
  report(clocks, 1, -2 * 86_400);
  assert.equal(clocks.aheadMs(NOW), 2 * 86_400_000);
  report(clocks, 2, -660);
  assert.equal(clocks.aheadMs(NOW), 660_000);
  report(clocks, 2, -600);
  assert.equal(clocks.aheadMs(NOW), 0);
  report(clocks, 2, 86_400);
  assert.equal(clocks.aheadMs(NOW), 0, 'they disagree');
});
