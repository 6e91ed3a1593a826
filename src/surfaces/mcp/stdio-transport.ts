/**
 * MCP messages on stdin and stdout. Unlike the SDK transport, `send` resolves after the message was written, and an
 * unknown protocol revision is rejected in later requests too. Invalid input gets an error response.
 */
import { finished, PassThrough, type Readable, type Writable } from 'node:stream';
import {
  isJSONRPCRequest,
  type JSONRPCMessage,
  PROTOCOL_VERSION_META_KEY,
  type RequestId,
  serializeMessage,
  UnsupportedProtocolVersionError,
} from '@modelcontextprotocol/server';
import { StdioServerTransport } from '@modelcontextprotocol/server/stdio';
import type { Clock } from '../../foundation/clock.ts';
import { isObject, memberOf } from '../../foundation/json.ts';
import { answerTo, MessageLines, type OddMessage, readWith } from './message-reader.ts';

// Standard input that ends after the pending responses were sent. The SDK transports abort every pending request at
// the end of input, so a client that writes its requests and closes the pipe would get no response.

/** Deadline for pending requests after the end of input, milliseconds. Then they are aborted. */
export const FINISH_REQUESTS_MS = 600_000;

/** It has no response and lasts as long as the client. */
const SUBSCRIPTION = 'subscriptions/listen';

/** Requests of a client without a response, and error responses that are being written. */
export class PendingRequests {
  readonly #ids = new Set<RequestId>();
  #writing = 0;
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

  /** Writes the error response to invalid input. A response that is odd itself gets none. */
  refuse(output: Writable, odd: OddMessage): void {
    if (odd.kind === 'response') return;
    this.#writing++;
    // A client that has exited needs no error.
    output.write(`${JSON.stringify(answerTo(odd))}\n`, () => {
      this.#writing--;
      this.#checkIdle();
    });
  }

  /** Calls back once when no request is pending. */
  whenIdle(callback: () => void): void {
    this.#onIdle = callback;
    this.#checkIdle();
  }

  #settle(id: unknown): void {
    if (typeof id !== 'string' && typeof id !== 'number') return;
    this.#ids.delete(id);
    this.#checkIdle();
  }

  #checkIdle(): void {
    if (this.#ids.size > 0 || this.#writing > 0) return;
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
    // The last message may lack its line feed.
    through.write('\n');
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

/** Revisions that each request names. Earlier ones are negotiated once. */
export const MODERN_REVISIONS = ['2026-07-28'];

type Settled = (arrived: boolean) => void;

/** The request that a callback waits for. */
interface Asked {
  readonly id: RequestId;
  /** Aborts if the client cancels the request. No response follows. */
  readonly signal: AbortSignal;
}

/** The error for a request with an unknown revision. The SDK checks only the first request of a connection. */
function refusalOf(message: JSONRPCMessage): JSONRPCMessage | undefined {
  if (!isJSONRPCRequest(message)) return undefined;
  const { _meta: meta } = message.params ?? {};
  const requested = meta?.[PROTOCOL_VERSION_META_KEY];
  if (typeof requested !== 'string' || MODERN_REVISIONS.includes(requested)) return undefined;
  const error = new UnsupportedProtocolVersionError({ supported: MODERN_REVISIONS, requested });
  return { jsonrpc: '2.0', id: message.id, error: { code: error.code, message: error.message, data: error.data } };
}

export class StdioTransport extends StdioServerTransport {
  readonly #output: Writable;
  readonly #pending: PendingRequests;
  readonly #waiting = new Map<RequestId, Settled[]>();

  constructor(input: Readable, output: Writable, pending: PendingRequests) {
    super(input, output);
    this.#output = output;
    this.#pending = pending;
    readWith(this, new MessageLines({ onOdd: (odd) => pending.refuse(output, odd) }));
  }

  override async start(): Promise<void> {
    const deliver = this.onmessage;
    // oxlint-disable-next-line prefer-add-event-listener -- a transport of the SDK is no EventTarget
    this.onmessage = (message) => {
      this.#pending.received(message);
      const refusal = refusalOf(message);
      if (refusal === undefined) return deliver?.(message);
      // A closed client needs no error.
      this.send(refusal).catch(() => {});
    };
    await super.start();
  }

  /** Calls back once the response was written, or can no longer be written. */
  onAnswered(settled: Settled, { id, signal }: Asked): void {
    if (signal.aborted) return settled(false);
    this.#waiting.set(id, [...(this.#waiting.get(id) ?? []), settled]);
    signal.addEventListener('abort', () => this.#settle(id, false), { once: true });
  }

  override send(message: JSONRPCMessage): Promise<void> {
    const answered = 'id' in message && !('method' in message) ? message.id : undefined;
    return new Promise((resolve, reject) => {
      this.#output.write(serializeMessage(message), (error) => {
        const left = error === null || error === undefined;
        if (answered !== undefined) this.#settle(answered, left);
        this.#pending.sent(message);
        if (left) resolve();
        else reject(error);
      });
    });
  }

  override async close(): Promise<void> {
    for (const id of [...this.#waiting.keys()]) this.#settle(id, false);
    await super.close();
  }

  #settle(id: RequestId, arrived: boolean): void {
    const waiting = this.#waiting.get(id) ?? [];
    this.#waiting.delete(id);
    for (const settled of waiting) settled(arrived);
  }
}
