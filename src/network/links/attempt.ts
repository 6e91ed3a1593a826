/** One piece of work that several wait for. */
import { abortable } from '../../foundation/deadline.ts';
import { SvcError } from '../../foundation/errors.ts';

/** It is given up when the last of those who wait stops waiting. */
export class SharedAttempt<T> {
  readonly #result = Promise.withResolvers<T>();
  readonly #controller = new AbortController();
  #waiters = 0;
  #settled = false;

  constructor(work: (signal: AbortSignal) => Promise<T>) {
    // Whoever waits sees the failure; with nobody left it is of no interest.
    this.#result.promise.catch(() => {});
    work(this.#controller.signal).then(this.#result.resolve, this.#result.reject);
  }

  /** Waits for the result, as long as the signal allows. */
  async join(signal: AbortSignal): Promise<T> {
    this.#waiters++;
    try {
      return await abortable(this.#result.promise, signal);
    } finally {
      this.#waiters--;
      if (this.#waiters === 0 && !this.#settled) this.#controller.abort(new SvcError('cancelled'));
    }
  }

  /** Whether nobody waited any more, or it was cancelled: who joins would get nothing but that. */
  get isGivenUp(): boolean {
    return this.#controller.signal.aborted;
  }

  /** Gives the waiters a result that came another way; the work itself goes on, though nobody waits for it. */
  settle(result: T): void {
    this.#settled = true;
    this.#result.resolve(result);
  }

  /** Gives up at once. */
  cancel(): void {
    this.#controller.abort(new SvcError('cancelled'));
  }
}
