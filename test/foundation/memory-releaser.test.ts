import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLog } from '../../src/foundation/log.ts';
import { MemoryReleaser } from '../../src/foundation/release-memory.ts';
import { TestClock } from '../support/test-clock.ts';

const MIB = 1024 * 1024;
const LOOK_MS = 5000;

/** A process that a test makes busy and full; `given` is how often it gave memory back. */
function aProcess() {
  const state = { cpuMs: 400, resident: 95 * MIB, needed: 89 * MIB, given: 0 };
  const clock = new TestClock();
  const memory = new MemoryReleaser({
    clock,
    log: silentLog,
    usage: { cpuMs: () => state.cpuMs, residentBytes: () => state.resident },
    release: () => {
      state.given += 1;
      state.resident = state.needed;
      state.cpuMs += 80;
    },
  });
  return { state, clock, memory };
}

test('releases the memory of a start once, and that of a load after it ends', async () => {
  const { state, clock, memory } = aProcess();
  await memory.start();
  await clock.run(LOOK_MS);
  assert.deepEqual([state.given, state.resident], [1, 89 * MIB]);
  await clock.run(10 * LOOK_MS);
  assert.equal(state.given, 1, 'no more memory can be released');
  for (let i = 0; i < 5; i++) {
    state.resident = 180 * MIB;
    state.cpuMs += 1000;
    await clock.run(LOOK_MS);
  }
  assert.equal(state.given, 1, 'it works');
  await clock.run(LOOK_MS);
  assert.equal(state.given, 2);
  await memory.stop();
  assert.equal(clock.timers, 0);
});

test('does not try to release memory in use repeatedly', async () => {
  const { state, clock, memory } = aProcess();
  await memory.start();
  await clock.run(LOOK_MS);
  state.needed = 140 * MIB;
  state.resident = 145 * MIB;
  await clock.run(10 * LOOK_MS);
  assert.equal(state.given, 2);
  // Usage falls without a release and becomes the new baseline.
  state.resident = 90 * MIB;
  await clock.run(LOOK_MS);
  state.resident = 101 * MIB;
  await clock.run(LOOK_MS);
  assert.equal(state.given, 2);
  state.resident = 103 * MIB;
  await clock.run(LOOK_MS);
  assert.equal(state.given, 3);
  await memory.stop();
});
