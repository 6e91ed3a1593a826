/** A server of Node that answers with what a function of `Request` and `Response` says, as web frameworks have it. */

import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { flushHead } from '../../foundation/flush-head.ts';

/** Methods whose requests have no body. */
const BODILESS: ReadonlySet<string> = new Set(['GET', 'HEAD']);

/** Methods that the Fetch standard forbids. */
const FORBIDDEN: ReadonlySet<string> = new Set(['CONNECT', 'TRACE', 'TRACK']);
const HOST = /^(?:[\w.-]+|\[[\da-f:.]+\])(?::\d{1,5})?$/i;

/** Why a request is not handed to the program, with the status of the answer. */
export class RefusedRequest extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** The URL of a request target, whose path and query stay as they were sent. @throws RefusedRequest */
function urlOf(target: string, host: string | undefined): URL {
  if (!target.startsWith('/')) throw new RefusedRequest(400, 'The request target is no path.');
  const base = host !== undefined && HOST.test(host) ? host : 'localhost';
  // Joined as text: a path that begins with two slashes would be another host. A URL takes these two for something else.
  const url = URL.parse(`http://${base}${target.replaceAll('\\', '%5C').replaceAll('#', '%23')}`);
  if (url === null) throw new RefusedRequest(400, 'The request target is malformed.');
  return url;
}

/** A request as web frameworks take it. @throws RefusedRequest if the Fetch standard has no such request */
export function requestOf(incoming: IncomingMessage, signal: AbortSignal): Request {
  const { method = 'GET', url = '/', headersDistinct, headers } = incoming;
  if (FORBIDDEN.has(method.toUpperCase())) throw new RefusedRequest(501, `${method} is not supported.`);
  const held = Object.entries(headersDistinct).flatMap(([name, values = []]) =>
    values.map((value): [string, string] => [name, value]),
  );
  // The server as a whole, which is the program.
  const target = urlOf(url === '*' && method === 'OPTIONS' ? '/' : url, headers.host);
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
