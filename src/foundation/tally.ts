/** Counts by key, and stores only keys with a count above 0. */
export class Tally<K = string> {
  readonly #counts = new Map<K, number>();
  #total = 0;

  /** The count of a key. */
  of(key: K): number {
    return this.#counts.get(key) ?? 0;
  }

  /** The sum of all counts. */
  get total(): number {
    return this.#total;
  }

  /** Adds to a key, or subtracts if `change` is negative. The count never falls below 0. */
  add(key: K, change = 1): void {
    const before = this.of(key);
    const count = Math.max(0, before + change);
    if (count === 0) this.#counts.delete(key);
    else this.#counts.set(key, count);
    this.#total += count - before;
  }

  clear(): void {
    this.#counts.clear();
    this.#total = 0;
  }

  /** The keys with a count above 0, with their counts. */
  [Symbol.iterator](): MapIterator<[K, number]> {
    return this.#counts.entries();
  }
}
