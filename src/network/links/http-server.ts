/** HTTP/1.1 on link streams, for the servers of calls and of objects. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { Quota, type QuotaShare } from '../../foundation/quota.ts';
import { pairHolder } from './holder.ts';
import type { LinkPair, LinkStream } from './types.ts';

/**
 * Maximum number of unfinished requests of one link: one in service, the rest pending. svcd sends its next request
 * after the response, whose last bytes may still be in transit. A link with more requests is closed.
 */
export const MAX_UNANSWERED_PER_LINK = 4;

/** Time from a response to the complete head of the next request, milliseconds. Callers close an idle link earlier. */
export const NEXT_REQUEST_MS = 75_000;

/** Reports an error. It is removed from each response of a service, so only a daemon can set it. */
export const ERROR_HEADER = 'svc-error';

/** Memory for unfinished heads of the requests of one node, bytes. */
export const MAX_HEADS_PER_NODE_BYTES: number = 8 * 1024 * 1024;
/** The same for strangers at one IPv4 address or IPv6 /64, and in one IPv4 /24 or IPv6 /48. */
export const MAX_HEADS_PER_SOURCE_BYTES: number = 16 * 1024 * 1024;
/** The same for all nodes. */
export const MAX_HEADS_BYTES: number = 48 * 1024 * 1024;
/** Of these, bytes for named callers only. */
export const RESERVED_HEADS_BYTES: number = 16 * 1024 * 1024;
/** Memory of one byte of an unfinished head in the parser, bytes. */
export const HEAD_COPIES = 3;

/** Listeners for one event of a link. */
const LINK_LISTENERS = 20;

/** True if the owner of the called agent named the caller. */
export type IsNamed = (link: LinkPair) => boolean;

export interface LinkHttpOptions {
  /** Largest header block, bytes. */
  readonly maxHeaderBytes: number;
  /** More headers than this are dropped silently. With 0, all are used. */
  readonly maxHeaderCount: number;
  readonly isNamed: IsNamed;
  /** Serves a request. The next request of its link follows the response. */
  readonly serve: (request: IncomingMessage, response: ServerResponse) => void;
}

/** A server that never listens. It receives links through its `connection` event. */
export function linkHttpServer({ maxHeaderBytes, maxHeaderCount, isNamed, serve }: LinkHttpOptions): Server {
  const server = createServer({
    insecureHTTPParser: false,
    maxHeaderSize: maxHeaderBytes,
    // Its own timeouts need a listening server and sockets. The callers of this function have other timeouts.
    headersTimeout: 0,
    requestTimeout: 0,
    keepAliveTimeout: 0,
  });
  server.maxHeadersCount = maxHeaderCount;
  const links = new WeakMap<Duplex, LinkRequests>();
  const heads = new HeadBytes(isNamed);
  // Before the server's own listener: several owners of a link wait for its end, which exceeds Node's default.
  server.prependListener('connection', (link: LinkStream) => link.setMaxListeners(LINK_LISTENERS));
  server.on('connection', (link: LinkStream) => links.set(link, new LinkRequests(link, heads, maxHeaderBytes, serve)));
  server.on('upgrade', ({ socket }: { readonly socket: Duplex }) => links.get(socket)?.switched());
  server.on('request', (request, response) => links.get(request.socket)?.add(request, response));
  return server;
}

/**
 * The requests of one link, served one by one. A response to a pending request would be buffered without a quota.
 * Pending requests pause the link, and all its received and buffered bytes count as an unfinished head.
 */
