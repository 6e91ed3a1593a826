/**
 * Routes that are not JSON in, JSON out: event streams, uploads, the gateway, pages. They are
 * declared beside the operations and served by hand, behind the same gate.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { TObject } from 'typebox';
import type { ErrorCode } from '../foundation/errors.ts';
import type { CallContext, Method, Permission } from './operation.ts';

export interface StreamDeclaration {
  /** camelCase; the `operationId` of the OpenAPI document. */
  readonly name: string;
  readonly summary: string;
  /** `ANY`: every method but CONNECT. */
  readonly methods: readonly (Method | 'HEAD')[] | 'ANY';
  /** OpenAPI form; `{name*}` at the end takes the rest of the path, slashes and all. */
  readonly path: string;
  readonly params: TObject;
  readonly query: TObject;
  /** Media type that a write must carry; left out: any, or none. */
  readonly accepts?: string;
  /** Media type of the answer. */
  readonly produces: string;
  /** Status of success; 200 where it is left out. */
  readonly status?: number;
  readonly permission: Permission;
  readonly errors: readonly ErrorCode[];
  readonly tag: string;
}

/** One request of a stream, after the gate. */
export interface Exchange {
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
 * A stream with its handler. An error thrown before the head of the answer is sent becomes an error
 * answer; afterwards the connection is cut, so that nobody takes half an answer for a whole one.
 */
export interface BoundStream {
  readonly declaration: StreamDeclaration;
  handle(exchange: Exchange): void | Promise<void>;
}
