/**
 * Standard input whose end waits for the responses that are still due. The transports of the SDK abort every pending
 * request at the end of input, so a client that writes its requests and closes the pipe would get no response.
 */
import { finished, PassThrough, type Readable, type Writable } from 'node:stream';
import { isJSONRPCRequest, type RequestId } from '@modelcontextprotocol/server';
import type { Clock } from '../../foundation/clock.ts';
import { isObject, memberOf } from '../../foundation/json.ts';

/** How long pending requests may take after the end of input, milliseconds; then they are aborted. */
export const FINISH_REQUESTS_MS = 600_000;

/** It has no response of its own: it lasts as long as the client. */
const SUBSCRIPTION = 'subscriptions/listen';

/** The requests of a client that have no response yet. */
export class PendingRequests {
  readonly #ids = new Set<RequestId>();
  #onIdle: (() => void) | null = null;

  /** Takes note of a message from the client. */
  received(message: unknown): void {
    const method = memberOf(message, 'method');
    if (isObject(message) && isJSONRPCRequest(message) && method !== SUBSCRIPTION) this.#ids.add(message.id);
    // A cancelled request gets no response.
    if (method === 'notifications/cancelled') this.#settle(memberOf(message, 'params', 'requestId'));
  }

  /** Takes note of a message that was written to the client. */
  sent(message: unknown): void {
    if (memberOf(message, 'method') === undefined) this.#settle(memberOf(message, 'id'));
  }

  /** Calls back once, as soon as no request is pending. */
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
 * The input for a transport: it ends once the requests of `input` have their responses, or `FINISH_REQUESTS_MS` after
 * the end of `input`, or when `output` fails.
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
    // Timers of the clock do not keep the process alive, and a request may be waiting for nothing but one.
    const alive = setInterval(() => {}, FINISH_REQUESTS_MS);
    stop = () => {
      timer.cancel();
      clearInterval(alive);
    };
    drained();
  };
  input.pipe(through, { end: false });
  finished(input, { writable: false }, finish);
  // They stay: a stream may fail again.
  input.on('error', () => {});
  output.on('error', end);
  through.once('close', end);
  return through;
}
