/** A number of places, and a queue for them. */
export class Semaphore {
  readonly #max: number;
  readonly #waiting = new Set<() => void>();
  #taken = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** Places taken or waited for. */
  get busy(): number {
    return this.#taken + this.#waiting.size;
  }

  /** Takes a place when one is free; returns how to give it back, which counts once. Rejects with the signal's reason. */
  async acquire(signal?: AbortSignal): Promise<() => void> {
    signal?.throwIfAborted();
    if (this.#taken < this.#max) this.#taken++;
    else await this.#wait(signal);
    let given = false;
    return () => {
      if (given) return;
      given = true;
      this.#handOver();
    };
  }

  /** Runs `work` in a place of its own. Rejects with the signal's reason where that aborts before it begins. */
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

  /** A place goes straight to who waits longest: nobody can come in between. */
  #handOver(): void {
    const [go] = this.#waiting;
    if (go === undefined) this.#taken--;
    else {
      this.#waiting.delete(go);
      go();
    }
  }
}
