import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PeerClocks } from '../../../src/network/records/peer-health.ts';

const NOW = 1_800_000_000_000;

function peer(n: number) {
  return { host: `192.0.2.${n}`, port: 4121 };
}

/** The word of a node whose clock is ahead of ours by so many seconds. */
function say(clocks: PeerClocks, n: number, aheadS: number, at = NOW): void {
  clocks.heard(peer(n), Math.floor(at / 1000) + aheadS, at, at + 1000);
}

test('the median of what nodes say counts, each of them once', () => {
  const clocks = new PeerClocks();
  assert.deepEqual(clocks.compare(NOW), { offsetMs: null, peers: 0 });
  for (const n of [1, 2, 3]) say(clocks, n, 300);
  for (const n of [4, 5]) say(clocks, n, -1_000_000);
  say(clocks, 4, -2_000_000);
  assert.deepEqual(clocks.compare(NOW), { offsetMs: 300_000, peers: 5 });
});

test('what was heard long ago, or before our clock was set, does not count; nor do more than the last 64', () => {
  const clocks = new PeerClocks();
  say(clocks, 1, 50);
  assert.equal(clocks.compare(NOW + 700_000).peers, 0);
  assert.equal(clocks.compare(NOW - 700_000).peers, 0);
  for (let n = 2; n <= 101; n++) say(clocks, n, 0);
  assert.deepEqual(clocks.compare(NOW), { offsetMs: 0, peers: 64 });
});

test('our clock is ahead if the median of at least three nodes says so', () => {
  const clocks = new PeerClocks();
  for (const n of [1, 2]) say(clocks, n, -300);
  assert.equal(clocks.aheadMs(NOW), 0);
  say(clocks, 3, 300);
  assert.equal(clocks.aheadMs(NOW), 300_000);
  for (const n of [4, 5]) say(clocks, n, 300);
  assert.equal(clocks.aheadMs(NOW), 0);
});

test('of one or two nodes, each must say that our clock is ahead by more than ten minutes', () => {
  const clocks = new PeerClocks();
  say(clocks, 1, -2 * 86_400);
  assert.equal(clocks.aheadMs(NOW), 2 * 86_400_000);
  say(clocks, 2, -660);
  assert.equal(clocks.aheadMs(NOW), 660_000);
  say(clocks, 2, -600);
  assert.equal(clocks.aheadMs(NOW), 0);
  say(clocks, 2, 86_400);
  assert.equal(clocks.aheadMs(NOW), 0, 'they disagree');
});
