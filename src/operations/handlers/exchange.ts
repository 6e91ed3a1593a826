/** Serves streams: routes that are not JSON in, JSON out. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { CallContext } from '../operation.ts';
import type { StreamDeclaration } from '../stream.ts';

/** A request of a stream, after the common checks. */
export interface StreamExchange {
  readonly request: IncomingMessage;
  /** The security headers are set; the handler writes the rest. */
  readonly response: ServerResponse;
  /** Path and query, validated. */
  readonly input: Readonly<Record<string, unknown>>;
  readonly context: CallContext;
  /** Set if the client requests a WebSocket. */
  readonly upgrade?: Upgrade;
}

/** The raw connection of a client that requests a WebSocket. The handler upgrades it or sends the response. */
export interface Upgrade {
  readonly socket: Duplex;
  /** Data that the client has already sent. */
  readonly head: Buffer;
}

/**
 * Serves a request. An error before the response headers becomes an error response. After that the connection is reset,
 * so that the client does not accept a partial response as complete.
 */
export type HttpStreamHandler = (exchange: StreamExchange) => void | Promise<void>;

/** One handler for each stream of a table. */
export type StreamHandlers<T> = { readonly [K in keyof T]: HttpStreamHandler };

/** A stream with its handler. */
export interface BoundStream {
  readonly declaration: StreamDeclaration;
  readonly handle: HttpStreamHandler;
}

/** Joins streams and their handlers. */
export function bindStreams<K extends string>(
  declarations: Readonly<Record<K, StreamDeclaration>>,
  handlers: Readonly<Record<NoInfer<K>, HttpStreamHandler>>,
): BoundStream[] {
  const bound: BoundStream[] = [];
  for (const name in declarations) bound.push({ declaration: declarations[name], handle: handlers[name] });
  return bound;
}
