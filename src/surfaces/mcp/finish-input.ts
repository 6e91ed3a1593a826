/**
 * Standard input that ends after the pending responses were sent. The SDK transports abort every pending request at the
 * end of input, so a client that writes its requests and closes the pipe would get no response.
 */
import { finished, PassThrough, type Readable, type Writable } from 'node:stream';
import { isJSONRPCRequest, type RequestId } from '@modelcontextprotocol/server';
import type { Clock } from '../../foundation/clock.ts';
import { isObject, memberOf } from '../../foundation/json.ts';

/** Deadline for pending requests after the end of input, milliseconds. Then they are aborted. */
export const FINISH_REQUESTS_MS = 600_000;

/** It has no response and lasts as long as the client. */
const SUBSCRIPTION = 'subscriptions/listen';

/** Requests of a client without a response. */
export class PendingRequests {
  readonly #ids = new Set<RequestId>();
  #onIdle: (() => void) | null = null;

  /** Registers a message from the client. */
  received(message: unknown): void {
    const method = memberOf(message, 'method');
    if (isObject(message) && isJSONRPCRequest(message) && method !== SUBSCRIPTION) this.#ids.add(message.id);
    // A cancelled request gets no response.
    if (method === 'notifications/cancelled') this.#settle(memberOf(message, 'params', 'requestId'));
  }

  /** Registers a message to the client. */
  sent(message: unknown): void {
    if (memberOf(message, 'method') === undefined) this.#settle(memberOf(message, 'id'));
  }

  /** Calls back once when no request is pending. */
  whenIdle(callback: () => void): void {
    if (this.#ids.size === 0) callback();
    else this.#onIdle = callback;
  }

  #settle(id: unknown): void {
    if (typeof id !== 'string' && typeof id !== 'number') return;
    this.#ids.delete(id);
    if (this.#ids.size > 0) return;
    this.#onIdle?.();
    this.#onIdle = null;
  }
}

/**
 * The input for a transport. It ends when all requests of `input` have responses, `FINISH_REQUESTS_MS` after the end of
 * `input`, or when `output` fails.
 */
export function finishingInput(
  { input, output }: { readonly input: Readable; readonly output: Writable },
  pending: PendingRequests,
  clock: Clock,
): PassThrough {
  const through = new PassThrough();
  let stop = (): void => {};
  const end = (): void => {
    stop();
    input.unpipe(through).pause();
    through.end();
  };
  const drained = (): void => {
    if (through.readableLength + through.writableLength === 0) pending.whenIdle(end);
    else through.once('data', () => setImmediate(drained));
  };
  const finish = (): void => {
    if (through.writableEnded) return;
    const timer = clock.after(FINISH_REQUESTS_MS, end);
    // Timers of the clock do not keep the process running, but a pending request must.
    const alive = setInterval(() => {}, FINISH_REQUESTS_MS);
    stop = () => {
      timer.cancel();
      clearInterval(alive);
    };
    drained();
  };
  input.pipe(through, { end: false });
  finished(input, { writable: false }, finish);
  // The listeners stay, because a stream can fail repeatedly.
  input.on('error', () => {});
  output.on('error', end);
  through.once('close', end);
  return through;
}
