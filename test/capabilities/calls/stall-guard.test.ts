import assert from 'node:assert/strict';
import { test } from 'node:test';
import { StallGuard } from '../../../src/capabilities/calls/stall-guard.ts';
import { TestClock } from '../../support/test-clock.ts';

test('a guard fires once nothing has moved for its time, counted from the last move', () => {
  const clock = new TestClock();
  let stalled = 0;
  const guard = new StallGuard(clock, 1000, () => stalled++);
  clock.advance(900);
  guard.moved();
  clock.advance(900);
  guard.moved();
  clock.advance(999);
  assert.equal(stalled, 0);
  clock.advance(1);
  assert.equal(stalled, 1);
  assert.equal(clock.timers, 0);
});

test('a stopped guard leaves no timer', () => {
  const clock = new TestClock();
  new StallGuard(clock, 1000, () => assert.fail()).stop();
  assert.equal(clock.timers, 0);
});
