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
