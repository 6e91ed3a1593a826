/** HTTP/1.1 on link streams: what the servers of calls and of objects have in common. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { Quota, type QuotaShare } from '../../foundation/quota.ts';
import { pairHolder } from './holder.ts';
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

/** Memory for unfinished heads of the requests of one node, bytes. */
export const MAX_HEADS_PER_NODE_BYTES: number = 8 * 1024 * 1024;
/** The same for the strangers of one IPv4 address or IPv6 /64, and of one IPv4 /24 or IPv6 /48. */
export const MAX_HEADS_PER_SOURCE_BYTES: number = 16 * 1024 * 1024;
/** The same for all nodes. */
export const MAX_HEADS_BYTES: number = 48 * 1024 * 1024;
/** Of these, what only callers let in by name may use. */
export const RESERVED_HEADS_BYTES: number = 16 * 1024 * 1024;
/** Memory that a byte of an unfinished head takes in the parser. */
export const HEAD_COPIES = 3;

/** True if the owner of the called agent let a caller in by name. */
export type IsNamed = (link: Pick<LinkStream, 'caller' | 'called'>) => boolean;

export interface LinkHttpOptions {
  /** Largest header block, bytes. */
  readonly maxHeaderBytes: number;
  /** Headers beyond this number are dropped without a word; 0 keeps all. */
  readonly maxHeaderCount: number;
  readonly isNamed: IsNamed;
  /** Takes each request; a link that sends too many at once is cut instead. */
  readonly serve: (request: IncomingMessage, response: ServerResponse) => void;
}

/** A server that never listens: a link is handed to it as its `connection` event. */
export function linkHttpServer({ maxHeaderBytes, maxHeaderCount, isNamed, serve }: LinkHttpOptions): Server {
  const server = createServer({
    insecureHTTPParser: false,
    maxHeaderSize: maxHeaderBytes,
    // Its own time-outs need a listening server and sockets: whoever uses it keeps others.
    headersTimeout: 0,
    requestTimeout: 0,
    keepAliveTimeout: 0,
  });
  server.maxHeadersCount = maxHeaderCount;
  const unanswered = new WeakMap<Duplex, number>();
  const heads = new HeadBytes(isNamed);
  server.on('connection', (link: LinkStream) => heads.watch(link, () => (unanswered.get(link) ?? 0) > 0));
  server.on('upgrade', ({ socket }: { readonly socket: Duplex }) => heads.end(socket));
  // Behind those that look at the chunks.
  freeChunks(server);
  server.on('request', (request, response) => {
    const { socket } = request;
    heads.done(socket);
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

/** Counts the bytes of heads that have begun and not ended. */
class HeadBytes {
  readonly #isNamed: IsNamed;
  readonly #quota = new Quota(
    {
      perNode: MAX_HEADS_PER_NODE_BYTES,
      perSource: MAX_HEADS_PER_SOURCE_BYTES,
      perNetwork: MAX_HEADS_PER_SOURCE_BYTES,
      total: MAX_HEADS_BYTES,
      reserved: RESERVED_HEADS_BYTES,
    },
    { ownYields: true },
  );
  readonly #shares = new WeakMap<Duplex, QuotaShare>();
  readonly #switched = new WeakSet<Duplex>();

  constructor(isNamed: IsNamed) {
    this.#isNamed = isNamed;
  }

  /** @param isServed whether bytes that come belong to a request whose head is whole */
  watch(link: LinkStream, isServed: () => boolean): void {
    // Behind the listener of the parser: what ends a head is not counted.
    const count = (chunk: Buffer): void => {
      if (this.#switched.has(link)) link.off('data', count);
      else if (!isServed()) this.#add(link, HEAD_COPIES * chunk.length);
    };
    link.on('data', count).once('close', () => this.done(link));
  }

  /** No more heads come on a link. */
  end(link: Duplex): void {
    this.done(link);
    this.#switched.add(link);
  }

  /** The head of a link is whole, or the link is gone. */
  done(link: Duplex): void {
    this.#shares.get(link)?.release();
    this.#shares.delete(link);
  }

  #add(link: LinkStream, amount: number): void {
    const share = this.#shares.get(link);
    if (share !== undefined) {
      if (!share.grow(amount)) link.destroy();
      return;
    }
    const onEvict = (): void => void link.destroy();
    const taken = this.#quota.take(pairHolder(link, this.#isNamed(link)), { amount, onEvict });
    if (taken === null) link.destroy();
    else this.#shares.set(link, taken);
  }
}

/** The limits of the links of strangers, and of all, in those of one node. */
const SOURCE_NODES = 1.5;
const NETWORK_NODES = 2;
const ALL_NODES = 5;

/** Counts the links that nodes hold open for requests. */
export class LinkPlaces {
  readonly #isNamed: IsNamed;
  readonly #quota: Quota;
  readonly #shares = new Map<LinkStream, QuotaShare>();
  readonly #watched = new WeakSet<LinkStream>();

  /** @param perNode links of one node */
  constructor(perNode: number, isNamed: IsNamed) {
    this.#isNamed = isNamed;
    this.#quota = new Quota({
      perNode,
      perSource: SOURCE_NODES * perNode,
      perNetwork: NETWORK_NODES * perNode,
      total: ALL_NODES * perNode,
      reserved: perNode,
    });
  }

  /** Counts a link until it closes or leaves; false if there is no room for it. */
  enter(link: LinkStream): boolean {
    if (this.#shares.has(link)) return true;
    const onEvict = (): void => {
      this.#shares.delete(link);
      link.destroy();
    };
    const share = this.#quota.take(pairHolder(link, this.#isNamed(link)), { onEvict });
    if (share === null) return false;
    this.#shares.set(link, share);
    if (!this.#watched.has(link)) link.once('close', () => this.leave(link));
    this.#watched.add(link);
    return true;
  }

  /** Something else counts the link from now on. */
  leave(link: LinkStream): void {
    this.#shares.get(link)?.release();
    this.#shares.delete(link);
  }
}
