/** Gathers writes that come at the same time into one transaction: one flush of the disk for all. */

interface Write {
  /** Returns how to tell what became of it. */
  run(): () => void;
  /** Does it as a transaction of its own, and tells. */
  runAlone(): void;
  reject(error: unknown): void;
}

interface GroupCommitOptions {
  /** Most writes in one transaction: the event loop has a turn between two of them. */
  readonly maxWrites?: number;
}

export class GroupCommit {
  readonly #transaction: <T>(work: () => T) => T;
  readonly #maxWrites: number;
  #waiting: Write[] = [];

  /** @param transaction runs its work whole or not at all; nested calls as well */
  constructor(transaction: <T>(work: () => T) => T, { maxWrites = Number.POSITIVE_INFINITY }: GroupCommitOptions = {}) {
    this.#transaction = transaction;
    this.#maxWrites = maxWrites;
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
    // Alone it needs no savepoint inside of a transaction.
    const write: Write = { run, runAlone: () => run()(), reject };
    if (this.#waiting.push(write) === 1) setImmediate(() => this.#flush());
    return promise;
  }

  #flush(): void {
    const writes = this.#waiting.splice(0, this.#maxWrites);
    if (this.#waiting.length > 0) setImmediate(() => this.#flush());
    const [first, ...others] = writes;
    if (first !== undefined && others.length === 0) return first.runAlone();
    try {
      for (const tell of this.#transaction(() => writes.map((write) => write.run()))) tell();
    } catch (error) {
      for (const write of writes) write.reject(error);
    }
  }
}
