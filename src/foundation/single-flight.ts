/** Work that is done once for all who ask for it at the same time. */
export class SingleFlight<T, K = string> {
  readonly #running = new Map<K, Promise<T>>();

  /** True while work runs under this key. */
  has(key: K): boolean {
    return this.#running.has(key);
  }

  /** Runs `work`, or waits for that which runs under this key already. */
  run(key: K, work: () => Promise<T>): Promise<T> {
    const running = this.#running.get(key);
    if (running !== undefined) return running;
    const started = work().finally(() => this.#running.delete(key));
    this.#running.set(key, started);
    return started;
  }
}
