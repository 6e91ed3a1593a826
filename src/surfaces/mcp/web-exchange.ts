/** From Node's HTTP to the web's, which the SDK of MCP speaks, and back. */

import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { detach } from '../../foundation/detached.ts';
import { flushHead } from '../../foundation/flush-head.ts';
import type { StreamExchange } from '../../operations/handlers/exchange.ts';
import type { CallContext } from '../../operations/operation.ts';

/**
 * The head of a request as the web knows it. The body is left out: it has been read and is handed over
 * beside it, and turning it into a stream again would cost more than most calls. So is the signal, which
 * a request of the web follows by weak references that keep the garbage collector busy: what runs asks
 * the context of the call.
 */
export function webRequest({ request }: Pick<StreamExchange, 'request'>): Request {
  const headers = new Headers();
  for (const [name, value] of Object.entries(request.headers))
    for (const one of Array.isArray(value) ? value : [value ?? '']) headers.append(name, one);
  const url = new URL(request.url ?? '/', `http://${request.headers.host ?? 'localhost'}`);
  return new Request(url, { method: request.method ?? 'POST', headers });
}

/** Sends an answer of the SDK: a whole one at once, a stream as it comes, until the client goes away. */
export async function sendWebResponse(
  answer: Response,
  response: ServerResponse,
  context: Pick<CallContext, 'signal'>,
): Promise<void> {
  const headers = Object.fromEntries(answer.headers);
  if (answer.body === null || !(headers['content-type'] ?? '').startsWith('text/event-stream')) {
    const bytes = Buffer.from(await answer.arrayBuffer());
    response.writeHead(answer.status, { ...headers, 'content-length': bytes.length }).end(bytes);
    return;
  }
  // The head goes out now: the first event may take its time.
  flushHead(response.writeHead(answer.status, headers));
  const { signal } = context;
  const reader = answer.body.getReader();
  const cancel = (): void => detach(reader.cancel().catch(() => {}));
  if (signal.aborted) cancel();
  signal.addEventListener('abort', cancel, { once: true });
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read())
      if (!response.write(part.value)) await once(response, 'drain', { signal });
  } catch (error) {
    // The client went away; anything else is for whoever answers errors.
    if (!signal.aborted) throw error;
  }
  response.end();
}
