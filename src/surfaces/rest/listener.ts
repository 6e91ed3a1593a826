/** The HTTP server of the API: timeouts, limits, and error responses to clients that send invalid HTTP. */
import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { maySwitch } from '../../capabilities/calls/upgrades.ts';
import { systemClock } from '../../foundation/clock.ts';
import { SvcError } from '../../foundation/errors.ts';
import { listen } from '../../foundation/stream-listeners.ts';
import { isPeerPath } from './panel-path.ts';
import { errorResponse } from './response.ts';

/** Listeners for the end of one response. This server and a piped stream add several; Node warns above ten. */
const RESPONSE_LISTENERS = 20;

/** Timeout for the head of a request, in milliseconds. Slow clients must not hold connections. */
const HEAD_TIMEOUT_MS = 10_000;
/** Interval of the timeout check, in milliseconds. */
const TIMEOUT_CHECK_MS = 2_000;
/** How long an idle connection stays open for another request, in milliseconds. */
const KEEP_ALIVE_MS = 30_000;
/** Largest request line and headers together, in bytes. */
const MAX_HEAD_BYTES = 16 * 1024;
/** Bytes of a head to discard after its cookies were rejected: more than browsers store for one host. */
const MAX_DISCARDED_HEAD_BYTES = 1024 * 1024;
/** Headers of a request. */
export const MAX_HEADER_COUNT = 100;

export interface HttpLimits {
  readonly headTimeoutMs: number;
  readonly timeoutCheckMs: number;
}

const LIMITS: HttpLimits = { headTimeoutMs: HEAD_TIMEOUT_MS, timeoutCheckMs: TIMEOUT_CHECK_MS };

/** Errors of the HTTP parser, by Node's error code. */
const WIRE_ERRORS: Readonly<Record<string, SvcError>> = {
  HPE_HEADER_OVERFLOW: new SvcError('too_large', {
    status: 431,
    message: `The head of a request can have at most ${MAX_HEAD_BYTES} bytes.`,
  }),
  ERR_HTTP_REQUEST_TIMEOUT: new SvcError('timeout', { status: 408, message: 'The request was not sent in time.' }),
};
const MALFORMED = new SvcError('invalid_request', { message: 'This is not a valid HTTP/1.1 request.' });

/** Errors of any request before its route is known. */
export const WIRE_REFUSALS: readonly SvcError[] = Object.values(WIRE_ERRORS);

const COOKIES_TOO_LARGE = new SvcError('too_large', {
  status: 431,
  message: 'The cookies of this host are too large for a request. They have been cleared. Reload the page.',
});
/** Longest request line that does not itself make a head too large, in bytes. */
const SHORT_REQUEST_LINE = 1024;

/**
 * True if cookies made the head of a request too large. All ports of this machine share cookies, so pages of local
 * programs, or of agents at local addresses, can set them. Pages of other sites cannot cause this, because they control
 * only a few hundred bytes of other headers.
 */
function hasTooManyCookies(failure: WireFailure): boolean {
  if (failure.code !== 'HPE_HEADER_OVERFLOW') return false;
  const head = failure.rawPacket?.toString('latin1') ?? '';
  const lineEnd = head.indexOf('\r\n');
  return lineEnd >= 0 && lineEnd <= SHORT_REQUEST_LINE && /\r\ncookie:/i.test(head);
}

/** An error of Node's HTTP parser. */
interface WireFailure extends NodeJS.ErrnoException {
  /** The bytes that could not be parsed. */
  readonly rawPacket?: Buffer;
}

/** Sockets that got an error response. Their remaining input is discarded. */
const ending = new WeakSet<Duplex>();

/** Closes a socket of a client that reads the response only after it has sent its whole head. */
function discardRest(socket: Duplex): void {
  ending.add(socket);
  const timer = systemClock.after(HEAD_TIMEOUT_MS, () => socket.destroy());
  let left = MAX_DISCARDED_HEAD_BYTES;
  const take = ({ length }: Buffer): void => {
    left -= length;
    if (left < 0) socket.destroy();
  };
  listen(socket, { data: take, end: () => socket.destroy(), close: () => timer.cancel() });
  socket.resume();
}

/**
 * Responds to a request that Node's parser rejected, and closes its connection.
 * @param isTaken a response is in progress or was the last one, so the connection is destroyed
 */
export function rejectOnSocket(failure: WireFailure, socket: Duplex, isTaken: boolean): void {
  if (ending.has(socket)) return;
  if (failure.code === 'ECONNRESET' || !socket.writable || isTaken) return void socket.destroy();
  const areCookies = hasTooManyCookies(failure);
  const { status, body } = errorResponse(
    areCookies ? COOKIES_TOO_LARGE : (WIRE_ERRORS[failure.code ?? ''] ?? MALFORMED),
  );
  const clear = areCookies ? 'Clear-Site-Data: "cookies"\r\n' : '';
  const head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n${clear}Connection: close\r\n\r\n`;
  if (areCookies) discardRest(socket);
  socket.end(head + body, areCookies ? undefined : () => socket.destroy());
}

export type RequestHandler = (request: IncomingMessage, response: ServerResponse) => void;

/** True for gateway requests that may switch protocols. On other paths, `Upgrade` is ignored, as HTTP allows. */
function wantsUpgrade(request: IncomingMessage): boolean {
  return isPeerPath(request.url) && maySwitch(request);
}

/**
 * Creates a server that passes all requests to `handler`. Requests with an `Expect` header are included, so `handler`
 * decides whether to send `100-continue`.
 */
export function createHttpServer(handler: RequestHandler, limits = LIMITS): Server {
  const server = createServer({
    headersTimeout: limits.headTimeoutMs,
    // The routes limit the body time: an upload may take long, a JSON body may not.
    requestTimeout: 0,
    connectionsCheckingInterval: limits.timeoutCheckMs,
    keepAliveTimeout: KEEP_ALIVE_MS,
    maxHeaderSize: MAX_HEAD_BYTES,
    noDelay: true,
    shouldUpgradeCallback: wantsUpgrade,
  });
  // Node would silently drop further headers. The server rejects such requests instead.
  server.maxHeadersCount = 0;
  // Sockets with a response in progress, or with a final response.
  const taken = new WeakSet<Duplex>();
  const serve: RequestHandler = (request, response) => {
    const { socket } = request;
    taken.add(socket);
    response.setMaxListeners(RESPONSE_LISTENERS);
    response.once('close', () => {
      if (response.shouldKeepAlive) taken.delete(socket);
    });
    handler(request, response);
  };
  server.on('request', serve);
  server.on('checkContinue', serve);
  server.on('checkExpectation', serve);
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    rejectOnSocket(error, socket, taken.has(socket));
  });
  return server;
}
