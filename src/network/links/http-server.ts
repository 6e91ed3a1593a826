/** HTTP/1.1 on link streams: what the servers of calls and of objects have in common. */
import { createServer, type Server } from 'node:http';
import type { LinkStream } from './types.ts';

export interface LinkHttpOptions {
  /** Largest header block, bytes. */
  readonly maxHeaderBytes: number;
  /** Headers beyond this number are dropped without a word; 0 keeps all. */
  readonly maxHeaderCount: number;
}

/** A server that never listens: a link is handed to it as its `connection` event. */
export function linkHttpServer({ maxHeaderBytes, maxHeaderCount }: LinkHttpOptions): Server {
  const server = createServer({
    insecureHTTPParser: false,
    maxHeaderSize: maxHeaderBytes,
    // Its own time-outs need a listening server and sockets: whoever uses it keeps others.
    headersTimeout: 0,
    requestTimeout: 0,
    keepAliveTimeout: 0,
  });
  server.maxHeadersCount = maxHeaderCount;
  return server;
}

/** Counts the streams that each node holds open; this node is one of them. */
export class StreamsPerNode {
  readonly #limit: number;
  readonly #open = new Map<string, number>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Counts a stream until it closes; false where its node holds too many already. */
  enter(link: LinkStream): boolean {
    const node = link.nodeKey === null ? '' : Buffer.from(link.nodeKey).toString('hex');
    const open = this.#open.get(node) ?? 0;
    if (open >= this.#limit) return false;
    this.#open.set(node, open + 1);
    link.once('close', () => this.#leave(node));
    return true;
  }

  #leave(node: string): void {
    const left = (this.#open.get(node) ?? 1) - 1;
    if (left === 0) this.#open.delete(node);
    else this.#open.set(node, left);
  }
}
