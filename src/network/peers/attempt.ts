/** An attempt to connect to a node. */
import { abortable } from '../../foundation/deadline.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { NodeSession } from './session.ts';

interface AttemptOptions {
  /** True if a relay may lead to the node. */
  readonly relays: boolean;
  /** Its start points, as returned by `knownOf`. */
  readonly known: ReadonlySet<string>;
  readonly begunAt: number;
}

/** All callers that need the node share one attempt. It is cancelled when the last caller stops waiting. */
export class DialAttempt {
  readonly relays: boolean;
  readonly known: ReadonlySet<string>;
  readonly begunAt: number;
  readonly #result = Promise.withResolvers<NodeSession>();
  readonly #controller = new AbortController();
  #waiters = 0;
  #isSettled = false;

  constructor({ relays, known, begunAt }: AttemptOptions, work: (cancelled: AbortSignal) => Promise<NodeSession>) {
    this.relays = relays;
    this.known = known;
    this.begunAt = begunAt;
    // Each waiting caller receives the error.
    this.#result.promise.catch(() => {});
    work(this.#controller.signal).then(this.#result.resolve, this.#result.reject);
  }

  /** False if it has a result or is cancelled: its connection may be closed by now. */
  get isJoinable(): boolean {
    return !this.#isSettled && !this.#controller.signal.aborted;
  }

  /** Waits for the result while the signal allows. */
  async join(signal: AbortSignal): Promise<NodeSession> {
    this.#waiters++;
    try {
      return await abortable(this.#result.promise, signal);
    } finally {
      this.#waiters--;
      if (this.#waiters === 0 && !this.#isSettled) this.cancel();
    }
  }

  /** Gives the waiting callers a connection that was made otherwise. The attempt continues. */
  settle(session: NodeSession): void {
    this.#isSettled = true;
    this.#result.resolve(session);
  }

  cancel(): void {
    this.#controller.abort(new SvcError('cancelled'));
  }
}
