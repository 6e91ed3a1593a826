/**
 * The latest response to each query. A query repeats while a component watches it and the page is visible. After a
 * failure it is retried soon, and the last value stays.
 */
import { asFailure, type Failure } from './failure.ts';

/** Delays after failures, milliseconds. The last one repeats. */
export const RETRY_MS: readonly number[] = [1_000, 2_000, 5_000, 10_000];
/** Unwatched responses to keep. */
const MAX_UNWATCHED = 200;

export interface Known<T> {
  readonly value: T | undefined;
  readonly failure: Failure | undefined;
  /** Time of the response, milliseconds since 1970. 0 if there is none. */
  readonly at: number;
}

export interface Timers {
  now(): number;
  /** Calls back after some milliseconds. The returned function cancels it. */
  after(ms: number, run: () => void): () => void;
}

interface Entry {
  known: Known<unknown>;
  ask: () => Promise<unknown>;
  readonly watchers: Map<object, { readonly everyMs: number; readonly changed: () => void }>;
  asking: boolean;
  /** The data changed during the request. */
  stale: boolean;
  failed: number;
  takeBack: () => void;
}

const NOTHING: Known<undefined> = { value: undefined, failure: undefined, at: 0 };

export class QueryCache {
  readonly #timers: Timers;
  readonly #entries = new Map<string, Entry>();
  #seen = true;

  constructor(timers: Timers) {
    this.#timers = timers;
  }

  /** The state of a query. */
  get(key: string): Known<unknown> {
    return this.#entries.get(key)?.known ?? NOTHING;
  }

  /** Sends a query now, and again every `everyMs` milliseconds (0: once). The returned function stops it. */
  watch(key: string, ask: () => Promise<unknown>, everyMs: number, changed: () => void): () => void {
    const entry = this.#entries.get(key) ?? this.#open(key, ask);
    entry.ask = ask;
    const watcher = {};
    entry.watchers.set(watcher, { everyMs, changed });
    const age = this.#timers.now() - entry.known.at;
    const isOld = entry.known.at === 0 || everyMs === 0 || age >= everyMs;
    if (isOld && !entry.asking) this.#askNow(key, entry);
    else if (!isOld) this.#askIn(key, entry, everyMs - age);
    return () => {
      entry.watchers.delete(watcher);
      if (entry.watchers.size === 0) entry.takeBack();
      this.#forget();
    };
  }

  /** Repeats the queries whose keys match. */
  refresh(isMeant: (key: string) => boolean): void {
    for (const [key, entry] of this.#entries) {
      if (!isMeant(key)) continue;
      if (entry.watchers.size > 0) this.#askNow(key, entry);
      else entry.known = { ...entry.known, at: 0 };
    }
  }

  /** A hidden page sends no queries. */
  see(seen: boolean): void {
    if (this.#seen === seen) return;
    this.#seen = seen;
    for (const [key, entry] of this.#entries) {
      entry.takeBack();
      if (seen && entry.watchers.size > 0) this.#askNow(key, entry);
    }
  }

  #open(key: string, ask: () => Promise<unknown>): Entry {
    const entry: Entry = {
      known: NOTHING,
      ask,
      watchers: new Map(),
      asking: false,
      stale: false,
      failed: 0,
      takeBack: () => {},
    };
    this.#entries.set(key, entry);
    return entry;
  }

  #askNow(key: string, entry: Entry): void {
    entry.takeBack();
    if (!this.#seen) return;
    if (entry.asking) {
      entry.stale = true;
      return;
    }
    entry.asking = true;
    entry.stale = false;
    entry.ask().then(
      (value) => this.#settle(key, entry, { value, failure: undefined, at: this.#timers.now() }),
      (error: unknown) => this.#settle(key, entry, { ...entry.known, failure: asFailure(error) }),
    );
  }

  #settle(key: string, entry: Entry, known: Known<unknown>): void {
    entry.asking = false;
    entry.known = known;
    entry.failed = known.failure === undefined ? 0 : entry.failed + 1;
    for (const { changed } of entry.watchers.values()) changed();
    if (entry.watchers.size === 0) return;
    if (entry.stale) this.#askNow(key, entry);
    else if (entry.failed > 0) this.#askIn(key, entry, RETRY_MS[Math.min(entry.failed, RETRY_MS.length) - 1] ?? 0);
    else {
      const every = Math.min(...[...entry.watchers.values()].map(({ everyMs }) => everyMs || Infinity));
      if (Number.isFinite(every)) this.#askIn(key, entry, every);
    }
  }

  #askIn(key: string, entry: Entry, ms: number): void {
    entry.takeBack();
    entry.takeBack = this.#timers.after(ms, () => this.#askNow(key, entry));
  }

  #forget(): void {
    const unwatched = [...this.#entries].filter(([, { watchers, asking }]) => watchers.size === 0 && !asking);
    for (const [key] of unwatched.slice(0, Math.max(0, unwatched.length - MAX_UNWATCHED))) this.#entries.delete(key);
  }
}
