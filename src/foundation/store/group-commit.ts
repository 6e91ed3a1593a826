/** Combines concurrent writes in one transaction, so that they share one flush of the disk. */

interface Write {
  /** Returns a function that settles the promise. */
  run(): () => void;
  /** Runs in a separate transaction and settles the promise. */
  runAlone(): void;
  reject(error: unknown): void;
}

interface GroupCommitOptions {
  /** Maximum number of writes in one transaction. The event loop continues between two transactions. */
  readonly maxWrites?: number;
}

export class GroupCommit {
  readonly #transaction: <T>(work: () => T) => T;
  readonly #maxWrites: number;
  #pending: Write[] = [];

  /** @param transaction runs its work atomically, nested calls too */
  constructor(transaction: <T>(work: () => T) => T, { maxWrites = Number.POSITIVE_INFINITY }: GroupCommitOptions = {}) {
    this.#transaction = transaction;
    this.#maxWrites = maxWrites;
  }

  /**
   * Runs `work` in a shared transaction. Resolves when it is on disk. If `work` throws, only its own changes are rolled
   * back.
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
    // A single write needs no savepoint.
    const write: Write = { run, runAlone: () => run()(), reject };
    if (this.#pending.push(write) === 1) setImmediate(() => this.#flush());
    return promise;
  }

  #flush(): void {
    const writes = this.#pending.splice(0, this.#maxWrites);
    if (this.#pending.length > 0) setImmediate(() => this.#flush());
    const [first, ...others] = writes;
    if (first !== undefined && others.length === 0) return first.runAlone();
    try {
      for (const settle of this.#transaction(() => writes.map((write) => write.run()))) settle();
    } catch (error) {
      for (const write of writes) write.reject(error);
    }
  }
}
