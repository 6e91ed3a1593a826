import type { Clock } from './clock.ts';

interface LruCacheOptions {
  /** Maximum number of entries, at least 1. A new entry then evicts the least recently used one. */
  readonly maxEntries: number;
  /** Milliseconds from `set` until an entry expires. Without it entries do not expire. Requires a clock. */
  readonly ttlMs?: number;
}

interface Entry<V> {
  readonly value: V;
  readonly expiresAt: number;
}

/**
 * A map of bounded size with least-recently-used eviction. Expired entries are removed on access, so there is no timer
 * to stop.
 */
export class LruCache<K, V> {
  readonly #maxEntries: number;
  readonly #ttlMs: number;
  readonly #clock: Clock | undefined;
  readonly #entries = new Map<K, Entry<V>>();

  /** @throws RangeError if a limit is not positive, TypeError if a ttl is given without a clock */
  constructor(options: LruCacheOptions, { clock }: { readonly clock?: Clock } = {}) {
    const { maxEntries, ttlMs = Number.POSITIVE_INFINITY } = options;
    if (!Number.isSafeInteger(maxEntries) || maxEntries < 1) throw new RangeError(`maxEntries is ${maxEntries}`);
    if (!(ttlMs > 0)) throw new RangeError(`ttlMs is ${ttlMs}`);
    if (options.ttlMs !== undefined && clock === undefined) throw new TypeError('A ttl needs a clock.');
    this.#maxEntries = maxEntries;
    this.#ttlMs = ttlMs;
    this.#clock = clock;
  }

  /** Returns the value and marks it as recently used; undefined if it is absent or expired. */
  get(key: K): V | undefined {
    const entry = this.#live(key);
    if (entry === undefined) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    return entry.value;
  }

  /** Returns the value without marking it as recently used. */
  peek(key: K): V | undefined {
    return this.#live(key)?.value;
  }

  has(key: K): boolean {
    return this.#live(key) !== undefined;
  }

  /** Stores a value as the most recently used one. Evicts the least recently used one if the cache is full. */
  set(key: K, value: V): void {
    this.#entries.delete(key);
    if (this.#entries.size >= this.#maxEntries) {
      const oldest = this.#entries.keys().next();
      if (oldest.done !== true) this.#entries.delete(oldest.value);
    }
    this.#entries.set(key, { value, expiresAt: (this.#clock?.monotonic() ?? 0) + this.#ttlMs });
  }

  /** True if the entry existed. */
  delete(key: K): boolean {
    const live = this.#live(key) !== undefined;
    this.#entries.delete(key);
    return live;
  }

  clear(): void {
    this.#entries.clear();
  }

  /** The values that have not expired, least recently used first. */
  values(): V[] {
    return [...this.#entries.keys()].flatMap((key) => this.#live(key) ?? []).map(({ value }) => value);
  }

  /** Number of entries, including expired ones that were not accessed since. */
  get size(): number {
    return this.#entries.size;
  }

  #live(key: K): Entry<V> | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined || (this.#clock?.monotonic() ?? 0) < entry.expiresAt) return entry;
    this.#entries.delete(key);
    return undefined;
  }
}
