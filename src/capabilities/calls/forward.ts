/** The called side of one request: forwards it to the bound service and returns the response. */

import type { IncomingMessage } from 'node:http';
import type { Readable, Writable } from 'node:stream';
import type { Clock, Timer } from '../../foundation/clock.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { faultOf, serviceFailure } from '../../foundation/service-failure.ts';
import { flushHead } from '../../foundation/sockets.ts';
import { SilenceWatch } from '../../foundation/stall.ts';
import type { LinkStream } from '../../network/links/types.ts';
import { badResponse } from './error-response.ts';
import { ExchangeFailure, feed, type HttpResponse, isLong } from './exchange.ts';
import {
  EVIDENCE,
  isEventStream,
  MAX_LINK_HEADERS,
  pairs,
  type RawHeaders,
  reasonPhrase,
  SET_PER_HOP,
  withoutDaemonHeaders,
  withoutReservedHeaders,
  withoutUnusedTrailer,
} from './headers.ts';
import { appendHop } from './hops.ts';
import { BODILESS } from './methods.ts';
import type { LimitedMessage } from './tool-limit.ts';
import { type TracedHop, UNTRACED } from './trace-headers.ts';
import { isOffered } from './upgrades.ts';
import { type BoundService, hostHeaderOf, type Upstreams } from './upstream.ts';

/** A call is aborted after this time without a byte in either direction, in milliseconds. */
export const CALL_STALL_MS = 600_000;

/** If a service breaks off, its head still has this long to reach the caller, in milliseconds from its arrival. */
const HEAD_MS = 250;
/** Longest silence of an event stream (`text/event-stream`), in milliseconds: one day. */
export const EVENT_STREAM_STALL_MS = 24 * 3600 * 1000;

/** A request of HTTP/1.1, or one of HTTP/2 in the same form. */
export type ServedRequest = Readable &
  Pick<IncomingMessage, 'method' | 'url' | 'headers' | 'rawHeaders' | 'rawTrailers'>;

/** The response to it. */
export interface ServedResponse extends Writable {
  readonly req: Pick<IncomingMessage, 'method' | 'httpVersion'>;
  writeHead(status: number, reason: string, headers: string[]): unknown;
  addTrailers(trailers: readonly [string, string][]): void;
}

export interface Forwarding {
  readonly request: ServedRequest;
  /** The stream of the request; null if it carries other requests at the same time. */
  readonly stream: Pick<LinkStream, 'cork' | 'uncork' | 'release'> | null;
  /** Requests of different owners never share a connection to the service. */
  readonly owner: string;
  readonly called: Aid;
  readonly service: BoundService;
  readonly upstreams: Upstreams;
  readonly clock: Clock;
  /** Key of the proofs for this service. */
  readonly callerKey: Uint8Array;
  /** Headers that tell the service who the caller is, with a proof. */
  readonly identity: RawHeaders;
  /** Headers of the verified evidence; empty if the request carries none. */
  readonly evidence: RawHeaders;
  /** The headers of the caller. Default: those of `request`. */
  readonly headers?: RawHeaders;
  /** Changes the headers of the response. */
  readonly accepted?: (headers: RawHeaders) => string[];
  /** Replaces the response; null to pass it on. */
  readonly reshape?: (
    status: number,
    headers: RawHeaders,
    body: IncomingMessage,
  ) => Promise<{ readonly headers: readonly string[]; readonly body: Buffer } | null>;
  /** Receives the header lines of early hints (103). */
  readonly hinted?: (headers: RawHeaders) => void;
  /** Replaces the body and the headers of the request. */
  readonly limited?: LimitedMessage | null;
  readonly trace: TracedHop;
  /** Aborts the call. The caller receives the reason if no response has begun. */
  readonly abort: AbortController;
}

/**
 * Rejects requests that two HTTP parsers could read differently and that no svcd sends.
 * @throws SvcError `protocol_error`
 */
