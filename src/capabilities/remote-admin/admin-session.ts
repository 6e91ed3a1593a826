/** One connection of a remote administrator. */
import type { Duplex } from 'node:stream';
import type { Clock, Timer } from '../../foundation/clock.ts';
import { SvcError } from '../../foundation/errors.ts';
import { NEXT_REQUEST_MS } from '../../network/links/http-server.ts';
import type { LinkStream } from '../../network/links/types.ts';
import { LINGER_MS } from '../../network/peers/wire.ts';
import type { ObservedRequest } from './audit-trail.ts';

/** Called for each request. Returns the observer of its outcome. */
export type RequestObserver = (method: string, path: string) => ObservedRequest;

export class AdminSession {
  readonly link: LinkStream;
  readonly #clock: Clock;
  readonly #record: RequestObserver;
  #running = 0;
  #cut = false;
  #timer: Timer;

  /**
   * @param record records a request. If it throws, the request is rejected
   * @param serve serves HTTP on the stream
   */
  constructor(
    link: LinkStream,
    clock: Clock,
    record: RequestObserver,
    serve: (stream: Duplex, observer: RequestObserver) => void,
  ) {
    this.link = link;
    this.#clock = clock;
    this.#record = record;
    this.#timer = this.#idle();
    link.on('error', () => link.destroy());
    link.once('close', () => this.#timer.cancel());
    serve(link, (method, path) => this.#begin(method, path));
  }

  /**
   * Closes the session: no further request is accepted, and running requests lose their response. A response that is
   * already complete is still delivered, such as the response to the request that revoked the access.
   */
  revoke(): void {
    if (this.#cut) return;
    this.#cut = true;
    if (this.#running === 0) return void this.link.destroy();
    // The request that caused the cut is answered before the next turn of the event loop.
    setImmediate(() => {
      const answered = this.#running === 0 || this.link.writableLength > 0;
      if (this.link.destroyed || !answered) return void this.link.destroy();
      this.#timer.cancel();
      this.#timer = this.#clock.after(LINGER_MS, () => this.link.destroy());
      this.link.end();
    });
  }

  #idle(): Timer {
    return this.#clock.after(NEXT_REQUEST_MS, () => this.link.destroy());
  }

  #begin(method: string, path: string): ObservedRequest {
    if (this.#cut) throw new SvcError('access_denied', { message: 'Remote administration was revoked.' });
    const recorded = this.#record(method, path);
    this.#timer.cancel();
    this.#running++;
    const answered = (status: number | null): void => {
      this.#running--;
      try {
        recorded.answered(status);
      } finally {
        if (this.#running === 0 && !this.#cut && !this.link.destroyed) {
          this.#timer.cancel();
          this.#timer = this.#idle();
        }
      }
    };
    return { tool: (name) => recorded.tool(name), answered };
  }
}
