/**
 * Work that is repeated until it succeeds, such as notes for an unreachable agent. The items and their due times are in
 * a table, so they survive a restart. See docs/decisions/0115-due-queue.md.
 */
import { backoff, type JitteredBackoff } from './backoff.ts';
import { detach } from './detached.ts';
import { SvcError } from './errors.ts';
import type { RandomParts } from './node-parts.ts';
import { Quota, type QuotaHolder, type QuotaLimits } from './quota.ts';
import { every, type RepeatingTask, UNTIL_REQUESTED } from './repeat.ts';

/** Milliseconds until the table is read again after an error. */
const READ_FAILED_MS = 5000;
/** The same after a failed write, which leaves the item due. */
const WRITE_FAILED_MS = 30_000;

/** An item of a table. */
export interface Due<T> {
  /** Different for each item. An item is worked on once at a time. */
  readonly id: string;
  /** The group of items that `QuotaLimits.perKey` limits, such as all notes for one recipient. */
  readonly key: string;
  /** Failed attempts so far. */
  readonly attempts: number;
  readonly item: T;
}

/** The items of a queue. Times are in the unit and the clock of `DueQueueDependencies.now`. */
export interface DueTable<T> {
  /**
   * Due items in the order of work. A table may return more than `limit` at first, and then nothing for other keys.
   * @param except keys of items to skip
   */
  due(now: number, limit: number, except: readonly string[]): readonly Due<T>[];
  /** The earliest due time after a time; null if there is none. */
  nextDue(after: number): number | null;
  /** Sets the time of the next attempt after a failed one. */
  postpone(item: Due<T>, at: number): void;
  /** Makes items due that are planned for a time after `after` and up to `until`. */
  makeDue(now: number, after: number, until: number): void;
}

/** Tells when the network is ready. */
export interface NetworkState {
  reachability(): { readonly ready: boolean };
  onReachability(handler: () => void): () => void;
}

export interface DueQueueOptions {
  /** The plural of its items for the log, such as "queued notes". */
  readonly name: string;
  readonly retry: JitteredBackoff;
  /**
   * Longest wait of an item in milliseconds. Default: that of `retry`. An item that is planned for later is due now,
   * because the clock was ahead when it was planned.
   */
  readonly maxWaitMs?: number;
  /** Limits of concurrent work. */
  readonly atOnce: QuotaLimits;
}

export interface DueQueueDependencies<T> extends RandomParts {
  readonly table: DueTable<T>;
  /** The time of the table. Default: `Clock.now`. */
  readonly now?: () => number;
  /** If present, failed items are due when the network becomes ready. */
  readonly network?: NetworkState | undefined;
  /** Called before the work on an item. Returns the milliseconds until the next item may start; 0: now. */
  readonly pauseMs?: () => number;
  /** Called before the work on an item. Returns the milliseconds until this item may start; 0: now. */
  readonly waitMs?: (item: T) => number;
  /** Default: a named holder for each key. */
  readonly holderOf?: (item: Due<T>) => QuotaHolder;
  /**
   * Works on an item. When it resolves, the item is deleted from the table or planned again. If it rejects, the item is
   * postponed.
   */
  readonly work: (item: T, signal: AbortSignal) => Promise<void>;
}

export class DueQueue<T> {
  readonly #options: DueQueueOptions;
  readonly #deps: DueQueueDependencies<T>;
  readonly #busy: Quota;
  /** By the ID of the item. */
  readonly #running = new Map<string, Promise<void>>();
  readonly #stop = new AbortController();
  #turns: RepeatingTask | null = null;
  /** The table cannot be read or written: changes do not shorten the wait. */
  #rests = false;
  #isReady = false;
  #unsubscribe: () => void = () => {};

  constructor(options: DueQueueOptions, dependencies: DueQueueDependencies<T>) {
    this.#options = options;
    this.#deps = dependencies;
    this.#busy = new Quota(options.atOnce);
  }

  /** Begins with the items of the table. */
  start(): void {
    const { clock, network } = this.#deps;
    const onError = (error: unknown): void => this.#rest(error);
    this.#turns = every(clock, { firstMs: 0, periodMs: READ_FAILED_MS, onError }, () => this.#turn());
    if (network === undefined) return;
    this.#unsubscribe = network.onReachability(() => this.#networkChanged());
    this.#networkChanged();
  }

