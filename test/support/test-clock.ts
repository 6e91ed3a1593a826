import { setImmediate as turn } from 'node:timers/promises';
import type { Clock, Timer } from '../../src/foundation/clock.ts';

interface Pending {
  readonly at: number;
  readonly task: () => void;
}

/** A clock that the test advances. */
export class TestClock implements Clock {
  #now: number;
  /** Never goes back. */
  #monotonic: number;
  readonly #pending = new Set<Pending>();

  /** Starts at a fixed time, so that failures are reproducible. */
  constructor(now = Date.UTC(2026, 0, 1)) {
    this.#now = now;
    this.#monotonic = now;
  }

  now(): number {
    return this.#now;
  }

  monotonic(): number {
    return this.#monotonic;
  }

  after(ms: number, task: () => void): Timer {
    const pending = { at: this.#monotonic + ms, task };
    this.#pending.add(pending);
    return { cancel: () => void this.#pending.delete(pending) };
  }

  /** Number of pending timers: 0 after a component has stopped. */
  get timers(): number {
    return this.#pending.size;
  }

  /** Advances by `ms` and runs the timers that become due, in order. They may start new timers. */
  advance(ms: number): void {
    const end = this.#monotonic + ms;
    for (let next = this.#due(end); next !== undefined; next = this.#due(end)) {
      this.#pending.delete(next);
      this.#passTo(next.at);
      next.task();
    }
    this.#passTo(end);
  }

  /** Like `advance`, but promises settle between two timers. */
  async run(ms: number): Promise<void> {
    const end = this.#monotonic + ms;
    await turn();
    for (let next = this.#due(end); next !== undefined; next = this.#due(end)) {
      this.#pending.delete(next);
      this.#passTo(next.at);
      next.task();
      await turn();
    }
    this.#passTo(end);
  }

  /** Changes the time without running timers, like a corrected system clock. Ahead, it looks like a sleep. */
  jump(ms: number): void {
    this.#now += ms;
    this.#monotonic += Math.max(0, ms);
  }

  #passTo(at: number): void {
    const ms = Math.max(0, at - this.#monotonic);
    this.#now += ms;
    this.#monotonic += ms;
  }

  #due(end: number): Pending | undefined {
    let first: Pending | undefined;
    for (const pending of this.#pending) {
      if (pending.at <= end && (first === undefined || pending.at < first.at)) first = pending;
    }
    return first;
  }
}
