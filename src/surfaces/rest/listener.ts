/** The HTTP server under the API: its time-outs, its limits, and what it says to those who speak no HTTP. */
import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { maySwitch } from '../../capabilities/calls/upgrades.ts';
import { SvcError } from '../../foundation/errors.ts';
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

/** Answers on a bare socket, and ends it. */
function refuseOnSocket(failure: NodeJS.ErrnoException, socket: Duplex): void {
  const { status, body } = errorAnswer(WIRE_ERRORS[failure.code ?? ''] ?? MALFORMED);
  const head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n`;
  socket.end(head + body, () => socket.destroy());
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
    if (error.code === 'ECONNRESET' || !socket.writable || taken.has(socket)) socket.destroy();
    else refuseOnSocket(error, socket);
  });
  return server;
}
