/** A Node server for a function of `Request` and `Response`, as web frameworks provide it. */

import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { flushHead } from '../../foundation/sockets.ts';

/** Methods whose requests have no body. */
const BODILESS: ReadonlySet<string> = new Set(['GET', 'HEAD']);

/** Methods that the Fetch standard forbids. */
const FORBIDDEN: ReadonlySet<string> = new Set(['CONNECT', 'TRACE', 'TRACK']);
const HOST = /^(?:[\w.-]+|\[[\da-f:.]+\])(?::\d{1,5})?$/i;

/** Why a request is not passed to the program, with the status of the response. */
export class RefusedRequest extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** The URL of a request target, with unchanged path and query. @throws RefusedRequest */
function urlOf(target: string, host: string | undefined): URL {
  if (!target.startsWith('/')) throw new RefusedRequest(400, 'The request target is not a path.');
  const base = host !== undefined && HOST.test(host) ? host : 'localhost';
  // Concatenated as text: a path with two leading slashes would be another host. `URL` gives `\` and `#` a meaning.
  const url = URL.parse(`http://${base}${target.replaceAll('\\', '%5C').replaceAll('#', '%23')}`);
  if (url === null) throw new RefusedRequest(400, 'The request target is malformed.');
  return url;
}

/** Converts a request for web frameworks. @throws RefusedRequest if the Fetch standard has no such request */
export function toRequest(incoming: IncomingMessage, signal: AbortSignal): Request {
  const { method = 'GET', url = '/', headersDistinct, headers } = incoming;
  if (FORBIDDEN.has(method.toUpperCase())) throw new RefusedRequest(501, `${method} is not supported.`);
  const held = Object.entries(headersDistinct).flatMap(([name, values = []]) =>
    values.map((value): [string, string] => [name, value]),
  );
  // `OPTIONS *` refers to the whole server, which is the program.
  const target = urlOf(url === '*' && method === 'OPTIONS' ? '/' : url, headers.host);
  const body = BODILESS.has(method) ? null : Readable.toWeb(incoming);
  return new Request(target, { method, headers: held, body, signal, duplex: 'half' });
}

/** Sends a response at the speed of its reader. Rejects if the connection closes or the body fails. */
export async function sendResponse(outgoing: ServerResponse, response: Response): Promise<void> {
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
  // A client may wait for the head before it sends the rest of its request.
  flushHead(outgoing);
  await pipeline(Readable.fromWeb(body), outgoing);
}
