/**
 * What a request at a local address asks, as far as this daemon has a part in it. Bodies that may say so are read first;
 * those that turn out to be something else go on as they come.
 */

import type { IncomingMessage } from 'node:http';
import { isJsonType } from '../../capabilities/calls/headers.ts';
import { SvcError } from '../../foundation/errors.ts';
import { listen } from '../../foundation/stream-listeners.ts';
import { asksForCard, type CardQuestion, isCardCall } from './cards.ts';
import { isFirstValueOver } from './json-texts.ts';
import { isPushPath, mayBePushQuestion } from './push-questions.ts';

/** Largest request that is looked into, bytes: a larger one goes on as it comes. */
export const MAX_LOOKED_INTO_BYTES: number = 4 * 1024 * 1024;

export interface Looked {
  /** How a card is asked for; null where none is. */
  readonly question: CardQuestion | null;
  /** The body where it has been read; null where it goes on as it comes. */
  readonly body: Buffer | null;
}

/** @throws SvcError `cancelled` where the request breaks off */
export async function lookInto(request: IncomingMessage): Promise<Looked> {
  if (asksForCard(request)) return { question: 'document', body: null };
  const body = mayAsk(request) ? await collect(request) : null;
  return { question: body !== null && isCardCall(body) ? 'call' : null, body };
}

/** True where only the body can say what a request asks. */
function mayAsk({ method, headers }: IncomingMessage): boolean {
  const { 'content-type': type, 'content-length': length = '0', 'transfer-encoding': chunked } = headers;
  if (method !== 'POST' || !isJsonType(type)) return false;
  return chunked !== undefined || (Number(length) > 0 && Number(length) <= MAX_LOOKED_INTO_BYTES);
}

/**
 * The whole body; null, and the request as if nobody had read of it, where it is too long, or where nobody knows how long
 * it is and its first value is nothing of this: more may come when the other side has answered that one.
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
    if (isDecided) isWanted = mayBeQuestion(Buffer.concat(chunks));
    if ((isWanted || !isDecided) && bytes <= MAX_LOOKED_INTO_BYTES) return;
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

function mayBeQuestion(body: Buffer): boolean {
  return isCardCall(body) || mayBePushQuestion(body.toString('utf8'));
}
