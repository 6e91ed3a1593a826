/** Scheduled retries, with one timer for all. */
import type { Clock } from '../../foundation/clock.ts';
import { every, type RepeatingTask, UNTIL_REQUESTED } from '../../foundation/repeat.ts';

export class Retries {
  readonly #clock: Clock;
  readonly #at = new Map<string, number>();
  readonly #checks: RepeatingTask;

  /**
   * @param due called with each due name
   * @param onError receives errors of `due`. The remaining names are still called
   */
  constructor(clock: Clock, due: (name: string) => void, onError: (error: unknown) => void) {
    this.#clock = clock;
    this.#checks = every(clock, { firstMs: UNTIL_REQUESTED, periodMs: 0, onError }, () => {
      const now = clock.now();
      for (const [name, at] of [...this.#at]) {
        if (at > now) continue;
        this.#at.delete(name);
        due(name);
      }
      return this.#at.values().reduce((first, at) => Math.min(first, at), UNTIL_REQUESTED) - now;
    });
  }

  /** Schedules `due` for a name after `ms`, or keeps an earlier time. */
  within(name: string, ms: number): void {
    const at = this.#clock.now() + ms;
    this.#at.set(name, Math.min(this.#at.get(name) ?? at, at));
    this.#checks.soon(ms);
  }

  cancel(name: string): void {
    this.#at.delete(name);
  }

  stop(): void {
    this.#checks.stop();
    this.#at.clear();
  }
}
