/** One HTTP/1.1 request and the head of its response, to a remote daemon or to a bound service. */
import { type ClientRequest, IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { Socket } from 'node:net';
import type { Duplex, Readable, Writable } from 'node:stream';
import { freeMemory } from '../../foundation/bytes.ts';
import { codeOf } from '../../foundation/errors.ts';
import { flushHead, resetSocket } from '../../foundation/sockets.ts';
import { guard, listen } from '../../foundation/stream-listeners.ts';
import type { LinkStream } from '../../network/links/types.ts';
import { filterHeaders, hasHeader, MAX_HEADERS, MAX_HTTP_HEADER_BYTES, pairs, type RawHeaders } from './headers.ts';
import type { PoolOptions } from './upstream-agents.ts';

/** Interim responses (1xx) that one request may receive. */
const MAX_INTERIM_RESPONSES = 16;
/** Lower status codes are interim. */
const MIN_FINAL_STATUS = 200;

/** Bytes, a stream that its owner destroys, or no body. */
export type Body = Uint8Array | Readable | null;

export interface HttpExchange {
  readonly options: PoolOptions;
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
    sink.once('close', () => source.unpipe(sink));
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

/** The connection as an object that may free its chunks. */
function asLink(stream: Duplex): Duplex & Pick<LinkStream, 'release'> {
  return stream;
}

/** Frees the chunks of a request's connection after the HTTP parser, which copies bodies, has processed them. */
function freeChunks(request: ClientRequest): void {
  request.once('socket', (socket: Duplex) => {
    // The first bytes after a protocol switch share memory with the chunk that carried the head.
    let switched = false;
    // Both ends of a link inside this daemon share their chunks.
    const release = socket instanceof Socket ? freeMemory : (chunk: Buffer) => asLink(socket).release?.(chunk);
    // Node's own listener is attached by now. Ours runs after it, when the parser has processed the chunk.
    const free = (chunk: Buffer): void => {
      if (!switched) release(chunk);
    };
    socket.on('data', free);
    request.once('upgrade', () => {
      switched = true;
    });
    request.once('close', () => socket.off('data', free));
  });
}

/**
 * Destroys a request when a signal aborts. The `signal` option of node:http would cost a call more than all its
 * headers.
 */
function abortWith(request: ClientRequest, signal: AbortSignal | undefined): void {
  if (signal === undefined) return;
  const abort = (): void => {
    request.destroy(new Error('aborted', { cause: signal.reason }));
  };
  if (signal.aborted) return abort();
  signal.addEventListener('abort', abort, { once: true });
  request.once('close', () => signal.removeEventListener('abort', abort));
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

/** Headers for a request. Node rejects `Trailer` on a request without chunked encoding. */
function sentHeaders(headers: string[]): string[] {
  return hasHeader(headers, 'transfer-encoding') ? headers : filterHeaders(headers, (name) => name !== 'trailer');
}

/**
 * Sends a request. Its body may still be streaming when the response arrives.
 * @throws ExchangeFailure, or the error of node:http for an invalid request
 */
export function exchange(parts: HttpExchange): Promise<HttpResponse> {
  return new Promise((resolve, reject) => {
    const send = parts.secure === true ? requestHttps : requestHttp;
    const request = send({
      ...parts.options,
      headers: sentHeaders(parts.headers),
      insecureHTTPParser: false,
      maxHeaderSize: MAX_HTTP_HEADER_BYTES,
    });
    request.maxHeadersCount = 0;
    abortWith(request, parts.signal);
    let settled = false;
    // Creating an error is expensive. After the response has begun, its reader gets all errors.
    const fail = (why: () => unknown): void => {
      if (settled) return;
      settled = true;
      reject(new ExchangeFailure(why(), request.reusedSocket));
    };
    const answer = (message: IncomingMessage, switched: HttpResponse['switched']): void => {
      const problem = findProblem(message, switched !== null, parts.maxHeaders);
      if (problem === null) {
        settled = true;
        return resolve({ message, switched });
      }
      (switched?.socket ?? message).destroy();
      fail(() => problem);
    };
    let interim = 0;
    request.on('information', () => {
      if (++interim <= MAX_INTERIM_RESPONSES) return;
      // Fail now: the final response may be delivered before the error of `destroy`.
      fail(() => new MalformedResponse('too many interim responses'));
      request.destroy();
    });
    request.once('response', (message) => answer(message, null));
    request.once('upgrade', (message, socket, head) => answer(message, { socket, head }));
    // This listener stays. Later errors reach the reader of the response.
    request.on('error', (error) => fail(() => error));
    request.once('close', () => fail(() => new Error('closed')));
    parts.watch?.(request);
    freeChunks(request);
    sendBody(request, parts);
  });
}
