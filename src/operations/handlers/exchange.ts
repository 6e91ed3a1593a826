/** Serving the routes that are not JSON in, JSON out. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { CallContext } from '../operation.ts';
import type { StreamDeclaration } from '../stream.ts';

/** One request of a stream, after the gate. */
export interface StreamExchange {
  readonly request: IncomingMessage;
  /** Carries the security headers already; the handler writes the rest. */
  readonly response: ServerResponse;
  /** Path and query, checked against the declaration. */
  readonly input: Readonly<Record<string, unknown>>;
  readonly context: CallContext;
  /** Set where the client asks for a WebSocket. */
  readonly upgrade?: Upgrade;
}

/** The bare connection of a client that asks for a WebSocket. The handler switches to it, or answers with the response. */
export interface Upgrade {
  readonly socket: Duplex;
  /** What the client already sent. */
  readonly head: Buffer;
}

/**
 * Serves one request. An error thrown before the head of the answer is sent becomes an error answer;
 * afterwards the connection is cut, so that nobody takes half an answer for a whole one.
 */
export type HttpStreamHandler = (exchange: StreamExchange) => void | Promise<void>;

/** One handler for each stream of a table. */
export type StreamHandlers<T> = { readonly [K in keyof T]: HttpStreamHandler };

/** A stream with its handler: what the REST surface serves. */
export interface BoundStream {
  readonly declaration: StreamDeclaration;
  readonly handle: HttpStreamHandler;
}

/** Joins the declarations of streams and their handlers. */
export function bindStreams<K extends string>(
  declarations: Readonly<Record<K, StreamDeclaration>>,
  handlers: Readonly<Record<NoInfer<K>, HttpStreamHandler>>,
): BoundStream[] {
  const bound: BoundStream[] = [];
  for (const name in declarations) bound.push({ declaration: declarations[name], handle: handlers[name] });
  return bound;
}
