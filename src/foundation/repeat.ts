/** Work that is done again and again: one run after the other, whatever they fail with, until it is stopped. */
import type { Clock, Timer } from './clock.ts';

/** The wait of a task that has nothing to do until it is hurried. */
export const UNTIL_REQUESTED: number = Number.POSITIVE_INFINITY;

export interface RepeatOptions {
  /** Milliseconds from the end of a run to the next one, where the run did not say or has failed. */
  readonly periodMs: number;
  /** Milliseconds until the first run; the period where it is left out. */
  readonly firstMs?: number;
  /** Told what a run failed with, unless the repetition was stopped meanwhile. */
  readonly onError: (error: unknown) => void;
}

/** What is done; it may return after how many milliseconds it is to be done again, 0 or more. */
type Task = () => number | void | Promise<number | void>;

/** A repetition that has begun. */
export interface RepeatingTask {
  readonly isRunning: boolean;
  /**
   * Runs the task in `ms` milliseconds at the latest, 0 where left out; where it runs just now, once more
   * after its end. Never later than it would have run anyway; without effect after a stop.
   */
  soon(ms?: number): void;
  /** Runs the task in `ms` milliseconds, whatever was planned before; as `soon` where it runs just now. */
  plan(ms: number): void;
  /** Starts nothing more. What a run under way fails with is told to nobody. */
  stop(): void;
  /** Settles when no run is under way; never rejects. */
  idle(): Promise<void>;
}

class Repetition implements RepeatingTask {
  readonly #clock: Clock;
  readonly #options: RepeatOptions;
  readonly #task: Task;
  #timer: Timer | null = null;
  /** When the next run is to begin, in the clock's time. */
  #dueAt = UNTIL_REQUESTED;
  /** The timer has no time left to wait: to start it anew would only put it off. */
  #isDueNow = false;
  #isRunning = false;
  #underWay: Promise<void> = Promise.resolve();
  #isStopped = false;

  constructor(clock: Clock, options: RepeatOptions, task: Task) {
    this.#clock = clock;
    this.#options = options;
    this.#task = task;
    this.#wait(options.firstMs ?? options.periodMs);
  }

  get isRunning(): boolean {
    return this.#isRunning;
  }

  soon(ms = 0): void {
    if (this.#isStopped) return;
    const now = this.#clock.now();
    if (this.#isRunning) this.#dueAt = Math.min(this.#dueAt, now + ms);
    // Where the clock says that the time is over and the timer does not, the machine slept or was set.
    else if (now + ms < this.#dueAt || (this.#dueAt <= now && !this.#isDueNow))
      this.#wait(Math.min(ms, this.#dueAt - now));
  }

  plan(ms: number): void {
    if (this.#isRunning || this.#isStopped) this.soon(ms);
    else this.#wait(ms);
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
    this.#timer = null;
  }

  idle(): Promise<void> {
    return this.#underWay;
  }

  #wait(ms: number): void {
    this.#timer?.cancel();
    this.#dueAt = this.#clock.now() + Math.max(0, ms);
    this.#isDueNow = ms <= 0;
    this.#timer = ms === UNTIL_REQUESTED ? null : this.#clock.after(Math.max(0, ms), () => this.#run());
  }

  #run(): void {
    this.#timer = null;
    this.#dueAt = UNTIL_REQUESTED;
    this.#isRunning = true;
    try {
      const outcome = this.#task();
      if (outcome instanceof Promise)
        this.#underWay = outcome.then(
          (ms) => this.#ended(ms),
          (error: unknown) => this.#failed(error),
        );
      else this.#ended(outcome);
    } catch (error) {
      this.#failed(error);
    }
  }

  #failed(error: unknown): void {
    try {
      if (!this.#isStopped) this.#options.onError(error);
    } finally {
      this.#ended();
    }
  }

  #ended(ms: number | void): void {
    this.#isRunning = false;
    if (this.#isStopped) return;
    const next = typeof ms === 'number' ? ms : this.#options.periodMs;
    this.#wait(Math.min(next, this.#dueAt - this.#clock.now()));
  }
}

/** Begins to repeat a task. A run that has not ended is never joined by another one. */
export function every(clock: Clock, options: RepeatOptions, task: Task): RepeatingTask {
  return new Repetition(clock, options, task);
}
