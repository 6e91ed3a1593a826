import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { NatMapping } from '../../../src/foundation/domain/directory.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { NAT_DETECTION_MS, NAT_DETECTION_RETRY_MS, NatDetector } from '../../../src/network/reachability/nat.ts';
import { TestClock } from '../../support/test-clock.ts';

test('the NAT is detected periodically, earlier after an unknown result, and immediately after a network change', async () => {
  const clock = new TestClock();
  const state: { mapping: NatMapping; isNeeded: boolean } = { mapping: 'cone', isNeeded: false };
  const found: NatMapping[] = [];
  const looks = new NatDetector({
    clock,
    log: silentLog,
    isNeeded: () => state.isNeeded,
    detect: async () => state.mapping,
    onMapping: (mapping) => void found.push(mapping),
  });
  await looks.start();
  await clock.run(2 * NAT_DETECTION_MS);
  assert.deepEqual(found, []);
  state.isNeeded = true;
  looks.onReachability();
  await clock.run(0);
  assert.deepEqual(found, ['cone']);
  await clock.run(NAT_DETECTION_MS - 1);
  assert.deepEqual(found, ['cone']);
  state.mapping = 'unknown';
  await clock.run(1);
  await clock.run(NAT_DETECTION_RETRY_MS);
  assert.deepEqual(found, ['cone', 'unknown', 'unknown']);
  state.mapping = 'symmetric';
  looks.onReachability();
  await clock.run(0);
  assert.equal(found.at(-1), 'symmetric');
  await looks.stop();
  assert.equal(clock.timers, 0);
});
