/** When who is tried again: one timer for all. */
import type { Clock, Timer } from '../../foundation/clock.ts';

export class Retries {
  readonly #clock: Clock;
  readonly #due: (name: string) => void;
  readonly #at = new Map<string, number>();
  #timer: Timer | null = null;
  #timerAt = Number.POSITIVE_INFINITY;

  /** @param due called with each name whose time has come */
  constructor(clock: Clock, due: (name: string) => void) {
    this.#clock = clock;
    this.#due = due;
  }

  /** Calls for a name after `ms`, or earlier where that was agreed before. */
  within(name: string, ms: number): void {
    const at = this.#clock.now() + ms;
    this.#at.set(name, Math.min(this.#at.get(name) ?? at, at));
    this.#arm(at);
  }

  cancel(name: string): void {
    this.#at.delete(name);
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = null;
    this.#at.clear();
  }

  #arm(at: number): void {
    if (at >= this.#timerAt) return;
    this.#timer?.cancel();
    this.#timerAt = at;
    this.#timer = this.#clock.after(Math.max(0, at - this.#clock.now()), () => this.#fire());
  }

  #fire(): void {
    this.#timer = null;
    this.#timerAt = Number.POSITIVE_INFINITY;
    const now = this.#clock.now();
    const due = [...this.#at].filter(([, at]) => at <= now).map(([name]) => name);
    for (const name of due) this.#at.delete(name);
    for (const name of due) this.#due(name);
    let next = Number.POSITIVE_INFINITY;
    for (const at of this.#at.values()) next = Math.min(next, at);
    if (next < Number.POSITIVE_INFINITY) this.#arm(next);
  }
}
