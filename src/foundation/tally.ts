/** Counts things by key, and remembers only keys of which there is something. */
export class Tally<K = string> {
  readonly #counts = new Map<K, number>();
  #total = 0;

  /** How much there is of a key. */
  of(key: K): number {
    return this.#counts.get(key) ?? 0;
  }

  /** How much there is of all keys together. */
  get total(): number {
    return this.#total;
  }

  /** Adds to a key or, below 0, takes away; of what is not there nothing can be taken. */
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

  /** The keys of which there is something, and how much. */
  [Symbol.iterator](): MapIterator<[K, number]> {
    return this.#counts.entries();
  }
}
