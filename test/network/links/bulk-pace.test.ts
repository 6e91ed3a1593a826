/** The pace of a link over an engine, a clock and a path that are late at random. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { LruCache } from '../../../src/foundation/lru-cache.ts';
import { BulkPace, FIRST_PACED_BYTES } from '../../../src/network/links/bulk-pace.ts';
import { LATE_SEEDS, lateClock } from '../../support/late.ts';
import { Random } from '../../support/random.ts';
import { TestClock } from '../../support/test-clock.ts';

const KIB = 1024;
const MIB: number = 1024 * KIB;
/** The window of the engine. */
const WINDOW_BYTES: number = 8 * MIB;
/** Most bytes that a pace lets an engine hold, the largest write, and the error of the estimate. */
const MAX_HELD_BYTES: number = 4 * MIB + 256 * KIB + MIB;
/** Headers and acknowledgements, in parts of the payload. */
const OVERHEAD = 1.04;
/** A write waits at most this long after the engine has nothing left to send, milliseconds. */
const MAX_IDLE_MS = 1_500;
const STEP_MS = 5;

/** A link whose engine sends at a rate, in bytes per millisecond. */
function setUp(seed = 1) {
  const random = new Random(seed);
  const clock = new TestClock();
  const state = { rttMs: 14, rate: 1000, held: 0, sent: 0, isOver: false };
  const link = {
    nodeKey: new Uint8Array(32),
    path: () => ({ kind: 'direct', rttMs: state.rttMs }) as never,
    packets: () => ({ sent: Math.floor(state.sent / 1200), lost: 0 }),
    sentBytes: () => Math.floor(state.sent),
    isOver: () => state.isOver,
  };
  const lossy = new LruCache<string, true>({ maxEntries: 1 }, { clock });
  const pace = new BulkPace(lateClock(clock, random), link, lossy, () => {});
  /** Lets the engine send for a while. */
  const pass = async (ms: number): Promise<void> => {
    const bytes = Math.min(state.held, state.rate * ms);
    state.held -= bytes;
    state.sent += bytes * OVERHEAD;
    await clock.run(ms);
  };
  /** Writes as a stream does. @returns milliseconds that the write waited while the engine had nothing to send */
  const write = async (bytes: number): Promise<number> => {
    let idleMs = 0;
    const before = pace.before(bytes);
    const turns = { isMine: before === null };
    const done = before?.then(() => {
      turns.isMine = true;
    });
    await turn();
    while (!turns.isMine) {
      if (state.held === 0) idleMs += STEP_MS;
      assert.ok(idleMs <= MAX_IDLE_MS, `a write of ${bytes} bytes waits for itself`);
      await pass(STEP_MS);
    }
    await done;
    if (state.rate === Number.POSITIVE_INFINITY) state.sent += bytes;
    else state.held += bytes;
    return idleMs;
  };
  return { random, clock, state, pace, pass, write };
}

test('a write of the size for a short path does not wait for itself when the path becomes long', async () => {
  const { state, pace, write } = setUp();
  state.rate = Number.POSITIVE_INFINITY;
  for (const [rttMs, bytes] of [
    [14, 2 * MIB],
    [9, 5 * MIB],
    [14, 9 * MIB],
    [9, 5 * MIB],
    [300, 9 * MIB],
  ] as const) {
    state.rttMs = rttMs;
    for (let written = 0; written < bytes; ) {
      const { maxBytes } = pace;
      await write(maxBytes);
      written += maxBytes;
    }
  }
});

test('a path that becomes short while a write waits releases it', async () => {
  const { state, pace, write, pass } = setUp();
  state.rate = 0;
  for (let written = 0; written < FIRST_PACED_BYTES; written += 32 * KIB) await write(32 * KIB);
  let isDone = false;
  const waiting = pace.before(32 * KIB)?.then(() => {
    isDone = true;
  });
  await pass(50);
  assert.equal(isDone, false);
  state.rttMs = 2;
  state.rate = 1;
  await pass(400);
  assert.equal(isDone, true);
  await waiting;
});

for (const seed of LATE_SEEDS)
  test(`no write waits for itself, if path and clock are late at random (seed ${seed})`, async () => {
    const { random, state, pace, pass, write } = setUp(seed);
    for (let written = 0; written < 24 * MIB; ) {
      if (random.chance(0.1)) state.rttMs = random.pick([1, 8, 9.9, 10.1, 14, 40, 300]);
      if (random.chance(0.1)) state.rate = random.pick([50, 1000, 100_000]);
      // Other streams of the connection, and packets that are sent again.
      if (random.chance(0.1)) state.sent += random.below(MIB);
      if (random.chance(0.05)) await pass(random.below(2_000));
      const bytes = random.chance(0.2) ? 1 + random.below(pace.maxBytes) : pace.maxBytes;
      await write(bytes);
      written += bytes;
      while (state.held > WINDOW_BYTES) await pass(STEP_MS);
    }
  });

test('on a long path the engine holds few bytes', async () => {
  const { random, state, write } = setUp();
  state.rttMs = 40;
  for (let written = 0; written < 24 * MIB; written += 32 * KIB) {
    if (random.chance(0.1)) state.rate = random.pick([50, 1000, 100_000]);
    await write(32 * KIB);
    assert.ok(state.held <= MAX_HELD_BYTES, `${state.held} bytes in the engine`);
  }
});
