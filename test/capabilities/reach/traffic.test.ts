import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TRAFFIC_SAMPLE_MS, TrafficHistory } from '../../../src/capabilities/reach/traffic.ts';
import { TRAFFIC_HOURS } from '../../../src/foundation/domain/reach.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { TestClock } from '../../support/test-clock.ts';

async function setUp() {
  const clock = new TestClock();
  const reading = { bytesUp: 0, bytesDown: 0, links: 1, peers: 2, tunnels: 0, ready: true };
  const traffic = new TrafficHistory(clock, () => ({ ...reading }), silentLog);
  await traffic.start();
  const minute = async (): Promise<void> => {
    clock.advance(TRAFFIC_SAMPLE_MS);
    await new Promise(setImmediate);
  };
  return { clock, reading, traffic, minute };
}

test('each minute has its own bytes, which are never negative', async () => {
  const { reading, traffic, minute, clock } = await setUp();
  assert.deepEqual(traffic.samples(1), []);
  Object.assign(reading, { bytesUp: 10, bytesDown: 20 });
  await minute();
  Object.assign(reading, { bytesUp: 15, bytesDown: 5, ready: false });
  await minute();
  const [first, second] = traffic.samples(1);
  assert.deepEqual([first?.bytesUp, first?.bytesDown, first?.ready], [10, 20, true]);
  assert.deepEqual([second?.bytesUp, second?.bytesDown, second?.ready], [5, 0, false]);
  assert.equal(second?.at, clock.now());
  await traffic.stop();
  await minute();
  assert.equal(traffic.samples(1).length, 2);
});

test('a day is stored, and the requested part is returned', async () => {
  const { traffic, minute } = await setUp();
  for (let i = 0; i < TRAFFIC_HOURS * 60 + 5; i++) await minute();
  assert.equal(traffic.samples(TRAFFIC_HOURS).length, TRAFFIC_HOURS * 60);
  assert.equal(traffic.samples(1).length, 60);
  await traffic.stop();
});
