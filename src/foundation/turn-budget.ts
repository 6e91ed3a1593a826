/** Counts what is done in one turn of the event loop, so that work which is quickest done at once holds nobody else up. */
export class TurnBudget {
  readonly #count: number;
  #left: number;

  /** @param count how often in a turn; 1 at least */
  constructor(count: number) {
    this.#count = count;
    this.#left = count;
  }

  /** True where there is one left in this turn, which is taken. */
  take(): boolean {
    if (this.#left === 0) return false;
    if (this.#left-- === this.#count)
      setImmediate(() => {
        this.#left = this.#count;
      });
    return true;
  }
}
