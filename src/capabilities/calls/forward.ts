/** The called side of one request: on to the bound service, and its answer back. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Clock, type Timer, unixSeconds } from '../../foundation/clock.ts';
import { SvcError } from '../../foundation/errors.ts';
import { SilenceWatch } from '../../foundation/stall.ts';
import type { LinkStream } from '../../network/links/types.ts';
import { callerProof, PROOF_HEADER } from './caller-proof.ts';
import { withoutEvidence } from './evidence/call-evidence.ts';
import { feed, type HttpAnswer } from './exchange.ts';
import {
  filterHeaders,
  identityHeaders,
  isEventStream,
  MAX_HEADERS,
  pairs,
  type RawHeaders,
  REMADE,
  reasonPhrase,
  withoutForgeries,
  withoutOurMarks,
} from './headers.ts';
import { BODILESS } from './methods.ts';
import { type BoundService, hostHeaderOf, reasonOf, type Upstreams } from './upstream.ts';

/** A call on which no byte moved for this long, in either direction, is ended: milliseconds. */
export const CALL_STALL_MS = 600_000;

/** What a service said before it broke off has so long to arrive, milliseconds from the head of its answer. */
const HEAD_MS = 250;
/** A stream of events (`text/event-stream`) may be silent for so long, milliseconds: a day. */
export const EVENT_STREAM_STALL_MS = 24 * 3600 * 1000;

export interface Forwarding {
  readonly request: IncomingMessage;
  readonly link: LinkStream;
  readonly service: BoundService;
  readonly upstreams: Upstreams;
  readonly clock: Clock;
  /** Of the proofs to this service. */
  readonly callerKey: Uint8Array;
  /** Headers of the verified evidence that the request carries; none where it carries none. */
  readonly evidence: RawHeaders;
  /** Ends the call; its reason is told to the caller as long as no answer has begun. */
  readonly abort: AbortController;
}

/**
 * Refuses what two HTTP parsers could read in two ways, and what no daemon of ours sends.
 * @throws SvcError `protocol_error`
 */
export function checkForm(request: IncomingMessage): void {
  const { url = '', method = '', headers, rawHeaders } = request;
  const encoding = headers['transfer-encoding'];
  const problem =
    request.httpVersion !== '1.1'
      ? 'not HTTP/1.1'
      : !url.startsWith('/') && !(url === '*' && method === 'OPTIONS')
        ? 'the target is not a path'
        : rawHeaders.length / 2 > MAX_HEADERS
          ? 'too many headers'
          : encoding !== undefined && encoding.toLowerCase() !== 'chunked'
            ? 'an unknown transfer coding'
            : null;
  if (problem !== null) throw new SvcError('protocol_error', { message: `The request is refused: ${problem}.` });
}

/** The headers that a service receives, without those that delimit the body. */
function serviceHeaders({ request, link, service, clock, callerKey, evidence }: Forwarding): string[] {
  const kept = filterHeaders(ofCaller(request.rawHeaders), (name) => !REMADE.has(name));
  const { caller, called } = link;
  const { method = 'GET', url: target = '/' } = request;
  const proof = callerProof(callerKey, { caller, called, method, target, at: unixSeconds(clock) });
  const identity = [...identityHeaders(caller, called), PROOF_HEADER, proof, ...evidence];
  return ['Host', hostHeaderOf(service), ...kept, ...identity];
}

/** Headers or trailers of a caller as far as a service may believe that they are the caller's. */
function ofCaller(raw: RawHeaders): string[] {
  return withoutEvidence(withoutForgeries(raw));
}

