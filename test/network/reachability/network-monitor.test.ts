import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLog } from '../../../src/foundation/log.ts';
import { SLEEP_MS } from '../../../src/foundation/stall.ts';
import { NETWORK_CHECK_MS, NetworkMonitor } from '../../../src/network/reachability/network-monitor.ts';
import { TestClock } from '../../support/test-clock.ts';

async function world() {
  const clock = new TestClock();
  const place = { interfaces: ['127.0.0.1', '10.0.0.2', 'fe80::1'] };
  const changes = new NetworkMonitor(clock, silentLog, () => place.interfaces);
  let reported = 0;
  changes.onChange(() => {
    reported++;
  });
  await changes.start();
  return { clock, place, changes, reported: () => reported };
}

test('changed addresses are reported once, independent of their order. Loopback and link-local addresses are ignored', async () => {
  const { clock, place, changes, reported } = await world();
  clock.advance(10 * NETWORK_CHECK_MS);
  place.interfaces = ['fe80::2', '10.0.0.2'];
  clock.advance(10 * NETWORK_CHECK_MS);
  assert.equal(reported(), 0);
  place.interfaces = ['10.0.0.2', '192.0.2.7'];
  clock.advance(NETWORK_CHECK_MS);
  assert.equal(reported(), 1);
  place.interfaces = ['192.0.2.7', '10.0.0.2'];
  clock.advance(10 * NETWORK_CHECK_MS);
  assert.equal(reported(), 1);
  place.interfaces = [];
  clock.advance(10 * NETWORK_CHECK_MS);
  assert.equal(reported(), 2);
  await changes.stop();
  assert.equal(clock.timers, 0);
});

test('a sleep is reported, but not a short stall or a clock that was set back', async () => {
  const { clock, reported } = await world();
  for (const [ms, times] of [
    [SLEEP_MS - NETWORK_CHECK_MS, 0],
    [-60_000, 0],
    [600_000, 1],
  ] as const) {
    clock.jump(ms);
    clock.advance(Math.max(0, -ms) + NETWORK_CHECK_MS);
    assert.equal(reported(), times, String(ms));
  }
});