class LinkRequests {
  readonly #link: LinkStream;
  readonly #heads: HeadBytes;
  readonly #maxHeaderBytes: number;
  readonly #serve: LinkHttpOptions['serve'];
  readonly #waiting: (readonly [IncomingMessage, ServerResponse])[] = [];
  #isServing = false;
  #hasSwitched = false;
  /** The newest request, and the newest request at the end of the previous chunk. */
  #newest: IncomingMessage | null = null;
  #before: { readonly request: IncomingMessage | null; readonly isComplete: boolean } = {
    request: null,
    isComplete: true,
  };
  /** Bytes of the newest message, its head and its body. */
  #received = 0;
  /** Bytes of pending requests. */
  #waitingBytes = 0;
  /** Bytes of the incomplete head. */
  #headBytes = 0;
  /** Bytes in the quota. */
  #counted = 0;

  constructor(link: LinkStream, heads: HeadBytes, maxHeaderBytes: number, serve: LinkHttpOptions['serve']) {
    this.#link = link;
    this.#heads = heads;
    this.#maxHeaderBytes = maxHeaderBytes;
    this.#serve = serve;
    // This listener follows the parser's.
    link.on('data', this.#parsed).once('close', () => {
      this.#waiting.length = 0;
      heads.set(link, 0);
    });
  }

  /** The parser has read the head of a request. */
  add(request: IncomingMessage, response: ServerResponse): void {
    const link = this.#link;
    if (link.destroyed) return;
    this.#newest = request;
    if (!this.#isServing) return this.#start(request, response);
    this.#waiting.push([request, response]);
    if (this.#waiting.length >= MAX_UNANSWERED_PER_LINK) link.destroy();
  }

  /** The link changes to another protocol, so pending requests would get no response. */
  switched(): void {
    this.#hasSwitched = true;
    this.#link.off('data', this.#parsed);
    this.#heads.set(this.#link, 0);
    if (this.#waiting.length > 0) this.#link.destroy();
  }

  #start(request: IncomingMessage, response: ServerResponse): void {
    this.#isServing = true;
    response.once('close', () => this.#next());
    this.#serve(request, response);
  }

  #next(): void {
    this.#isServing = false;
    const next = this.#link.destroyed ? undefined : this.#waiting.shift();
    if (next === undefined) return;
    if (this.#waiting.length === 0) {
      this.#waitingBytes = 0;
      this.#account();
      this.#link.resume();
    }
    this.#start(...next);
  }

  /** Counts a chunk after the parser has read it, and frees it: the parser copies bodies. */
  readonly #parsed = (chunk: Buffer): void => {
    const { request: before, isComplete: wasComplete } = this.#before;
    const newest = this.#newest;
    this.#before = { request: newest, isComplete: newest?.complete !== false };
    if (newest !== before) this.#received = wasComplete ? this.#headBytes : 0;
    this.#received += chunk.length;
    if (newest === before && wasComplete) this.#headBytes += chunk.length;
    else this.#headBytes = this.#surplus(newest, chunk);
    if (this.#waiting.length > 0) {
      this.#waitingBytes += chunk.length;
      // The parser resumes the link after each message, so this follows it.
      this.#link.pause();
    }
    this.#account();
    // The data after the head of an upgrade is a part of its chunk.
    if (!this.#hasSwitched) this.#link.release?.(chunk);
  };

  /** Bytes after the end of the newest request in its last chunk; 0 for an incomplete request. */
  #surplus(newest: IncomingMessage | null, chunk: Buffer): number {
    if (newest === null || !newest.complete || chunk.subarray(-BLANK_LINE.length).equals(BLANK_LINE)) return 0;
    const length = newest.headers['content-length'];
    // The size of a chunked body on the wire is unknown.
    const most = length === undefined ? chunk.length : this.#received - headLength(newest) - Number(length);
    return Math.max(0, Math.min(most, this.#maxHeaderBytes));
  }

  #account(): void {
    if (this.#hasSwitched) return;
    const buffered = this.#waiting.length > 0 ? this.#link.readableHighWaterMark : 0;
    const bytes = HEAD_COPIES * (this.#waitingBytes + this.#headBytes) + buffered;
    if (bytes !== this.#counted) this.#heads.set(this.#link, bytes);
    this.#counted = bytes;
  }
}

/** A chunk with this end has no unfinished head after it, unless it ends within a body. */
const BLANK_LINE = Buffer.from('\r\n\r\n');

/** The size of a request's head as svcd writes it. Other clients may use more bytes for spaces. */
function headLength({ method = '', url = '', rawHeaders }: IncomingMessage): number {
  const line = `${method} ${url} HTTP/1.1\r\n`.length;
  return rawHeaders.reduce((sum, text) => sum + text.length + 2, line + 2);
}

/** The quota of the bytes of unfinished heads. */
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

  constructor(isNamed: IsNamed) {
    this.#isNamed = isNamed;
  }

  /** Sets the bytes of a link. Closes the link without room. */
  set(link: LinkStream, amount: number): void {
    const known = this.#shares.get(link);
    if (amount === 0) {
      known?.release();
      // Later bytes count for the source and the permission of that time.
      this.#shares.delete(link);
      return;
    }
    if (link.destroyed) return;
    const share = known ?? this.#quota.share(pairHolder(link, this.#isNamed(link)), () => link.destroy());
    this.#shares.set(link, share);
    if (!share.set(amount)) link.destroy();
  }
}

/** Limits for the links of strangers and of all nodes, as multiples of the limit for one node. */
const SOURCE_NODES = 1.5;
const NETWORK_NODES = 2;
const ALL_NODES = 5;

/** Counts the links that nodes keep open for requests. */
export class LinkPlaces {
  readonly #isNamed: IsNamed;
  readonly #quota: Quota;
  readonly #shares = new Map<LinkStream, QuotaShare>();
  readonly #watched = new WeakSet<LinkStream>();

  /** @param perNode maximum number of links of one node */
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

  /** Counts a link until it closes or leaves. False without room. */
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

  /** Another quota counts the link after this. */
  leave(link: LinkStream): void {
    this.#shares.get(link)?.release();
    this.#shares.delete(link);
  }
}
