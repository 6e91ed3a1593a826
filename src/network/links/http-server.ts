/** HTTP/1.1 on link streams: what the servers of calls and of objects have in common. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { Tally } from '../../foundation/tally.ts';
import type { LinkStream } from './types.ts';

/**
 * Requests of one link that are not answered to their end. A daemon of ours waits for each answer, the
 * last bytes of which may still be counted; others would make us keep thousands of answers for a few bytes.
 */
export const MAX_UNANSWERED_PER_LINK = 4;

/** How long after an answer the next request must have arrived, its head as a whole, milliseconds: longer than callers keep an idle link. */
export const NEXT_REQUEST_MS = 75_000;

/** Says what went wrong. Taken out of every answer of a service, so only a daemon can have set it. */
export const ERROR_HEADER = 'svc-error';

export interface LinkHttpOptions {
  /** Largest header block, bytes. */
  readonly maxHeaderBytes: number;
  /** Headers beyond this number are dropped without a word; 0 keeps all. */
  readonly maxHeaderCount: number;
  /** Takes each request; a link that sends too many at once is cut instead. */
  readonly serve: (request: IncomingMessage, response: ServerResponse) => void;
}

/** A server that never listens: a link is handed to it as its `connection` event. */
export function linkHttpServer({ maxHeaderBytes, maxHeaderCount, serve }: LinkHttpOptions): Server {
  const server = createServer({
    insecureHTTPParser: false,
    maxHeaderSize: maxHeaderBytes,
    // Its own time-outs need a listening server and sockets: whoever uses it keeps others.
    headersTimeout: 0,
    requestTimeout: 0,
    keepAliveTimeout: 0,
  });
  server.maxHeadersCount = maxHeaderCount;
  freeChunks(server);
  const unanswered = new WeakMap<Duplex, number>();
  server.on('request', (request, response) => {
    const { socket } = request;
    const open = unanswered.get(socket) ?? 0;
    if (socket.destroyed || open >= MAX_UNANSWERED_PER_LINK) return void socket.destroy();
    unanswered.set(socket, open + 1);
    response.once('close', () => unanswered.set(socket, (unanswered.get(socket) ?? 1) - 1));
    serve(request, response);
  });
  return server;
}

/** Frees the chunks that links bring once the HTTP parser, which copies bodies, has seen them. */
function freeChunks(server: Server): void {
  // What came behind the head of a switch is a part of its chunk.
  const switched = new WeakSet<Duplex>();
  server.on('upgrade', ({ socket }) => void switched.add(socket));
  server.on('connection', (link: Duplex & Pick<LinkStream, 'release'>) => {
    const free = (chunk: Buffer): void => {
      if (switched.has(link)) link.off('data', free);
      else link.release?.(chunk);
    };
    // The server has its own listener by now: ours comes behind it, when the parser is done with the chunk.
    if (link.release !== undefined) link.on('data', free);
  });
}

/** Counts the streams that each node holds open; this node is one of them. */
export class StreamsPerNode {
  readonly #limit: number;
  readonly #open = new Tally();
  readonly #counted = new Set<LinkStream>();
  readonly #watched = new WeakSet<LinkStream>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Counts a stream until it closes or leaves; false where its node holds too many already. */
  enter(link: LinkStream): boolean {
    if (this.#counted.has(link)) return true;
    const node = nodeOf(link);
    if (this.#open.of(node) >= this.#limit) return false;
    this.#open.add(node);
    this.#counted.add(link);
    if (!this.#watched.has(link)) link.once('close', () => this.leave(link));
    this.#watched.add(link);
    return true;
  }

  /** Counts a stream no more that something else counts. */
  leave(link: LinkStream): void {
    if (this.#counted.delete(link)) this.#open.add(nodeOf(link), -1);
  }
}

function nodeOf({ nodeKey }: LinkStream): string {
  return nodeKey === null ? '' : Buffer.from(nodeKey).toString('hex');
}
