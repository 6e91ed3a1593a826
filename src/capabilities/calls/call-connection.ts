/** One link stream on the called side, between and during its requests. */
import type { Clock, Timer } from '../../foundation/clock.ts';
import type { SvcError } from '../../foundation/errors.ts';
import { awakeClock } from '../../foundation/stall.ts';
import { NEXT_REQUEST_MS } from '../../network/links/http-server.ts';
import type { LinkStream } from '../../network/links/types.ts';

/** How long the first request of a stream may take to arrive, its head as a whole: milliseconds. */
export const FIRST_HEAD_MS = 15_000;

export class CallConnection {
  readonly link: LinkStream;
  readonly #clock: Clock;
  readonly #calls = new Set<AbortController>();
  /** Its other side broke the protocol: what else it sends is not looked at. */
  spoilt = false;
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

  /** Counts a request in. */
  begin(call: AbortController): void {
    this.#timer.cancel();
    this.#calls.add(call);
  }

  /** Counts it out; the stream then waits for the next. */
  end(call: AbortController): void {
    this.#calls.delete(call);
    if (this.busy || this.link.destroyed) return;
    this.#timer.cancel();
    this.#timer = this.#clock.after(NEXT_REQUEST_MS, () => this.link.destroy());
  }

  /** Ends whatever goes on here, for a reason that callers without an answer yet are told. */
  cut(reason: SvcError): void {
    if (!this.busy) this.link.destroy();
    for (const call of this.#calls) call.abort(reason);
  }
}
