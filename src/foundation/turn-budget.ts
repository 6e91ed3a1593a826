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
