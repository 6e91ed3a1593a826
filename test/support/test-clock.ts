import { setImmediate as turn } from 'node:timers/promises';
import type { Clock, Timer } from '../../src/foundation/clock.ts';

interface Pending {
  readonly at: number;
  readonly task: () => void;
}

/** A clock that only moves when the test says so. */
export class TestClock implements Clock {
  #now: number;
  readonly #pending = new Set<Pending>();

  /** Starts at a fixed instant, so that failures repeat. */
  constructor(now = Date.UTC(2026, 0, 1)) {
    this.#now = now;
  }

  now(): number {
    return this.#now;
  }

  after(ms: number, task: () => void): Timer {
    const pending = { at: this.#now + ms, task };
    this.#pending.add(pending);
    return { cancel: () => void this.#pending.delete(pending) };
  }

  /** How many timers wait: 0 after a component has stopped. */
  get timers(): number {
    return this.#pending.size;
  }

  /** Moves on by `ms` and runs, in order of time, what became due; tasks may start new timers. */
  advance(ms: number): void {
    const end = this.#now + ms;
    for (let next = this.#due(end); next !== undefined; next = this.#due(end)) {
      this.#pending.delete(next);
      this.#now = Math.max(this.#now, next.at);
      next.task();
    }
    this.#now = end;
  }

  /** As `advance`, but what waits for promises goes on between two timers. */
  async run(ms: number): Promise<void> {
    const end = this.#now + ms;
    await turn();
    for (let next = this.#due(end); next !== undefined; next = this.#due(end)) {
      this.#pending.delete(next);
      this.#now = Math.max(this.#now, next.at);
      next.task();
      await turn();
    }
    this.#now = end;
  }

  /** Jumps without running anything, backwards too: what a corrected system clock does. */
  jump(ms: number): void {
    this.#now += ms;
  }

  #due(end: number): Pending | undefined {
    let first: Pending | undefined;
    for (const pending of this.#pending) {
      if (pending.at <= end && (first === undefined || pending.at < first.at)) first = pending;
    }
    return first;
  }
}
