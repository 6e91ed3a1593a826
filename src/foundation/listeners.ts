/** A list of listeners, called in the order in which they were added. */
export class Listeners<T extends readonly unknown[]> {
  readonly #all = new Set<(...news: T) => void>();

  /** Adds a listener. Returns a function that removes it. */
  add(listener: (...news: T) => void): () => void {
    this.#all.add(listener);
    return () => void this.#all.delete(listener);
  }

  /** Calls all listeners. @throws the first exception of a listener, after all were called */
  notify(...news: T): void {
    const errors: unknown[] = [];
    for (const listener of this.#all) {
      try {
        listener(...news);
      } catch (error) {
        errors.push(error);
      }
    }
    if (errors.length > 0) throw errors[0];
  }
}