  /** Aborts the work under way and waits for it. Afterwards the queue does not use its table. */
  async stop(): Promise<void> {
    this.#unsubscribe();
    this.#turns?.stop();
    this.#stop.abort(new SvcError('cancelled'));
    await Promise.all(this.#running.values());
  }

  /** Reads the table within `ms` milliseconds: an item was added, or its due time has changed. */
  soon(ms = 0): void {
    if (!this.#rests) this.#turns?.soon(ms);
  }

  /** Makes failed items due, because their next attempt may succeed. */
  wake(): void {
    const now = this.#now();
    try {
      this.#deps.table.makeDue(now, now, now + this.#options.retry.maxMs);
    } catch (error) {
      this.#deps.log.warn({ error }, `${this.#options.name}: items are not due now, but at their next retry`);
    }
    this.soon();
  }

  #networkChanged(): void {
    const isReady = this.#deps.network?.reachability().ready === true;
    const isNew = isReady && !this.#isReady;
    this.#isReady = isReady;
    if (isNew) this.wake();
  }

  #now(): number {
    return this.#deps.now?.() ?? this.#deps.clock.now();
  }

  /** Starts the work on due items, as much as the limits allow. Returns the milliseconds until the next item is due. */
  #turn(): number {
    const { table } = this.#deps;
    const { maxWaitMs = this.#options.retry.maxMs } = this.#options;
    this.#rests = false;
    const now = this.#now();
    // The only guard against due times of a clock that was ahead.
    if (table.nextDue(now + maxWaitMs) !== null) table.makeDue(now, now + maxWaitMs, Number.MAX_SAFE_INTEGER);
    const { isPaused, ms } = this.#startDue(now);
    if (isPaused) return ms;
    const next = table.nextDue(now);
    return next === null ? ms : Math.min(ms, next - now);
  }

  /** Returns the milliseconds until another due item may start. If it is paused, no other item may start earlier. */
  #startDue(now: number): { readonly isPaused: boolean; readonly ms: number } {
    const { table, pauseMs, waitMs } = this.#deps;
    /** Keys without room. Items of other keys must not wait behind theirs. */
    const full = new Set<string>();
    let nextMs = UNTIL_REQUESTED;
    for (let isLast = false; !isLast; ) {
      // When work ends, this runs again.
      const room = this.#options.atOnce.total - this.#busy.used;
      if (room <= 0) return { isPaused: true, ms: UNTIL_REQUESTED };
      const limit = room + this.#running.size;
      const due = table.due(now, limit, [...full]);
      isLast = due.length < limit;
      for (const one of due) {
        if (this.#running.has(one.id) || full.has(one.key)) continue;
        const holder = this.#deps.holderOf?.(one) ?? { node: one.key, source: null, named: true };
        if (this.#busy.fullLevel(holder) !== null) {
          full.add(one.key);
          continue;
        }
        const itemMs = waitMs?.(one.item) ?? 0;
        if (itemMs > 0) {
          full.add(one.key);
          nextMs = Math.min(nextMs, itemMs);
          continue;
        }
        const ms = pauseMs?.() ?? 0;
        if (ms > 0) return { isPaused: true, ms };
        this.#begin(one, holder);
      }
    }
    return { isPaused: false, ms: nextMs };
  }

  #begin(one: Due<T>, holder: QuotaHolder): void {
    const share = this.#busy.take(holder);
    const run = this.#run(one).finally(() => {
      this.#running.delete(one.id);
      share?.release();
      this.soon();
    });
    this.#running.set(one.id, run);
    detach(run);
  }

  async #run(one: Due<T>): Promise<void> {
    const { table, log, random, work } = this.#deps;
    const { name, retry } = this.#options;
    try {
      await work(one.item, this.#stop.signal);
    } catch (error) {
      if (this.#stop.signal.aborted) return;
      log.debug({ id: one.id, error }, `${name}: an attempt failed, svcd will retry`);
      try {
        table.postpone(one, this.#now() + backoff(retry, one.attempts + 1, random()));
      } catch (unwritten) {
        this.#rest(unwritten);
        this.#turns?.plan(WRITE_FAILED_MS);
      }
    }
  }

  #rest(error: unknown): void {
    this.#rests = true;
    this.#deps.log.warn({ error }, `${this.#options.name}: the queue cannot be read or written, svcd will retry`);
  }
}