export function checkForm(request: IncomingMessage): void {
  // protocol-calls.md, step 4
  const { url = '', method = '', headers, rawHeaders } = request;
  const encoding = headers['transfer-encoding'];
  const problem =
    request.httpVersion !== '1.1'
      ? 'it is not HTTP/1.1'
      : !url.startsWith('/') && !(url === '*' && method === 'OPTIONS')
        ? 'its target is not a path'
        : rawHeaders.length / 2 > MAX_LINK_HEADERS
          ? 'it has too many headers'
          : encoding !== undefined && encoding.toLowerCase() !== 'chunked'
            ? 'its transfer coding is unknown'
            : null;
  if (problem !== null) throw new SvcError('protocol_error', { message: `The request was rejected: ${problem}.` });
}

/**
 * The headers for the service, without framing headers.
 * @throws SvcError `loop_detected`
 */
function serviceHeaders(forwarding: Forwarding): string[] {
  // protocol-calls.md, step 7
  const { request, service, callerKey, identity, evidence, trace, limited, headers = request.rawHeaders } = forwarding;
  const kept = withoutReservedHeaders(limited?.headers ?? headers, EVIDENCE | SET_PER_HOP);
  const hops = appendHop(callerKey, request);
  trace.request?.next('service');
  const traced = trace === UNTRACED ? kept : trace.headers(kept, trace.request?.stepSpanId);
  return ['Host', hostHeaderOf(service), ...traced, ...identity, ...hops, ...evidence];
}

/** Trailers that a service can trust to come from the caller. */
function callerHeaders(raw: RawHeaders): string[] {
  return withoutReservedHeaders(raw, EVIDENCE);
}

async function sendToService(
  forwarding: Forwarding,
  headers: string[],
  body: ServedRequest | Uint8Array | null,
  switches = false,
): Promise<HttpResponse> {
  const { request, service, upstreams, abort } = forwarding;
  const { method = 'GET', url = '/' } = request;
  try {
    const { owner, called, callerKey, hinted } = forwarding;
    const sent = {
      owner,
      called,
      callerKey,
      hinted,
      method,
      path: url,
      headers,
      body,
      trailers: callerHeaders,
      signal: abort.signal,
      switches,
    };
    return await upstreams.send(service, sent);
  } catch (error) {
    if (abort.signal.reason instanceof SvcError) throw abort.signal.reason;
    if (error instanceof ExchangeFailure && error.malformed) throw badResponse(error.problem, error);
    throw serviceFailure(faultOf(error instanceof ExchangeFailure ? error.cause : error), error);
  }
}

/** The headers that delimit the request body, and whether the request has no body. */
function framing({ method = '', headers }: ServedRequest) {
  const { 'content-length': length, 'transfer-encoding': encoding } = headers;
  const isEmpty = encoding === undefined && (length === undefined || Number(length) === 0);
  if (encoding !== undefined) return { headers: ['Transfer-Encoding', 'chunked'], isEmpty };
  if (length === undefined && BODILESS.has(method)) return { headers: [], isEmpty };
  return { headers: ['Content-Length', length ?? '0'], isEmpty };
}

/** The same for a body that replaces the body of the request. */
function bodyFraming(body: Uint8Array | null) {
  return { headers: body === null ? [] : ['Content-Length', `${body.length}`], isEmpty: body === null };
}

/**
 * Forwards a request and streams the response back. Settles when the response is complete or broken off.
 * @param stall aborts the call after a silence. Event streams have a longer timeout
 * @param asStream called if the response is an event stream; if it throws, its error replaces the response
 * @throws SvcError `inbound_unreachable`, `bad_response`, `loop_detected`, `timeout`, or the abort reason, if no
 *   response has begun
 */
