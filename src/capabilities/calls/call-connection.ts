/** One link stream on the called side, during and between its requests. */
import type { Clock, Timer } from '../../foundation/clock.ts';
import type { SvcError } from '../../foundation/errors.ts';
import { awakeClock } from '../../foundation/stall.ts';
import { NEXT_REQUEST_MS } from '../../network/links/http-server.ts';
import type { LinkStream } from '../../network/links/types.ts';

/** Timeout for the complete head of the first request on a stream, in milliseconds. */
export const FIRST_HEAD_MS = 15_000;

export class CallConnection {
  readonly link: LinkStream;
  readonly #clock: Clock;
  readonly #calls = new Set<AbortController>();
  /** Set if the caller's node broke the protocol. The rest of its data is ignored. */
  violated = false;
  #timer: Timer;

  constructor(link: LinkStream, clock: Clock) {
    this.link = link;
    this.#clock = awakeClock(clock);
    this.#timer = this.#clock.after(FIRST_HEAD_MS, () => link.destroy());
    link.once('close', () => {
      this.#timer.cancel();
      for (const call of this.#calls) call.abort();
    });
  }

  /** True while a request is being served. */
  get busy(): boolean {
    return this.#calls.size > 0;
  }

  /** Registers a request. */
  begin(call: AbortController): void {
    this.#timer.cancel();
    this.#calls.add(call);
  }

  /** Unregisters a request. The stream then waits for the next one. */
  end(call: AbortController): void {
    this.#calls.delete(call);
    if (this.busy || this.link.destroyed) return;
    this.#timer.cancel();
    this.#timer = this.#clock.after(NEXT_REQUEST_MS, () => this.link.destroy());
  }

  /** Aborts all requests of the stream. Callers that have no response yet receive the reason. */
  abortAll(reason: SvcError): void {
    if (!this.busy) this.link.destroy();
    for (const call of this.#calls) call.abort(reason);
  }
}
