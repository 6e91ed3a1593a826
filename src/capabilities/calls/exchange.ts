/** One request over HTTP/1.1 and the head of its answer: towards a remote daemon, and towards a bound service. */

import { type ClientRequest, IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { Socket } from 'node:net';
import type { Duplex, Readable, Writable } from 'node:stream';
import { freeMemory } from '../../foundation/bytes.ts';
import { codeOf } from '../../foundation/errors.ts';
import { flushHead } from '../../foundation/flush-head.ts';
import { resetSocket } from '../../foundation/reset-socket.ts';
import { guard, listen } from '../../foundation/stream-listeners.ts';
import type { LinkStream } from '../../network/links/types.ts';
import { filterHeaders, hasHeader, MAX_HEADERS, MAX_HTTP_HEADER_BYTES, pairs, type RawHeaders } from './headers.ts';
import type { PoolOptions } from './upstream-agents.ts';

/** Interim answers (1xx) that one request may get. */
const MAX_INTERIM_ANSWERS = 16;
/** Statuses below it end no request. */
const MIN_FINAL_STATUS = 200;

/** Bytes in memory, a stream that its owner keeps alive, or nothing. */
export type Body = Uint8Array | Readable | null;

export interface HttpExchange {
  readonly options: PoolOptions;
  /** Over TLS. */
  readonly secure?: boolean;
  /** Complete, framing and `Host` included. */
  readonly headers: string[];
  /** Headers that the response may have; `MAX_HEADERS` if left out. */
  readonly maxHeaders?: number;
  readonly body: Body;
  /** Trailers of the body that may go on. */
  readonly trailers?: (raw: RawHeaders) => string[];
  readonly signal?: AbortSignal | undefined;
  /** Sees the request before it is sent. */
  readonly watch?: (request: ClientRequest) => void;
}

/** `socket` is set where the other side switched protocols; `head` is what already came on it. */
export interface HttpAnswer {
  readonly message: IncomingMessage;
  readonly switched: { readonly socket: Duplex; readonly head: Buffer } | null;
}

/** Why there was no answer. */
export class ExchangeFailure extends Error {
  /** The request went over a connection that had served another before. */
  readonly reused: boolean;

  constructor(cause: unknown, reused: boolean) {
    super('there was no answer', { cause });
    this.reused = reused;
  }

  /** What went wrong was the answer, not the connection. */
  get malformed(): boolean {
    const { cause } = this;
    return cause instanceof MalformedAnswer || codeOf(cause).startsWith('HPE_');
  }

  /** What is wrong with the response, if it is malformed. */
  get problem(): ResponseProblem {
    if (this.cause instanceof MalformedAnswer) return this.cause.problem;
    return codeOf(this.cause) === 'HPE_HEADER_OVERFLOW' ? 'head_too_large' : 'malformed';
  }
}

/** What is wrong with a response, in a word that travels. */
export type ResponseProblem = 'too_many_headers' | 'head_too_large' | 'malformed';

class MalformedAnswer extends Error {
  readonly problem: ResponseProblem;

  constructor(message: string, problem: ResponseProblem = 'malformed') {
    super(message);
    this.problem = problem;
  }
}

/** A closed socket would look like a clean end. */
export function breakSink(sink: Writable): void {
  if (sink instanceof Socket) resetSocket(sink);
  else sink.destroy();
}

/**
 * Sends what `source` gives into `sink` and ends it, trailers included, at the pace of the slower.
 * A source that breaks off breaks the sink; the source itself is left to its owner.
 * @param written told of each chunk that the sink has written and does not need any more
 * @param broken breaks the sink; it may be called more than once
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
  const goOn = (): void => {
    source.resume();
  };
  sink.on('drain', goOn).once('close', () => {
    source.off('data', take);
    sink.off('drain', goOn);
  });
  // It may be paused: whoever looked into it has put back what came.
  source.on('data', take).resume();
}

function sendBody(request: ClientRequest, { body, trailers }: HttpExchange): void {
  if (body === null) request.end();
  else if (body instanceof Uint8Array) request.end(body);
  else {
    // The head goes out now: the first bytes of the body may take their time.
    flushHead(request);
    const atEnd = (): void => {
      const raw = 'rawTrailers' in body ? body.rawTrailers : null;
      const kept = Array.isArray(raw) ? trailers?.(raw) : undefined;
      if (kept !== undefined && kept.length > 0) request.addTrailers([...pairs(kept)]);
    };
    // Chunks of a message are copies that its parser made for whoever reads it.
    feed(body, request, atEnd, body instanceof IncomingMessage ? freeMemory : undefined);
  }
}

/** A connection as something that may free its chunks. */
function linkOf(stream: Duplex): Duplex & Pick<LinkStream, 'release'> {
  return stream;
}

/** Frees the chunks that a request's connection brings once the HTTP parser, which copies bodies, has seen them. */
function freeChunks(request: ClientRequest): void {
  request.once('socket', (socket: Duplex) => {
    // What came behind the head of a switch is a part of its chunk.
    let switched = false;
    // Both ends of a link within this daemon share their chunks.
    const release = socket instanceof Socket ? freeMemory : (chunk: Buffer) => linkOf(socket).release?.(chunk);
    // Node has added its own listener by now: ours comes behind it, when the parser is done with the chunk.
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

/** Ends a request when a signal aborts. What `signal` of node:http does beside costs a call more than all its headers. */
function endWith(request: ClientRequest, signal: AbortSignal | undefined): void {
  if (signal === undefined) return;
  const abort = (): void => {
    request.destroy(new Error('aborted', { cause: signal.reason }));
  };
  if (signal.aborted) return abort();
  signal.addEventListener('abort', abort, { once: true });
  request.once('close', () => signal.removeEventListener('abort', abort));
}

/** Why a response cannot be passed on; null if it can. */
function problemOf(
  { rawHeaders, statusCode = 0 }: IncomingMessage,
  switches: boolean,
  maxHeaders: number = MAX_HEADERS,
): MalformedAnswer | null {
  if (rawHeaders.length / 2 > maxHeaders)
    return new MalformedAnswer('the response has too many headers', 'too_many_headers');
  // 101 without the headers of a switch comes as an answer, and so does 099: whoever is told would wait for another one.
  return switches || statusCode >= MIN_FINAL_STATUS ? null : new MalformedAnswer('the response has no final status');
}

/** The headers of a request: `Trailer` announces fields behind the last chunk, and Node refuses it without chunks. */
function sentHeaders(headers: string[]): string[] {
  return hasHeader(headers, 'transfer-encoding') ? headers : filterHeaders(headers, (name) => name !== 'trailer');
}

/**
 * Sends a request; its body may still be going out when the answer begins.
 * @throws ExchangeFailure, or the error of node:http for a request that cannot be sent
 */
export function exchange(parts: HttpExchange): Promise<HttpAnswer> {
  return new Promise((resolve, reject) => {
    const send = parts.secure === true ? requestHttps : requestHttp;
    const request = send({
      ...parts.options,
      headers: sentHeaders(parts.headers),
      insecureHTTPParser: false,
      maxHeaderSize: MAX_HTTP_HEADER_BYTES,
    });
    request.maxHeadersCount = 0;
    endWith(request, parts.signal);
    let settled = false;
    // An error is dear to make, and whatever comes behind an answer is for whoever reads that.
    const fail = (why: () => unknown): void => {
      if (settled) return;
      settled = true;
      reject(new ExchangeFailure(why(), request.reusedSocket));
    };
    const answer = (message: IncomingMessage, switched: HttpAnswer['switched']): void => {
      const problem = problemOf(message, switched !== null, parts.maxHeaders);
      if (problem === null) {
        settled = true;
        return resolve({ message, switched });
      }
      (switched?.socket ?? message).destroy();
      fail(() => problem);
    };
    let interim = 0;
    request.on('information', () => {
      if (++interim <= MAX_INTERIM_ANSWERS) return;
      // At once: the answer itself may stand right behind them.
      fail(() => new MalformedAnswer('interim answers without end'));
      request.destroy();
    });
    request.once('response', (message) => answer(message, null));
    request.once('upgrade', (message, socket, head) => answer(message, { socket, head }));
    // Stays on: what fails later reaches whoever reads the answer.
    request.on('error', (error) => fail(() => error));
    request.once('close', () => fail(() => new Error('closed')));
    parts.watch?.(request);
    freeChunks(request);
    sendBody(request, parts);
  });
}