async function ask(forwarding: Forwarding, headers: string[], body: IncomingMessage | null): Promise<HttpAnswer> {
  const { request, service, upstreams, abort } = forwarding;
  const { method = 'GET', url = '/' } = request;
  try {
    const { caller, called } = forwarding.link;
    const { callerKey } = forwarding;
    const sent = {
      caller,
      called,
      callerKey,
      method,
      path: url,
      headers,
      body,
      trailers: ofCaller,
      signal: abort.signal,
    };
    return await upstreams.send(service, sent);
  } catch (error) {
    if (abort.signal.reason instanceof SvcError) throw abort.signal.reason;
    const reason = reasonOf(error);
    throw new SvcError('inbound_unreachable', {
      message: `The bound service is not usable: ${reason}.`,
      details: { reason },
      cause: error,
    });
  }
}

/**
 * Forwards a request and its answer, each as it streams; settles when the answer is through or broken off.
 * @param asStream told where the answer turns out to be a stream of events; what it throws takes the place of the answer
 * @throws SvcError `inbound_unreachable`, `timeout`, or why the call was aborted, as long as no answer has begun
 */
export async function forward(forwarding: Forwarding, response: ServerResponse, asStream: () => void): Promise<void> {
  const { request, clock, abort } = forwarding;
  const { 'content-length': length, 'transfer-encoding': encoding } = request.headers;
  const empty = encoding === undefined && (length === undefined || Number(length) === 0);
  const headers = serviceHeaders(forwarding);
  if (encoding !== undefined) headers.push('Transfer-Encoding', 'chunked');
  else if (length !== undefined) headers.push('Content-Length', length);
  else if (!BODILESS.has(request.method ?? '')) headers.push('Content-Length', '0');
  const silent = (): void => abort.abort(new SvcError('timeout'));
  let stall = new SilenceWatch(clock, CALL_STALL_MS, silent);
  try {
    if (!empty) request.on('data', () => stall.heard());
    const { message, switched } = await ask(forwarding, headers, empty ? null : request);
    if (switched !== null) {
      switched.socket.destroy();
      throw new SvcError('inbound_unreachable', { details: { reason: 'it switched protocols without being asked' } });
    }
    if (isEventStream(message.headers['content-type'])) {
      try {
        asStream();
      } catch (error) {
        message.destroy();
        throw error;
      }
      stall.stop();
      stall = new SilenceWatch(clock, EVENT_STREAM_STALL_MS, silent);
    }
    message.on('data', stall.heard);
    await relay(message, response, forwarding);
  } finally {
    stall.stop();
  }
}

function relay(message: IncomingMessage, response: ServerResponse, { link, clock }: Forwarding): Promise<void> {
  return new Promise((resolve) => {
    message.on('error', () => {});
    response.once('close', () => {
      message.destroy();
      resolve();
    });
    if (response.destroyed) {
      message.destroy();
      return resolve();
    }
    // What has come of the body goes with the head, in one write; but the head waits for none: it may take its time.
    link.cork();
    setImmediate(() => link.uncork());
    response.writeHead(message.statusCode ?? 502, reasonPhrase(message), withoutOurMarks(message.rawHeaders));
    response.flushHeaders();
    const atEnd = (): void => {
      const trailers = withoutOurMarks(message.rawTrailers);
      if (trailers.length > 0) response.addTrailers([...pairs(trailers)]);
    };
    // A reset may overtake the head and take it back.
    const [begun, destroy] = [clock.now(), () => response.destroy()];
    let rest: Timer | null = null;
    response.once('close', () => rest?.cancel());
    const breakOff = (): void => {
      if (clock.now() - begun >= HEAD_MS) destroy();
      else rest ??= clock.after(HEAD_MS, destroy);
    };
    const written = link.release === undefined ? undefined : (chunk: Buffer) => link.release?.(chunk);
    feed(message, response, atEnd, written, breakOff);
  });
}

/**
 * Asks a service to switch to WebSocket.
 * @throws SvcError as `forward`
 */
export function askToSwitch(forwarding: Forwarding): Promise<HttpAnswer> {
  return ask(forwarding, [...serviceHeaders(forwarding), 'Connection', 'Upgrade', 'Upgrade', 'websocket'], null);
}
