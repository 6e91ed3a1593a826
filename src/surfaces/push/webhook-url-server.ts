/**
 * Receives notifications that local servers post for remote webhooks, on a port of 127.0.0.1 at unguessable URLs.
 * Responds with 202 once a notification is on disk.
 */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { filterHeaders, MAX_HTTP_HEADER_BYTES, withoutReservedHeaders } from '../../capabilities/calls/headers.ts';
import type {
  ServeWebhookUrls,
  StoreNotification,
  StoreResult,
  WebhookUrlListener,
} from '../../capabilities/push/types.ts';
import { isAllowedHeader, isHeaderList } from '../../capabilities/push/wire.ts';
import { isLoopbackHost } from '../../foundation/address.ts';
import { detach } from '../../foundation/detached.ts';
import { MAX_NOTIFICATION_BYTES } from '../../foundation/domain/push.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Log } from '../../foundation/log.ts';
import { describePortError } from '../../foundation/sockets.ts';
import { listening } from '../../foundation/stream-listeners.ts';
import { hostOf } from '../rest/host.ts';
import { readBytes } from '../rest/json-body.ts';
import { publicError } from '../rest/response.ts';

const HOST = '127.0.0.1';
/** Largest number of connections. */
const MAX_CONNECTIONS = 256;
/** Deadline for a complete request, milliseconds. */
const REQUEST_MS = 30_000;
/** Retry-After for a server, seconds. */
const RETRY_AFTER_S = 5;

/** @throws SvcError `forbidden_host`, `forbidden_origin`: pages in browsers cannot post here */
function checkSender({ headers }: IncomingMessage): void {
  const host = hostOf(headers.host ?? '');
  if (host === null || !isLoopbackHost(host)) throw new SvcError('forbidden_host');
  if (headers.origin !== undefined || headers['sec-fetch-site'] !== undefined) throw new SvcError('forbidden_origin');
}

const STATUS: Readonly<Record<StoreResult, number>> = { kept: 202, unknown: 404, limited: 429, full: 503 };

/** Serves webhook URLs. */
export function webhookUrlServers({ log }: { readonly log: Log }): ServeWebhookUrls {
  return async (port, leave) => {
    const server = createServer({
      insecureHTTPParser: false,
      maxHeaderSize: MAX_HTTP_HEADER_BYTES,
      requestTimeout: REQUEST_MS,
      headersTimeout: REQUEST_MS,
    });
    server.maxConnections = MAX_CONNECTIONS;
    server.on('request', (request, response) => detach(answer(request, response, leave, log)));
    await listen(server, port);
    // Without free file descriptors no connection can be accepted.
    server.on('error', (error) => log.warn({ error: error.message }, 'the port for notifications failed'));
    return listenerOf(server);
  };
}

async function listen(server: Server, port: number): Promise<void> {
  server.listen({ port, host: HOST });
  try {
    await listening(server);
  } catch (cause) {
    throw new SvcError('port_in_use', {
      message: `Port ${port} of ${HOST} ${describePortError(cause)}. It receives notifications of local servers.`,
      details: { port },
      cause,
    });
  }
}

function listenerOf(server: Server): WebhookUrlListener {
  const address = server.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  leave: StoreNotification,
  log: Log,
): Promise<void> {
  request.on('error', () => {});
  try {
    checkSender(request);
    const [, token = '', webhook = '', ...more] = (request.url ?? '').split('/');
    if (request.method !== 'POST') throw new SvcError('method_not_allowed');
    if (more.length > 0) throw new SvcError('not_found');
    const headers = filterHeaders(withoutReservedHeaders(request.rawHeaders), isAllowedHeader);
    if (!isHeaderList(headers)) throw new SvcError('too_large');
    const body = await readBytes(request, MAX_NOTIFICATION_BYTES);
    const left = leave(token, { webhook, headers, body });
    response.statusCode = STATUS[left];
    if (left === 'limited' || left === 'full') response.setHeader('retry-after', RETRY_AFTER_S);
    response.end();
  } catch (error) {
    if (response.destroyed || request.destroyed) return void response.destroy();
    const { status, code } = publicError(error, (err) => log.error({ err }, 'a notification could not be stored'));
    // The rest of the body is not read.
    response.shouldKeepAlive = false;
    response.statusCode = status;
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ error: code }));
  }
}
