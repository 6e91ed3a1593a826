/** Gathers writes that come at the same time into one transaction: one flush of the disk for all. */

interface Write {
  /** Returns how to tell what became of it. */
  run(): () => void;
  reject(error: unknown): void;
}

export class GroupCommit {
  readonly #transaction: <T>(work: () => T) => T;
  #waiting: Write[] = [];

  /** @param transaction runs its work whole or not at all; nested calls as well */
  constructor(transaction: <T>(work: () => T) => T) {
    this.#transaction = transaction;
  }

  /**
   * Runs `work` in a transaction that it shares with others; settles once it is on disk. Where it
   * throws, nothing of it is kept, and the others are.
   */
  run<T>(work: () => T): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const run = (): (() => void) => {
      try {
        const result = this.#transaction(work);
        return () => resolve(result);
      } catch (error) {
        return () => reject(error);
      }
    };
    if (this.#waiting.push({ run, reject }) === 1) setImmediate(() => this.#flush());
    return promise;
  }

  #flush(): void {
    const writes = this.#waiting;
    this.#waiting = [];
    try {
      for (const tell of this.#transaction(() => writes.map((write) => write.run()))) tell();
    } catch (error) {
      for (const write of writes) write.reject(error);
    }
  }
}
