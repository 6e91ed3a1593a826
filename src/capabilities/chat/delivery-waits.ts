/** Waits for the delivery of entries to the peer. */
import type { Clock, Timer } from '../../foundation/clock.ts';
import type { Aid } from '../../foundation/identity/aid.ts';

interface Waiting {
  readonly seq: number;
  readonly timer: Timer;
  settle(arrived: boolean): void;
}

export class DeliveryWaits {
  readonly #clock: Clock;
  readonly #waiting = new Map<string, Set<Waiting>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Returns true when the entry at `seq` is delivered, or false after `ms`. */
  wait(aid: Aid, peer: Aid, seq: number, ms: number): Promise<boolean> {
    const name = `${aid} ${peer}`;
    return new Promise((resolve) => {
      const all = this.#waiting.get(name) ?? new Set();
      this.#waiting.set(name, all);
      const one: Waiting = {
        seq,
        timer: this.#clock.after(ms, () => one.settle(false)),
        settle: (arrived) => {
          one.timer.cancel();
          all.delete(one);
          if (all.size === 0 && this.#waiting.get(name) === all) this.#waiting.delete(name);
          resolve(arrived);
        },
      };
      all.add(one);
    });
  }

  /** Reports that all entries up to `upTo` are delivered. */
  arrived(aid: Aid, peer: Aid, upTo: number): void {
    for (const one of this.#waiting.get(`${aid} ${peer}`) ?? []) if (one.seq <= upTo) one.settle(true);
  }

  /** Ends all waits with false. */
  stop(): void {
    for (const all of this.#waiting.values()) for (const one of all) one.settle(false);
  }
}
