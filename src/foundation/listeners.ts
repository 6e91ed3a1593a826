/** A list of listeners, called in the order in which they were added. */
export class Listeners<T extends readonly unknown[]> {
  readonly #all = new Set<(...news: T) => void>();

  /** Adds a listener. Returns a function that removes it. */
  add(listener: (...news: T) => void): () => void {
    this.#all.add(listener);
    return () => void this.#all.delete(listener);
  }

  /** Calls all listeners. An exception of one reaches the caller, and the remaining listeners are not called. */
  notify(...news: T): void {
    for (const listener of this.#all) listener(...news);
  }
}
