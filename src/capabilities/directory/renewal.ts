/**
 * Renews what is due: one timer for all identities, the order kept by the database. A few at a
 * time and so many per second, so that ten thousand agents after a long night neither stall the
 * daemon nor flood the network.
 */
import type { Clock } from '../../foundation/clock.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { Log } from '../../foundation/log.ts';
import { RateLimiter } from '../../foundation/rate-limit.ts';
import { every, type RepeatingTask } from '../../foundation/repeat.ts';
import type { PublicationStore } from '../../foundation/store/publications.ts';

/** Identities whose records are on their way at once. */
const CONCURRENCY = 8;
/** Identities per second, over a longer time: well below what a node stores for another one. */
const PER_SECOND = 20;
/** Identities at once after a quiet time. */
const BURST = 10;
/** Most milliseconds between looks. */
const MAX_SLEEP_MS = 3600_000;
/** Milliseconds to wait where the database cannot be read … */
const TROUBLE_MS = 5000;
/** … and where it cannot be written: by then the network has been asked in vain. */
const UNWRITTEN_MS = 30_000;

interface RenewalDependencies {
  readonly publications: Pick<PublicationStore, 'due' | 'nextDue'>;
  readonly clock: Clock;
  readonly log: Log;
  /** Brings out what is due of an identity, and moves the time when it is due. Does not reject. */
  renew(aid: Aid): Promise<void>;
}

export class Renewal {
  readonly #deps: RenewalDependencies;
  readonly #rate: RateLimiter;
  readonly #running = new Map<Aid, Promise<void>>();
  #turns: RepeatingTask | null = null;
  /** The database refuses, and what cannot be moved to another time is due at once again: nothing is started for a while. */
  #resting = false;

  constructor(dependencies: RenewalDependencies) {
    this.#deps = dependencies;
    this.#rate = new RateLimiter({ perSecond: PER_SECOND, burst: BURST, maxKeys: 1 }, dependencies);
  }

  start(): void {
    const { clock, log } = this.#deps;
    const onError = (error: unknown): void => {
      log.error({ error }, 'the renewal list cannot be read');
      this.#resting = true;
    };
    this.#turns = every(clock, { firstMs: 0, periodMs: TROUBLE_MS, onError }, () => this.#turn());
  }

  /** Starts nothing more and waits for what is under way. */
  async stop(): Promise<void> {
    this.#turns?.stop();
    await Promise.all(this.#running.values());
  }

  /** Looks again: something may have become due. */
  wake(): void {
    if (!this.#resting) this.#turns?.soon();
  }

  /** Starts what is due and may start; returns the milliseconds until there may be more to do. */
  #turn(): number {
    const { publications, clock } = this.#deps;
    this.#resting = false;
    const now = clock.now();
    const due = publications.due(now, CONCURRENCY + this.#running.size).filter((aid) => !this.#running.has(aid));
    for (const aid of due) {
      // The end of one of them is the next occasion.
      if (this.#running.size >= CONCURRENCY) return MAX_SLEEP_MS;
      if (!this.#rate.take('')) return Math.max(1, this.#rate.retryAfterMs(''));
      this.#start(aid);
    }
    if (due.length > 0) return 0;
    const next = publications.nextDue(now);
    return next === null ? MAX_SLEEP_MS : Math.min(MAX_SLEEP_MS, Math.max(1, next - now));
  }

  #start(aid: Aid): void {
    const work = this.#deps
      .renew(aid)
      .catch((error: unknown) => {
        this.#deps.log.error({ aid, error }, 'a renewal failed unexpectedly');
        if (!this.#resting) this.#turns?.plan(UNWRITTEN_MS);
        this.#resting = true;
      })
      .finally(() => {
        this.#running.delete(aid);
        this.wake();
      });
    this.#running.set(aid, work);
  }
}
