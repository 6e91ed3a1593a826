/** Common parts of worlds with several nodes: faulty links, and a clock that advances while a test waits. */
import { FlakyNetwork } from './flaky-links.ts';
import { idle } from './idle.ts';
import { TestClock } from './test-clock.ts';

/** Default limit in the test's time, milliseconds. */
const LIMIT_MS = 3_600_000;

/** Small steps first, because most events happen soon. */
function stepAfter(waitedMs: number): number {
  if (waitedMs < 100) return 1;
  return waitedMs < 20_000 ? 50 : 1000;
}

export class SteppedWorld {
  readonly clock: TestClock;
  readonly links: FlakyNetwork;

  constructor(seed = 1, clock: TestClock = new TestClock()) {
    this.clock = clock;
    this.links = new FlakyNetwork(clock, seed);
  }

  /** Advances time until a condition holds. Fails after `limitMs` of the test's time. */
  async until(what: string, holds: () => boolean, limitMs = LIMIT_MS): Promise<void> {
    const start = this.clock.now();
    for (;;) {
      await idle();
      if (holds()) return;
      const waited = this.clock.now() - start;
      if (waited > limitMs) throw new Error(`never came: ${what}`);
      await this.clock.run(stepAfter(waited));
    }
  }

  /** The result of a promise while time advances. */
  async during<T>(promise: Promise<T>): Promise<T> {
    let settled = false;
    const watched = promise.finally(() => {
      settled = true;
    });
    watched.catch(() => {});
    await this.until('the end of an operation', () => settled);
    return watched;
  }
}
