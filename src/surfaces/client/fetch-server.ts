/** A server of Node that answers with what a function of `Request` and `Response` says, as web frameworks have it. */

import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { flushHead } from '../../foundation/flush-head.ts';

/** Methods whose requests have no body. */
const BODILESS: ReadonlySet<string> = new Set(['GET', 'HEAD']);

/** A request as web frameworks take it. @throws TypeError where it names a method or a target that they do not */
export function requestOf(incoming: IncomingMessage, signal: AbortSignal): Request {
  const { method = 'GET', url = '/', headersDistinct, headers } = incoming;
  const held = Object.entries(headersDistinct).flatMap(([name, values = []]) =>
    values.map((value): [string, string] => [name, value]),
  );
  const target = new URL(url, `http://${headers.host ?? 'localhost'}`);
  const body = BODILESS.has(method) ? null : Readable.toWeb(incoming);
  return new Request(target, { method, headers: held, body, signal, duplex: 'half' });
}

/** Sends an answer, as fast as its reader takes it. Rejects where the reader has gone, or the body fails. */
export async function answer(outgoing: ServerResponse, response: Response): Promise<void> {
  const { status, headers, body } = response;
  outgoing.statusCode = status;
  for (const [name, value] of headers) if (name !== 'set-cookie') outgoing.setHeader(name, value);
  const cookies = headers.getSetCookie();
  if (cookies.length > 0) outgoing.setHeader('set-cookie', cookies);
  if (body === null) {
    outgoing.end();
    if (!outgoing.writableFinished) await once(outgoing, 'close');
    return;
  }
  // Who waits for an answer may send more only once it has begun.
  flushHead(outgoing);
  await pipeline(Readable.fromWeb(body), outgoing);
}
