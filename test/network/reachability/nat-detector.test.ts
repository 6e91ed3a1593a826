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
  const tries = async (ms: number): Promise<number> => {
    const before = found.length;
    await clock.run(ms);
    return found.length - before;
  };
  const early = await tries(NAT_DETECTION_RETRY_MS);
  assert.ok(early >= 4, 'a moment of silence does not cost a minute');
  await tries(NAT_DETECTION_MS);
  assert.equal(await tries(3 * NAT_DETECTION_RETRY_MS), 3, 'lasting silence costs few requests');
  looks.onNode();
  assert.equal(await tries(NAT_DETECTION_RETRY_MS / 20), 1, 'a new node may see the port');
  state.mapping = 'symmetric';
  looks.onReachability();
  await clock.run(0);
  assert.equal(found.at(-1), 'symmetric');
  looks.onNode();
  assert.equal(await tries(NAT_DETECTION_MS - 1), 0);
  await looks.stop();
  assert.equal(clock.timers, 0);
});