export async function forward(
  forwarding: Forwarding,
  response: ServedResponse,
  stall: SilenceWatch,
  asStream: () => void,
): Promise<void> {
  const { request, clock, abort, limited } = forwarding;
  const body = limited?.body;
  const { headers: framed, isEmpty: empty } = body === undefined ? framing(request) : bodyFraming(body);
  const headers = [...serviceHeaders(forwarding), ...framed];
  let streamStall: SilenceWatch | null = null;
  try {
    if (!empty && body === undefined) request.on('data', () => (streamStall ?? stall).heard());
    const { message, switched } = await sendToService(forwarding, headers, empty ? null : (body ?? request));
    if (switched !== null) {
      switched.socket.destroy();
      throw new SvcError('inbound_unreachable', {
        message: 'The service of the remote agent switched protocols without a request. Its owner must fix it.',
      });
    }
    if (isEventStream(message.headers['content-type'])) {
      try {
        asStream();
      } catch (error) {
        message.destroy();
        throw error;
      }
      streamStall = new SilenceWatch(clock, EVENT_STREAM_STALL_MS, () => abort.abort(new SvcError('timeout')));
    }
    message.on('data', (streamStall ?? stall).heard);
    if (forwarding.reshape !== undefined && (await sendReshaped(message, response, forwarding))) return;
    if (forwarding.trace.request !== null) forwarding.trace.request.status = message.statusCode ?? null;
    await relay(message, response, forwarding);
  } finally {
    streamStall?.stop();
  }
}

/** Sends another response in place of that of the service. False if it is passed on. */
async function sendReshaped(
  message: IncomingMessage,
  response: ServedResponse,
  { reshape, accepted }: Forwarding,
): Promise<boolean> {
  if (reshape === undefined) return false;
  message.pause();
  const { statusCode = 502, rawHeaders } = message;
  const changed = await reshape(statusCode, withoutDaemonHeaders(rawHeaders), message);
  if (changed === null || response.destroyed) return response.destroyed;
  const headers = [...changed.headers];
  response.writeHead(statusCode, reasonPhrase(message), accepted === undefined ? headers : accepted(headers));
  response.end(changed.body);
  await new Promise<void>((resolve) => response.once('close', () => resolve()));
  return true;
}

function relay(message: IncomingMessage, response: ServedResponse, forwarding: Forwarding): Promise<void> {
  // protocol-calls.md, step 9
  const { stream, clock, trace, accepted } = forwarding;
  const { promise, resolve } = Promise.withResolvers<void>();
  message.on('error', () => {});
  response.once('close', () => {
    message.destroy();
    resolve();
  });
  if (response.destroyed) {
    message.destroy();
    return Promise.resolve();
  }
  // Send the first bytes of the body with the head in one write if they are already here. The head does not wait for
  // them.
  stream?.cork();
  setImmediate(() => stream?.uncork());
  const { statusCode = 502 } = message;
  const kept = withoutDaemonHeaders(message.rawHeaders);
  const headers = withoutUnusedTrailer(accepted === undefined ? kept : accepted(kept), response, statusCode);
  response.writeHead(statusCode, reasonPhrase(message), [...headers]);
  flushHead(response);
  const atEnd = (): void => {
    const trailers = withoutDaemonHeaders(message.rawTrailers);
    if (trailers.length > 0) response.addTrailers([...pairs(trailers)]);
    // Before the caller receives the end.
    trace.request?.finish();
  };
  // A reset may overtake the head and discard it.
  const [begun, destroy] = [clock.monotonic(), () => response.destroy()];
  let rest: Timer | null = null;
  const breakOff = (): void => {
    trace.request?.finish(new SvcError('inbound_unreachable'));
    if (clock.monotonic() - begun >= HEAD_MS) destroy();
    else if (rest === null) {
      rest = clock.after(HEAD_MS, destroy);
      response.once('close', () => rest?.cancel());
    }
  };
  const release = isLong(message) ? stream?.release : undefined;
  const written = release === undefined ? undefined : (chunk: Buffer) => stream?.release?.(chunk);
  feed(message, response, atEnd, written, breakOff);
  return promise;
}

/**
 * Asks a service to switch to one of these protocols.
 * @throws SvcError as `forward`
 */
export async function requestUpgrade(forwarding: Forwarding, protocols: readonly string[]): Promise<HttpResponse> {
  const { headers: framed, isEmpty } = framing(forwarding.request);
  const headers = [...serviceHeaders(forwarding), 'Connection', 'Upgrade', 'Upgrade', protocols.join(', '), ...framed];
  const answer = await sendToService(forwarding, headers, isEmpty ? null : forwarding.request, true);
  if (answer.switched === null || isOffered(answer.message.headers.upgrade, protocols)) return answer;
  answer.switched.socket.destroy();
  throw badResponse('malformed');
}
