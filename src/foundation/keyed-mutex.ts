/** Work on one key, one after the other; work on different keys side by side. */
export class KeyedMutex<K = string> {
  readonly #last = new Map<K, Promise<unknown>>();

  /** Keys that are worked on. */
  get size(): number {
    return this.#last.size;
  }

  /** True while a key is worked on. */
  has(key: K): boolean {
    return this.#last.has(key);
  }

  /** Runs `work` when all earlier work on this key has ended, however it ended. */
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

  /** Waits until nothing is under way. */
  async idle(): Promise<void> {
    await Promise.allSettled(this.#last.values());
  }
}
