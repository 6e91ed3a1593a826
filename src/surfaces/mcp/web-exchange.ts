/** Converts between Node's HTTP and the web API that the MCP SDK uses. */

import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { detach } from '../../foundation/detached.ts';
import { flushHead } from '../../foundation/sockets.ts';
import type { StreamExchange } from '../../operations/handlers/exchange.ts';
import type { CallContext } from '../../operations/operation.ts';

/**
 * The head of a request as a web request. The body is already read and passed separately, because a second stream would
 * cost more than most calls. The signal is omitted too: web requests follow it with weak references that slow down the
 * garbage collector. Handlers use the context of the call.
 */
export function webRequest({ request }: Pick<StreamExchange, 'request'>): Request {
  const headers = new Headers();
  for (const [name, value] of Object.entries(request.headers))
    for (const one of Array.isArray(value) ? value : [value ?? '']) headers.append(name, one);
  const url = new URL(request.url ?? '/', `http://${request.headers.host ?? 'localhost'}`);
  return new Request(url, { method: request.method ?? 'POST', headers });
}

/** Sends a response of the SDK: in one piece, or as a stream until the client disconnects. */
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
  // Send the head now: the first event may be late.
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
    // Ignore a closed connection. Other errors go to the error handler.
    if (!signal.aborted) throw error;
  }
  response.end();
}
