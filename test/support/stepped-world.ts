/** What worlds of several nodes have in common: links that misbehave, and a clock that goes on while somebody waits. */
import { FlakyNetwork } from './flaky-links.ts';
import { idle } from './idle.ts';
import { TestClock } from './test-clock.ts';

/** Milliseconds of the test's time that are waited for something, where nothing else is said. */
const LIMIT_MS = 3_600_000;

/** Small steps first: most things come at once. */
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

  /** Lets time pass until something is true; fails where it does not come true in `limitMs` of the test's time. */
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

  /** What a promise gives, time passing meanwhile. */
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
