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
      this.#passOn();
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

  /** Passes the slot directly to the longest waiter, so that nothing else can acquire it in between. */
  #passOn(): void {
    const [go] = this.#waiting;
    if (go === undefined) this.#taken--;
    else {
      this.#waiting.delete(go);
      go();
    }
  }
}
