/** Orders and limits concurrent work. */

/** A counting semaphore with a queue. */
export class Semaphore {
  readonly #max: number;
  readonly #waiting = new Set<() => void>();
  #taken = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** Slots in use or waited for. */
  get busy(): number {
    return this.#taken + this.#waiting.size;
  }

  /**
   * Acquires a slot when one is free. Returns a function that releases it; further calls have no effect. Rejects with
   * the signal's reason.
   */
  async acquire(signal?: AbortSignal): Promise<() => void> {
    signal?.throwIfAborted();
    if (this.#taken < this.#max) this.#taken++;
    else await this.#wait(signal);
    let given = false;
    return () => {
      if (given) return;
      given = true;
      // Passed directly to the longest waiter, so that nothing else can acquire it in between.
      const [go] = this.#waiting;
      if (go === undefined) this.#taken--;
      else {
        this.#waiting.delete(go);
        go();
      }
    };
  }

  /** Runs `work` with a slot. Rejects with the signal's reason if the signal aborts before `work` starts. */
  async run<T>(work: () => T | Promise<T>, signal?: AbortSignal): Promise<T> {
    const release = await this.acquire(signal);
    try {
      return await work();
    } finally {
      release();
    }
  }

  #wait(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const go = (): void => {
        signal?.removeEventListener('abort', leave);
        resolve();
      };
      const leave = (): void => {
        this.#waiting.delete(go);
        reject(signal?.reason);
      };
      this.#waiting.add(go);
      signal?.addEventListener('abort', leave, { once: true });
    });
  }
}

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

/** Counts work that must end before its resources are released. */
export class WorkUnderWay {
  readonly #running = new Set<Promise<unknown>>();

  /** Runs `work`. */
  run<T>(work: () => Promise<T>): Promise<T> {
    const running = work();
    const end = (): void => void this.#running.delete(ended);
    const ended: Promise<void> = running.then(end, end);
    this.#running.add(ended);
    return running;
  }

  /** Waits until no work is running, including work that starts meanwhile. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }
}

/** Shares one run of the same work between concurrent callers. */
export class SingleFlight<T, K = string> {
  readonly #running = new Map<K, Promise<T>>();

  /** True while work runs under this key. */
  has(key: K): boolean {
    return this.#running.has(key);
  }

  /** Runs `work`, or waits for the work that already runs under this key. */
  run(key: K, work: () => Promise<T>): Promise<T> {
    const running = this.#running.get(key);
    if (running !== undefined) return running;
    const started = work().finally(() => this.#running.delete(key));
    this.#running.set(key, started);
    return started;
  }
}

/**
 * Limits synchronous work per turn of the event loop, so that work that is cheapest to do immediately does not block
 * other work.
 */
export class TurnBudget {
  readonly #count: number;
  #left: number;

  /** @param count operations per turn, at least 1 */
  constructor(count: number) {
    this.#count = count;
    this.#left = count;
  }

  /** Takes one operation of this turn; false if the budget is used up. */
  take(): boolean {
    if (this.#left === 0) return false;
    if (this.#left-- === this.#count)
      setImmediate(() => {
        this.#left = this.#count;
      });
    return true;
  }
}
