/** Runs work on the same key sequentially, and on different keys concurrently. */
export class KeyedMutex<K = string> {
  readonly #last = new Map<K, Promise<unknown>>();

  /** Number of keys with running work. */
  get size(): number {
    return this.#last.size;
  }

  /** True while work runs for a key. */
  has(key: K): boolean {
    return this.#last.has(key);
  }

  /** Runs `work` after all earlier work on this key has finished or failed. */
  async run<T>(key: K, work: () => T | Promise<T>): Promise<T> {
    const before = this.#last.get(key);
    const mine = before === undefined ? Promise.resolve().then(work) : before.then(work, work);
    this.#last.set(key, mine);
    try {
      return await mine;
    } finally {
      if (this.#last.get(key) === mine) this.#last.delete(key);
    }
  }

  /** Waits until no work is running. */
  async idle(): Promise<void> {
    await Promise.allSettled(this.#last.values());
  }
}
