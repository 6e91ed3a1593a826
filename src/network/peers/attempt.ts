/** An attempt to connect to a node. */
import type { Clock, Timer } from '../../foundation/clock.ts';
import { abortable } from '../../foundation/deadline.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { NodeSilence } from './dial.ts';
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
  #isAnswered = false;
  #waiters = 0;
  #isSettled = false;

  /** @param work calls `onAnswer` after the handshake with the node */
  constructor(
    { relays, known, begunAt }: AttemptOptions,
    work: (cancelled: AbortSignal, onAnswer: () => void) => Promise<NodeSession>,
  ) {
    this.relays = relays;
    this.known = known;
    this.begunAt = begunAt;
    // Each waiting caller receives the error.
    this.#result.promise.catch(() => {});
    const onAnswer = (): void => {
      this.#isAnswered = true;
    };
    work(this.#controller.signal, onAnswer).then(this.#result.resolve, this.#result.reject);
  }

  /** False if it has a result or is cancelled: its connection may be closed by now. */
  get isJoinable(): boolean {
    return !this.#isSettled && !this.#controller.signal.aborted;
  }

  /** Calls back if the handshake takes too long. */
  watch({ minMs, roundTrips, usualRttMs, onSilence }: NodeSilence, clock: Clock): Timer {
    const untilMs = this.begunAt + Math.max(minMs, roundTrips * usualRttMs) - clock.monotonic();
    return clock.after(Math.max(0, untilMs), () => {
      if (!this.#isAnswered) onSilence();
    });
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
