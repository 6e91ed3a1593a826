/** The HTTP server under the API: its time-outs, its limits, and what it says to those who speak no HTTP. */
import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { maySwitch } from '../../capabilities/calls/upgrades.ts';
import { systemClock } from '../../foundation/clock.ts';
import { SvcError } from '../../foundation/errors.ts';
import { listen } from '../../foundation/stream-listeners.ts';
import { errorAnswer } from './answer.ts';
import { isPeerPath } from './peer-path.ts';

/**
 * Who may listen to the end of one answer: the parts of this server, the framework, and a stream into it with its ends are
 * eleven, and Node takes ten for sound.
 */
const RESPONSE_LISTENERS = 20;

/** The head of a request has to be here within this time: a slow one must not hold a connection. */
const HEAD_TIMEOUT_MS = 10_000;
/** How often connections are looked at for their time-outs. */
const TIMEOUT_CHECK_MS = 2_000;
/** An idle connection is kept for the next request this long. */
const KEEP_ALIVE_MS = 30_000;
/** Request line and headers together. */
const MAX_HEAD_BYTES = 16 * 1024;
/** What is read of a head after its cookies were refused, bytes: more than browsers keep of one host. */
const MAX_DISCARDED_HEAD_BYTES = 1024 * 1024;
/** Headers of a request. */
export const MAX_HEADER_COUNT = 100;

export interface HttpLimits {
  readonly headTimeoutMs: number;
  readonly timeoutCheckMs: number;
}

const LIMITS: HttpLimits = { headTimeoutMs: HEAD_TIMEOUT_MS, timeoutCheckMs: TIMEOUT_CHECK_MS };

/** What is wrong on the wire, by Node's code. */
const WIRE_ERRORS: Readonly<Record<string, SvcError>> = {
  HPE_HEADER_OVERFLOW: new SvcError('too_large', {
    status: 431,
    message: `The head of a request is at most ${MAX_HEAD_BYTES} bytes.`,
  }),
  ERR_HTTP_REQUEST_TIMEOUT: new SvcError('timeout', { status: 408, message: 'The request was not sent in time.' }),
};
const MALFORMED = new SvcError('invalid_request', { message: 'This is not a valid HTTP/1.1 request.' });

/** What any request may be refused with before it is known what it asks for. */
export const WIRE_REFUSALS: readonly SvcError[] = Object.values(WIRE_ERRORS);

const COOKIES_TOO_LARGE = new SvcError('too_large', {
  status: 431,
  message: 'The cookies of this host fill the head of the request. They have been cleared: load the page again.',
});
/** Longest request line that is not itself the reason for a head that is too large, bytes. */
const SHORT_REQUEST_LINE = 1024;

/**
 * True if cookies made the head of a request too large. All ports of this machine share them, so the pages of any local
 * program, or of an agent at its local address, can set them. Pages of other sites cannot bring this about: of the other
 * headers they choose only a few hundred bytes.
 */
function hasTooManyCookies(failure: WireFailure): boolean {
  if (failure.code !== 'HPE_HEADER_OVERFLOW') return false;
  const head = failure.rawPacket?.toString('latin1') ?? '';
  const lineEnd = head.indexOf('\r\n');
  return lineEnd >= 0 && lineEnd <= SHORT_REQUEST_LINE && /\r\ncookie:/i.test(head);
}

/** An error of Node's HTTP parser. */
interface WireFailure extends NodeJS.ErrnoException {
  /** The bytes at which it failed. */
  readonly rawPacket?: Buffer;
}

/** Sockets that were answered and whose remaining bytes are discarded. */
const ending = new WeakSet<Duplex>();

/** Ends a socket whose client reads the answer only once it has sent its whole head. */
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
 * Answers a request that Node's parser refused, and ends its connection.
 * @param isTaken an answer is under way, or was the last one: the connection is cut
 */
export function refuseOnSocket(failure: WireFailure, socket: Duplex, isTaken: boolean): void {
  if (ending.has(socket)) return;
  if (failure.code === 'ECONNRESET' || !socket.writable || isTaken) return void socket.destroy();
  const areCookies = hasTooManyCookies(failure);
  const { status, body } = errorAnswer(areCookies ? COOKIES_TOO_LARGE : (WIRE_ERRORS[failure.code ?? ''] ?? MALFORMED));
  const clear = areCookies ? 'Clear-Site-Data: "cookies"\r\n' : '';
  const head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n${clear}Connection: close\r\n\r\n`;
  if (areCookies) discardRest(socket);
  socket.end(head + body, areCookies ? undefined : () => socket.destroy());
}

export type RequestHandler = (request: IncomingMessage, response: ServerResponse) => void;

/** True for requests to the gateway that may switch protocols; elsewhere the wish is ignored, as HTTP allows. */
function wantsSwitch(request: IncomingMessage): boolean {
  return isPeerPath(request.url) && maySwitch(request);
}

/**
 * A server whose requests all go to `handler`, those with an `Expect` header too: its answer to
 * `100-continue` is the handler's to give.
 */
export function createHttpServer(handler: RequestHandler, limits = LIMITS): Server {
  const server = createServer({
    headersTimeout: limits.headTimeoutMs,
    // Bodies are limited by the routes: an upload may take long, a JSON body may not.
    requestTimeout: 0,
    connectionsCheckingInterval: limits.timeoutCheckMs,
    keepAliveTimeout: KEEP_ALIVE_MS,
    maxHeaderSize: MAX_HEAD_BYTES,
    noDelay: true,
    shouldUpgradeCallback: wantsSwitch,
  });
  // Node would drop further headers without a word: the server refuses such requests.
  server.maxHeadersCount = 0;
  // Sockets with an answer under way, or one that said it is the last.
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
    refuseOnSocket(error, socket, taken.has(socket));
  });
  return server;
}
