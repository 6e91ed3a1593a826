/** Timers that expire in the same millisecond run in one turn of the event loop, so that their work can be batched. */
import type { Clock, Timer } from './clock.ts';

export class SharedTimers {
  readonly #clock: Clock;
  readonly #tasks = new Map<number, Set<() => void>>();

  constructor({ clock }: { readonly clock: Clock }) {
    this.#clock = clock;
  }

  /** Runs `task`, which must not throw, once after `ms` milliseconds. */
  after(ms: number, task: () => void): Timer {
    const at = this.#clock.now() + ms;
    const tasks = this.#tasks.get(at) ?? this.#startTimer(at, ms);
    tasks.add(task);
    return { cancel: () => void tasks.delete(task) };
  }

  #startTimer(at: number, ms: number): Set<() => void> {
    const tasks = new Set<() => void>();
    this.#tasks.set(at, tasks);
    this.#clock.after(ms, () => {
      this.#tasks.delete(at);
      for (const task of tasks) task();
    });
    return tasks;
  }
}
