import { setImmediate as turn } from 'node:timers/promises';
import type { Clock, Timer } from '../../src/foundation/clock.ts';

interface Pending {
  readonly at: number;
  readonly task: () => void;
}

/** A clock that the test advances. */
export class TestClock implements Clock {
  #now: number;
  readonly #pending = new Set<Pending>();

  /** Starts at a fixed time, so that failures are reproducible. */
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

  /** Number of pending timers: 0 after a component has stopped. */
  get timers(): number {
    return this.#pending.size;
  }

  /** Advances by `ms` and runs the timers that become due, in order. They may start new timers. */
  advance(ms: number): void {
    const end = this.#now + ms;
    for (let next = this.#due(end); next !== undefined; next = this.#due(end)) {
      this.#pending.delete(next);
      this.#now = Math.max(this.#now, next.at);
      next.task();
    }
    this.#now = end;
  }

  /** Like `advance`, but promises settle between two timers. */
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

  /** Changes the time without running timers, like a corrected system clock. */
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
