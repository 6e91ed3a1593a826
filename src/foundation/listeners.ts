/** Those who want to hear of something, told in the order in which they came. */
export class Listeners<T extends readonly unknown[]> {
  readonly #all = new Set<(...news: T) => void>();

  /** Calls back from now on. Returns how to end that. */
  add(listener: (...news: T) => void): () => void {
    this.#all.add(listener);
    return () => void this.#all.delete(listener);
  }

  /** Tells all of them; what one throws is the teller's, and those after it hear nothing. */
  notify(...news: T): void {
    for (const listener of this.#all) listener(...news);
  }
}
