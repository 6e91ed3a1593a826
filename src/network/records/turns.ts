/** Queues in which holders take turns, so that none of them delays the others. */
import type { Clock, Timer } from '../../foundation/clock.ts';
import { type Rate, RateLimiter } from '../../foundation/rate-limit.ts';

interface TurnsLimits {
  /** Waiting work of one holder. */
  readonly perHolder: number;
  /** Holders with waiting work. */
  readonly holders: number;
}

/** Waiting work by holder. Holders take turns. */
export class Turns<W> {
  readonly #limits: TurnsLimits;
  /** The next holder is first. */
  readonly #waiting = new Map<string, W[]>();

  constructor(limits: TurnsLimits) {
    this.#limits = limits;
  }

  get isEmpty(): boolean {
    return this.#waiting.size === 0;
  }

  /** False if the queue of the holder is full, or there are too many holders. */
  add(holder: string, work: W): boolean {
    const queue = this.#waiting.get(holder);
    if (queue === undefined ? this.#waiting.size >= this.#limits.holders : queue.length >= this.#limits.perHolder)
      return false;
    if (queue === undefined) this.#waiting.set(holder, [work]);
    else queue.push(work);
    return true;
  }

  /** Removes the oldest work of the next holder. */
  next(): W | undefined {
    const [first] = this.#waiting;
    if (first === undefined) return undefined;
    const [holder, queue] = first;
    const work = queue.shift();
    this.#waiting.delete(holder);
    if (queue.length > 0) this.#waiting.set(holder, queue);
    return work;
  }
}

/** Longest wait of a read, milliseconds. Readers give up after it. */
const MAX_WAIT_MS = 800;
/** Waiting reads of one network, and networks with waiting reads. */
const MAX_READS_PER_NETWORK = 16;
const MAX_READING_NETWORKS = 256;
/** The only bucket. */
const ALL = '';

interface WaitingRead {
  readonly since: number;
  /** Returns the number of rows that it has read. */
  readonly read: () => number;
  readonly outcome: PromiseWithResolvers<boolean>;
}

/**
 * Reads from the database for proven addresses. While their common rate is used up, reads wait, and networks take
 * turns, so that no network starves the others.
 */
export class ReadTurns {
  readonly #clock: Clock;
  readonly #rows: RateLimiter;
  readonly #turns = new Turns<WaitingRead>({ perHolder: MAX_READS_PER_NETWORK, holders: MAX_READING_NETWORKS });
  #timer: Timer | null = null;

  constructor(rows: Rate, { clock }: { readonly clock: Clock }) {
    this.#clock = clock;
    this.#rows = new RateLimiter({ ...rows, maxKeys: 1 }, { clock });
  }

  /**
   * Reads now, or when it is the turn of a network. False if too much is waiting, or it waited too long.
   * @param read reads, and returns the number of rows
   * @throws as `read`
   */
  async run(network: string, read: () => number): Promise<boolean> {
    if (this.#turns.isEmpty && this.#waitMs === 0) {
      this.#rows.spend(ALL, read());
      return true;
    }
    const outcome = Promise.withResolvers<boolean>();
    if (!this.#turns.add(network, { since: this.#clock.monotonic(), read, outcome })) return false;
    this.#plan();
    return await outcome.promise;
  }

  /** Drops the waiting reads. */
  stop(): void {
    this.#timer?.cancel();
    this.#timer = null;
    for (let next = this.#turns.next(); next !== undefined; next = this.#turns.next()) next.outcome.resolve(false);
  }

  get #waitMs(): number {
    return this.#rows.retryAfterMs(ALL);
  }

  #plan(): void {
    this.#timer ??= this.#clock.after(this.#waitMs, () => {
      this.#timer = null;
      this.#serve();
    });
  }

  #serve(): void {
    while (!this.#turns.isEmpty && this.#waitMs === 0) {
      const next = this.#turns.next();
      if (next === undefined) return;
      const { since, read, outcome } = next;
      const isLate = this.#clock.monotonic() - since > MAX_WAIT_MS;
      try {
        if (!isLate) this.#rows.spend(ALL, read());
        outcome.resolve(!isLate);
      } catch (error) {
        outcome.reject(error);
      }
    }
    if (!this.#turns.isEmpty) this.#plan();
  }
}
