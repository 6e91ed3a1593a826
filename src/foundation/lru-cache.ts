import type { Clock } from './clock.ts';

interface LruCacheOptions {
  /** The least recently used entry makes room for a new one above this number; at least 1. */
  readonly maxEntries: number;
  /** Milliseconds after which an entry is gone, counted from `set`; without it entries do not age. Needs a clock. */
  readonly ttlMs?: number;
}

interface Entry<V> {
  readonly value: V;
  readonly expiresAt: number;
}

/**
 * A map of bounded size. Reading an entry makes it the most recent one. Expired entries are dropped
 * when they are met, so there is no timer to stop.
 */
export class LruCache<K, V> {
  readonly #maxEntries: number;
  readonly #ttlMs: number;
  readonly #now: () => number;
  readonly #entries = new Map<K, Entry<V>>();

  /** @throws RangeError where a limit is not positive, TypeError where a ttl comes without a clock */
  constructor(options: LruCacheOptions, { clock }: { readonly clock?: Clock } = {}) {
    const { maxEntries, ttlMs = Number.POSITIVE_INFINITY } = options;
    if (!Number.isSafeInteger(maxEntries) || maxEntries < 1) throw new RangeError(`maxEntries is ${maxEntries}`);
    if (!(ttlMs > 0)) throw new RangeError(`ttlMs is ${ttlMs}`);
    if (options.ttlMs !== undefined && clock === undefined) throw new TypeError('A ttl needs a clock.');
    this.#maxEntries = maxEntries;
    this.#ttlMs = ttlMs;
    this.#now = clock === undefined ? () => 0 : () => clock.now();
  }

  /** The value, which becomes the most recent one; undefined where it is absent or too old. */
  get(key: K): V | undefined {
    const entry = this.#live(key);
    if (entry === undefined) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    return entry.value;
  }

  /** The value, without making it recent. */
  peek(key: K): V | undefined {
    return this.#live(key)?.value;
  }

  has(key: K): boolean {
    return this.#live(key) !== undefined;
  }

  /** Keeps a value as the most recent one; the least recent one goes where there is no room. */
  set(key: K, value: V): void {
    this.#entries.delete(key);
    if (this.#entries.size >= this.#maxEntries) {
      const oldest = this.#entries.keys().next();
      if (oldest.done !== true) this.#entries.delete(oldest.value);
    }
    this.#entries.set(key, { value, expiresAt: this.#now() + this.#ttlMs });
  }

  /** True where there was such an entry. */
  delete(key: K): boolean {
    const live = this.#live(key) !== undefined;
    this.#entries.delete(key);
    return live;
  }

  clear(): void {
    this.#entries.clear();
  }

  /** The values that are not too old, the least recent one first. */
  values(): V[] {
    return [...this.#entries.keys()].flatMap((key) => this.#live(key) ?? []).map(({ value }) => value);
  }

  /** Entries held, those that expired and were not met since included. */
  get size(): number {
    return this.#entries.size;
  }

  #live(key: K): Entry<V> | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined || this.#now() < entry.expiresAt) return entry;
    this.#entries.delete(key);
    return undefined;
  }
}
