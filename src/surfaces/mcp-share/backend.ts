/** The server behind the port of a shared MCP server: over stdio, or at a URL. */
import type { IncomingMessage, ServerResponse } from 'node:http';

/** A request with an authenticated caller. */
export interface SharedRequest {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** AID. */
  readonly caller: string;
  /** Aborts when the caller disconnects. */
  readonly signal: AbortSignal;
}

export interface Backend {
  serve(shared: SharedRequest): Promise<void>;
  /** Stops everything that it runs. Settles when it has stopped. */
  close(): Promise<void>;
}
