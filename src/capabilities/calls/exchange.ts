/** One HTTP/1.1 request and the head of its response, to a remote daemon or to a bound service. */
import { type ClientRequest, IncomingMessage, type RequestOptions, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { Socket } from 'node:net';
import type { Duplex, Readable, Writable } from 'node:stream';
import { freeMemory } from '../../foundation/bytes.ts';
import { codeOf } from '../../foundation/errors.ts';
import { flushHead, resetSocket } from '../../foundation/sockets.ts';
import { guard, listen } from '../../foundation/stream-listeners.ts';
import type { LinkStream } from '../../network/links/types.ts';
import { filterHeaders, headerOf, MAX_HEADERS, MAX_HTTP_HEADER_BYTES, pairs, type RawHeaders } from './headers.ts';

/** Interim responses (1xx) that one request may receive. */
const MAX_INTERIM_RESPONSES = 16;
/** The interim response that names resources (RFC 8297). */
const EARLY_HINTS = 103;
/** Lower status codes are interim. */
const MIN_FINAL_STATUS = 200;

/** Bytes, a stream that its owner destroys, or no body. */
export type Body = Uint8Array | Readable | null;

export interface HttpExchange {
  readonly options: RequestOptions;
  /** Use TLS. */
  readonly secure?: boolean;
  /** All headers, including framing and `Host`. */
  readonly headers: string[];
  /** Headers that the response may have. Default: `MAX_HEADERS`. */
  readonly maxHeaders?: number;
  readonly body: Body;
  /** Selects the trailers to pass on. */
  readonly trailers?: (raw: RawHeaders) => string[];
  readonly signal?: AbortSignal | undefined;
  /** Closes the connection after a response that begins before the end of the request. */
  readonly closesEarly?: boolean;
  /** Receives the headers of early hints (103). */
  readonly hinted?: ((headers: RawHeaders) => void) | undefined;
  /** Receives the request before it is sent. */
  readonly watch?: (request: ClientRequest) => void;
}

/** `socket` is set if the other side switched protocols. `head` holds the bytes that it already sent. */
export interface HttpResponse {
  readonly message: IncomingMessage;
  readonly switched: { readonly socket: Duplex; readonly head: Buffer } | null;
}

/** The request got no valid response. */
export class ExchangeFailure extends Error {
  /** The request used a connection that had served another request before. */
  readonly reused: boolean;

  constructor(cause: unknown, reused: boolean) {
    super('no response', { cause });
    this.reused = reused;
  }

  /** The response was malformed; the connection did not fail. */
  get malformed(): boolean {
    const { cause } = this;
    return cause instanceof MalformedResponse || codeOf(cause).startsWith('HPE_');
  }

  /** The problem of a malformed response. */
  get problem(): ResponseProblem {
    if (this.cause instanceof MalformedResponse) return this.cause.problem;
    return codeOf(this.cause) === 'HPE_HEADER_OVERFLOW' ? 'head_too_large' : 'malformed';
  }
}

/** The problem of a response, as a word of the protocol. */
export type ResponseProblem = 'too_many_headers' | 'head_too_large' | 'malformed' | 'program_failed';

class MalformedResponse extends Error {
  readonly problem: ResponseProblem;

  constructor(message: string, problem: ResponseProblem = 'malformed') {
    super(message);
    this.problem = problem;
  }
}

/** Closing the socket would look like a clean end. */
export function breakSink(sink: Writable): void {
  if (sink instanceof Socket) resetSocket(sink);
  else sink.destroy();
}

/**
 * Copies `source` to `sink` with backpressure and ends the sink, trailers included. If the source fails, the sink is
 * broken. The owner destroys the source.
 * @param written called for each chunk after the sink has written it
 * @param broken breaks the sink; may be called more than once
 */
export function feed(
  source: Readable,
  sink: Writable,
  atEnd: () => void,
  written?: (chunk: Buffer) => void,
  broken: () => void = () => breakSink(sink),
): void {
  const ended = (): void => {
    atEnd();
    sink.end();
  };
  const closed = (): void => {
    if (!source.readableEnded) broken();
  };
  guard(source);
  guard(sink);
  if (source.readableEnded) return ended();
  if (source.destroyed) return broken();
  const stop = listen(source, { end: ended, error: broken, close: closed });
  sink.once('close', stop);
  if (written === undefined) {
    source.pipe(sink, { end: false });
    return;
  }
  const take = (chunk: Buffer): void => {
    const done = (error?: Error | null): void => {
      if (!error) written(chunk);
    };
    if (!sink.write(chunk, done)) source.pause();
  };
  const resume = (): void => {
    source.resume();
  };
  sink.on('drain', resume).once('close', () => {
    source.off('data', take);
    sink.off('drain', resume);
  });
  // The source may be paused, with its first bytes read and pushed back.
  source.on('data', take).resume();
}

function sendBody(request: ClientRequest, { body, trailers }: HttpExchange): void {
  if (body === null) request.end();
  else if (body instanceof Uint8Array) request.end(body);
  else {
    // Send the head now, because the body may be slow.
    flushHead(request);
    const atEnd = (): void => {
      const raw = 'rawTrailers' in body ? body.rawTrailers : null;
      const kept = Array.isArray(raw) ? trailers?.(raw) : undefined;
      if (kept !== undefined && kept.length > 0) request.addTrailers([...pairs(kept)]);
    };
    // Chunks of an incoming message are copies made by its parser.
    feed(body, request, atEnd, body instanceof IncomingMessage ? freeMemory : undefined);
  }
}

/** Bodies up to this length are left to the garbage collector, bytes. */
const LONG_BODY_BYTES = 64 * 1024;

/** True if a body may be long. The memory of its chunks is freed as soon as they are passed on. */
export function isLong({ headers }: IncomingMessage): boolean {
  return !(Number(headers['content-length']) <= LONG_BODY_BYTES);
}

/** Frees the chunks of the connection of a response. Node's listener runs first, and its HTTP parser copies bodies. */
function freeChunks(message: IncomingMessage): void {
  const socket: Duplex & Partial<Pick<LinkStream, 'release'>> = message.socket;
  // Both ends of a link inside this daemon share their chunks.
  const free = socket instanceof Socket ? freeMemory : (chunk: Buffer) => socket.release?.(chunk);
  socket.on('data', free);
  message.once('close', () => socket.off('data', free));
}

/** The reason why a response cannot be passed on, or null. */
function findProblem(
  { rawHeaders, statusCode = 0 }: IncomingMessage,
  switches: boolean,
  maxHeaders: number = MAX_HEADERS,
): MalformedResponse | null {
  if (rawHeaders.length / 2 > maxHeaders)
    return new MalformedResponse('the response has too many headers', 'too_many_headers');
  // Node delivers a 101 without upgrade headers, or a status such as 099, as a final response. The caller would wait
  // for another one.
  return switches || statusCode >= MIN_FINAL_STATUS ? null : new MalformedResponse('the response has no final status');
}

/**
 * Sends a request. Its body may still be streaming when the response arrives.
 * @throws ExchangeFailure, or the error of node:http for an invalid request
 */
export async function exchange(parts: HttpExchange): Promise<HttpResponse> {
  const { headers, signal, maxHeaders, watch, hinted } = parts;
  // Node rejects `Trailer` on a request without chunked encoding.
  const hasTrailer = headerOf(headers, 'trailer') === undefined || headerOf(headers, 'transfer-encoding') !== undefined;
  const request = (parts.secure === true ? requestHttps : requestHttp)({
    ...parts.options,
    headers: hasTrailer ? headers : filterHeaders(headers, (name) => name !== 'trailer'),
    insecureHTTPParser: false,
    maxHeaderSize: MAX_HTTP_HEADER_BYTES,
  });
  request.maxHeadersCount = 0;
  const { promise, resolve, reject } = Promise.withResolvers<HttpResponse>();
  let settled = false;
  // After the response has begun, its reader gets all errors.
  const fail = (cause: unknown): void => {
    if (settled) return;
    settled = true;
    reject(new ExchangeFailure(cause, request.reusedSocket));
  };
  const answer = (message: IncomingMessage, socket?: Duplex, head: Buffer = Buffer.alloc(0)): void => {
    const problem = findProblem(message, socket !== undefined, maxHeaders);
    if (problem !== null) {
      (socket ?? message).destroy();
      return fail(problem);
    }
    settled = true;
    if (parts.closesEarly === true && !request.writableFinished) request.shouldKeepAlive = false;
    // The first bytes after a protocol switch share memory with the chunk that carried the head.
    if (socket === undefined && isLong(message)) freeChunks(message);
    resolve({ message, switched: socket === undefined ? null : { socket, head } });
  };
  // The `signal` option of node:http would cost a call more than all its headers.
  const abort = (): void => void request.destroy(new Error('aborted', { cause: signal?.reason }));
  let interim = 0;
  request.on('information', ({ statusCode, rawHeaders }) => {
    if (++interim <= MAX_INTERIM_RESPONSES) {
      if (statusCode === EARLY_HINTS) hinted?.(rawHeaders);
      return;
    }
    // Fail now: the final response may be delivered before the error of `destroy`.
    fail(new MalformedResponse('too many interim responses'));
    request.destroy();
  });
  request.once('response', answer).once('upgrade', answer);
  // This listener stays. Later errors reach the reader of the response.
  request.on('error', fail);
  request.once('close', () => {
    signal?.removeEventListener('abort', abort);
    // Creating an error is expensive.
    if (!settled) fail(new Error('closed'));
  });
  if (signal?.aborted === true) abort();
  else signal?.addEventListener('abort', abort, { once: true });
  watch?.(request);
  sendBody(request, parts);
  return await promise;
}
