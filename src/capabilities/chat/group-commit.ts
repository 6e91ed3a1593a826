/** Gathers writes that come at the same time into one transaction: one flush of the disk for all. */
interface Write {
  run(): void;
  settle(failure?: unknown): void;
}

export class GroupCommit {
  readonly #transaction: <T>(work: () => T) => T;
  #waiting: Write[] = [];
  #scheduled = false;

  /** @param transaction runs its work whole or not at all; nested calls as well */
  constructor(transaction: <T>(work: () => T) => T) {
    this.#transaction = transaction;
  }

  /**
   * Runs `work` in a transaction that it shares with others; settles once it is on disk. Where it
   * throws, nothing of it is kept, and the others are.
   */
  run<T>(work: () => T): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      let settle: () => void = () => reject(new Error('the write was not run'));
      this.#waiting.push({
        run: () => {
          try {
            const result = this.#transaction(work);
            settle = () => resolve(result);
          } catch (error) {
            settle = () => reject(error);
          }
        },
        settle: (failure) => (failure === undefined ? settle() : reject(failure)),
      });
      if (this.#scheduled) return;
      this.#scheduled = true;
      setImmediate(() => this.#flush());
    });
  }

  #flush(): void {
    const writes = this.#waiting;
    this.#waiting = [];
    this.#scheduled = false;
    let failure: unknown;
    try {
      this.#transaction(() => {
        for (const write of writes) write.run();
      });
    } catch (error) {
      failure = error;
    }
    for (const write of writes) write.settle(failure);
  }
}
