/** What stands behind the port of a shared MCP server: a server over stdio, or one that has an address. */
import type { IncomingMessage, ServerResponse } from 'node:http';

/** A request whose caller is proven. */
export interface SharedRequest {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** AID. */
  readonly caller: string;
  /** Aborts when the caller goes away. */
  readonly signal: AbortSignal;
}

export interface Backend {
  serve(shared: SharedRequest): Promise<void>;
  /** Ends what it runs; settles when all of it is gone. */
  close(): Promise<void>;
}
