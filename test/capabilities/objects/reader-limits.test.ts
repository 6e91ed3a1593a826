/** How much other agents may read at once, and how often they may ask. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  MAX_READS,
  MAX_READS_PER_CALLER,
  MAX_READS_PER_NODE,
  ReaderLimits,
} from '../../../src/capabilities/objects/reader-limits.ts';
import { testAid } from '../../support/agents.ts';
import { TestClock } from '../../support/test-clock.ts';

const BUSY = { code: 'rate_limited', details: { retry_after_s: 2 } };

/** Reads of as many callers as it takes; the callers of one node follow each other. */
function reader() {
  const clock = new TestClock();
  const limits = new ReaderLimits(clock);
  const enter = (caller: number, node: number | null) =>
    limits.enter({ caller: testAid(caller), nodeKey: node === null ? null : new Uint8Array(32).fill(node) });
  const fill = (count: number): (() => void)[] =>
    Array.from({ length: count }, (_, i) =>
      enter(1 + Math.floor(i / MAX_READS_PER_CALLER), Math.floor(i / MAX_READS_PER_NODE)),
    );
  return { clock, enter, fill };
}

test('all agents together read so many objects at once, and one that is done makes room', () => {
  const { enter, fill } = reader();
  const [leave] = fill(MAX_READS);
  assert.throws(() => enter(200, 200), BUSY);
  assert.throws(() => enter(200, null), BUSY);
  leave?.();
  enter(200, 200);
  assert.throws(() => enter(201, 201), BUSY);
});

test('the agents of one node read so many at once, and one agent fewer, whatever node it is on', () => {
  const { enter, fill } = reader();
  const [leave] = fill(MAX_READS_PER_NODE);
  assert.throws(() => enter(200, 0), BUSY);
  assert.throws(() => enter(1, 200), BUSY);
  leave?.();
  enter(200, 0);
  enter(1, 200);
});

test('a node asks so often at once, and is told when it may ask again', () => {
  const { clock, enter } = reader();
  for (let i = 0; i < 400; i++) enter(1, 0)();
  assert.throws(() => enter(2, 0), { code: 'rate_limited', details: { retry_after_s: 1 } });
  enter(1, 1)();
  clock.advance(10);
  enter(2, 0)();
  assert.throws(() => enter(2, 0), { code: 'rate_limited' });
});
