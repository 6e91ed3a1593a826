/**
 * Virtual time. A simulation consists of events on this schedule. Simultaneous events run in the order in which they
 * were planned, so a seed gives the same sequence of events on every machine.
 */
import { createHash } from 'node:crypto';
import type { Clock, Timer } from '../src/foundation/clock.ts';

/** Turns of the real event loop, before anything replaces it. */
const realTurn: (done: () => void) => void = setImmediate;
/** The time at which a simulation begins, Unix milliseconds. */
const START_MS: number = Date.UTC(2030, 0, 1);
/** Immediate tasks at one virtual time that count as an endless loop. */
const MAX_IMMEDIATES = 1_000_000;

interface Event {
  readonly at: number;
  readonly order: number;
  run: (() => void) | null;
}

function isBefore(a: Event, b: Event): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}

export class Schedule implements Clock {
  /** A binary heap: no event precedes its parent at `(i - 1) >> 1`. */
  readonly #heap: Event[] = [];
  readonly #immediates: (() => void)[] = [];
  /** Running hash of everything that happened. Two runs of one seed have the same. */
  readonly #events = createHash('sha256');
  /** Receives everything that the hash contains. */
  trace: ((what: string, bytes: Uint8Array) => void) | null = null;
  #now = START_MS;
  #planned = 0;
  #ran = 0;

  /** Unix milliseconds. */
  now(): number {
    return this.#now;
  }

  monotonic(): number {
    return this.#now;
  }

  /** Milliseconds since the beginning of the simulation. */
  get elapsedMs(): number {
    return this.#now - START_MS;
  }

  /** Adds to the hash of all events. */
  record(what: string, bytes: Uint8Array): void {
    this.#events.update(what).update(bytes);
    this.trace?.(what, bytes);
  }

  /** The hash of all events so far, in hexadecimal digits. */
  get eventHash(): string {
    return this.#events.copy().digest('hex');
  }

  /** Events that have run. */
  get ran(): number {
    return this.#ran;
  }

  after(ms: number, task: () => void): Timer {
    const event: Event = { at: this.#now + Math.max(0, Math.trunc(ms) || 0), order: this.#planned++, run: task };
    this.#push(event);
    return { cancel: () => void (event.run = null) };
  }

  /** Runs a task at the present virtual time, after the promises that have settled. */
  immediately(task: () => void): Timer {
    let isCancelled = false;
    this.#immediates.push(() => {
      if (!isCancelled) task();
    });
    return { cancel: () => void (isCancelled = true) };
  }

  /** Runs all events of the next `ms` milliseconds. */
  async run(ms: number): Promise<void> {
    const end = this.#now + ms;
    await this.settle();
    for (let next = this.#heap[0]; next !== undefined && next.at <= end; next = this.#heap[0]) {
      this.#pop();
      const { run } = next;
      if (run === null) continue;
      this.#now = next.at;
      this.#ran++;
      run();
      await this.settle();
    }
    this.#now = end;
  }

  /** Runs until a promise has settled, and returns its value. @throws Error if no event is planned */
  async until<T>(work: Promise<T>): Promise<T> {
    const state = { isSettled: false };
    const noteEnd = (): void => {
      state.isSettled = true;
    };
    work.then(noteEnd, noteEnd);
    await this.settle();
    while (!state.isSettled) {
      const next = this.#heap[0];
      if (next === undefined) throw new Error('The simulation waits for something that no event brings.');
      await this.run(Math.max(0, next.at - this.#now));
    }
    return await work;
  }

  /** Lets all promises settle and runs the immediate tasks. */
  async settle(): Promise<void> {
    await new Promise<void>(realTurn);
    for (let count = 0; this.#immediates.length > 0; count++) {
      if (count > MAX_IMMEDIATES) throw new Error('Immediate tasks do not end.');
      for (const task of this.#immediates.splice(0)) task();
      await new Promise<void>(realTurn);
    }
  }

  #push(event: Event): void {
    const heap = this.#heap;
    let at = heap.push(event) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = heap[parent];
      if (above === undefined || !isBefore(event, above)) break;
      heap[at] = above;
      at = parent;
    }
    heap[at] = event;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let at = 0;
    for (;;) {
      const [left, right] = [heap[2 * at + 1], heap[2 * at + 2]];
      if (left === undefined) break;
      const [child, index] = right !== undefined && isBefore(right, left) ? [right, 2 * at + 2] : [left, 2 * at + 1];
      if (!isBefore(child, last)) break;
      heap[at] = child;
      at = index;
    }
    heap[at] = last;
  }
}
