/**
 * MCP messages on stdin and stdout. Unlike the SDK transport, `send` resolves after the message was written, and an
 * unknown protocol revision is rejected in later requests too.
 */
import type { Readable, Writable } from 'node:stream';
import {
  isJSONRPCRequest,
  type JSONRPCMessage,
  PROTOCOL_VERSION_META_KEY,
  type RequestId,
  serializeMessage,
  UnsupportedProtocolVersionError,
} from '@modelcontextprotocol/server';
import { StdioServerTransport } from '@modelcontextprotocol/server/stdio';
import type { PendingRequests } from './finish-input.ts';

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
