/**
 * Finds out what a request at a local address needs from this daemon. Bodies that may be relevant are buffered. Other
 * bodies are streamed.
 */
import type { IncomingMessage } from 'node:http';
import { isJsonType } from '../../capabilities/calls/headers.ts';
import { SvcError } from '../../foundation/errors.ts';
import { listen } from '../../foundation/stream-listeners.ts';
import { type CardRequestKind, isCardCall, isCardRequest } from './cards.ts';
import { isFirstValueOver, isPushPath, mayBeWebhookCall } from './webhook-requests.ts';

/** Largest body that is inspected, bytes. Larger ones are streamed. */
export const MAX_INSPECTED_BYTES: number = 4 * 1024 * 1024;

export interface InspectedRequest {
  /** How a card is requested, or null. */
  readonly question: CardRequestKind | null;
  /** The buffered body. Null if it is streamed. */
  readonly body: Buffer | null;
}

/** @throws SvcError `cancelled` if the request is aborted */
export async function inspectRequest(request: IncomingMessage): Promise<InspectedRequest> {
  if (isCardRequest(request)) return { question: 'document', body: null };
  const body = mayAsk(request) ? await collect(request) : null;
  return { question: body !== null && isCardCall(body) ? 'call' : null, body };
}

/** True if only the body identifies the request. */
function mayAsk({ method, headers }: IncomingMessage): boolean {
  const { 'content-type': type, 'content-length': length = '0', 'transfer-encoding': chunked } = headers;
  if (method !== 'POST' || !isJsonType(type)) return false;
  return chunked !== undefined || (Number(length) > 0 && Number(length) <= MAX_INSPECTED_BYTES);
}

/**
 * The complete body. Null if it is too long, or if its length is unknown and its first value is irrelevant; then the
 * read bytes are put back, because the client may send more only after a response.
 */
function collect(request: IncomingMessage): Promise<Buffer | null> {
  let isWanted = request.headers['transfer-encoding'] === undefined || isPushPath(request);
  const isOver = isFirstValueOver();
  const { promise, resolve, reject } = Promise.withResolvers<Buffer | null>();
  const chunks: Buffer[] = [];
  let bytes = 0;
  const take = (chunk: Buffer): void => {
    chunks.push(chunk);
    bytes += chunk.length;
    const isDecided = !isWanted && isOver(chunk);
    if (isDecided) isWanted = needsInspection(Buffer.concat(chunks));
    if ((isWanted || !isDecided) && bytes <= MAX_INSPECTED_BYTES) return;
    leave();
    request.pause();
    for (const one of chunks.toReversed()) request.unshift(one);
    resolve(null);
  };
  const ended = (): void => {
    leave();
    resolve(Buffer.concat(chunks));
  };
  const broken = (cause?: unknown): void => {
    leave();
    reject(new SvcError('cancelled', { cause }));
  };
  const leave = listen(request, { data: take, end: ended, error: broken, close: broken });
  return promise;
}

function needsInspection(body: Buffer): boolean {
  return isCardCall(body) || mayBeWebhookCall(body.toString('utf8'));
}
