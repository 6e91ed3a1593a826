/** An attempt to connect to a node. */
import { abortable } from '../../foundation/deadline.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { NodeSession } from './session.ts';

interface AttemptOptions {
  /** True if a relay may lead to the node. */
  readonly relays: boolean;
  /** What the attempt starts with, as `knownOf` names it. */
  readonly known: ReadonlySet<string>;
  readonly begunAt: number;
}

/** Shared by all who wait for it. It is given up when the last of them stops waiting. */
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
    // Whoever waits sees the failure. Nobody else needs it.
    this.#result.promise.catch(() => {});
    work(this.#controller.signal).then(this.#result.resolve, this.#result.reject);
  }

  /** False if it has a result or was given up: a connection that came another way may be gone again. */
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

  /** Gives those who wait a connection that came another way. The work goes on. */
  settle(session: NodeSession): void {
    this.#isSettled = true;
    this.#result.resolve(session);
  }

  cancel(): void {
    this.#controller.abort(new SvcError('cancelled'));
  }
}
