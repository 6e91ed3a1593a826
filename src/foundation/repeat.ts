/** Runs a task repeatedly, one run after the other, until it is stopped. A failed run does not end the repetition. */
import type { Clock, Timer } from './clock.ts';

/** The delay of a task that runs only on request. */
export const UNTIL_REQUESTED: number = Number.POSITIVE_INFINITY;

export interface RepeatOptions {
  /** Milliseconds from the end of a run to the next, if the run returned no delay or failed. */
  readonly periodMs: number;
  /** Milliseconds until the first run. Default: the period. */
  readonly firstMs?: number;
  /** Receives the error of a failed run, unless the repetition was stopped meanwhile. */
  readonly onError: (error: unknown) => void;
}

/** The repeated task. It may return the milliseconds until the next run, 0 or more. */
type Task = () => number | void | Promise<number | void>;

/** A started repetition. */
export interface RepeatingTask {
  readonly isRunning: boolean;
  /**
   * Runs the task within `ms` milliseconds (default 0), and never later than already planned. During a run, it runs the
   * task once more afterwards. No effect after a stop.
   */
  soon(ms?: number): void;
  /** Runs the task in `ms` milliseconds and replaces the current plan. During a run it acts like `soon`. */
  plan(ms: number): void;
  /** Starts no further runs. The error of a run in progress is ignored. */
  stop(): void;
  /** Settles when no run is in progress; never rejects. */
  idle(): Promise<void>;
}

class Repetition implements RepeatingTask {
  readonly #clock: Clock;
  readonly #options: RepeatOptions;
  readonly #task: Task;
  #timer: Timer | null = null;
  /** Time of the next run, in the clock's time. */
  #dueAt = UNTIL_REQUESTED;
  /** The timer is already due: restarting it would only delay the run. */
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
    const now = this.#clock.monotonic();
    if (this.#isRunning) this.#dueAt = Math.min(this.#dueAt, now + ms);
    // If the clock says that the time is over but the timer has not fired, the machine slept or its clock was set.
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
    this.#dueAt = this.#clock.monotonic() + Math.max(0, ms);
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
    this.#wait(Math.min(next, this.#dueAt - this.#clock.monotonic()));
  }
}

/** Starts to repeat a task. Runs never overlap. */
export function every(clock: Clock, options: RepeatOptions, task: Task): RepeatingTask {
  return new Repetition(clock, options, task);
}
