/**
 * Serves local programs at the local address of a remote agent: HTTP/1.1 requests and protocol upgrades as calls,
 * HTTP/2 as a raw tunnel connection.
 */
import {
  createServer as createHttpServer,
  type Server as HttpServer,
  type IncomingMessage,
  ServerResponse,
} from 'node:http';
import { createServer, type Server, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { filterHeaders, MAX_HTTP_HEADER_BYTES, type RawHeaders } from '../../capabilities/calls/headers.ts';
import type { CallResponse } from '../../capabilities/calls/http-caller.ts';
import { maySwitch } from '../../capabilities/calls/upgrades.ts';
import type { CardAdmission, LocalCard } from '../../capabilities/cards/remote-cards.ts';
import type { OriginFailure, OriginListener, OriginTarget, ServeOrigin } from '../../capabilities/origins/origins.ts';
import { isLoopbackHost } from '../../foundation/address.ts';
import type { Card } from '../../foundation/cards/card.ts';
import { detach } from '../../foundation/detached.ts';
import { codeOf, SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { NodeParts } from '../../foundation/node-parts.ts';
import { catalogMessage } from '../../foundation/service-failure.ts';
import { describePortError, resetSocket } from '../../foundation/sockets.ts';
import { listening } from '../../foundation/stream-listeners.ts';
import type { Upgrade } from '../../operations/handlers/exchange.ts';
import { MAX_PIPELINED } from '../rest/connections.ts';
import { hostOf, isSameSite, namesManyHosts } from '../rest/host.ts';
import { rejectOnSocket } from '../rest/listener.ts';
import { callRemote, type RemoteCaller } from '../rest/remote-call.ts';
import type { ResponsePlace } from '../rest/remote-headers.ts';
import { publicError, sendError } from '../rest/response.ts';
import { canUseSignedCard, cardNote, cardRequestHeaders, sendLocalCard, withLocalCard } from './cards.ts';
import {
  headersForAgent,
  headersForProgram,
  isMetadataRequest,
  type OriginClient,
  PAGE_POLICY,
  SharedCookies,
  withLocalMetadata,
} from './headers.ts';
import { inspectRequest } from './inspect-request.ts';
import { handleWebhooks, type PushRegistry } from './webhooks.ts';

// Distinguishes HTTP/2 with prior knowledge (RFC 9113, section 3.3), as gRPC uses it, from HTTP/1.1 by the first
// bytes.

/** The connection preface of HTTP/2. */
const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');

/**
 * Reads as many bytes as necessary and puts them back. The connection is paused afterwards.
 * @returns null if it closed before
 */
async function firstBytes(socket: Socket): Promise<'http' | 'http2' | null> {
  return new Promise((resolve) => {
    let seen = Buffer.alloc(0);
    const over = (kind: 'http' | 'http2' | null): void => {
      socket.off('data', look).off('close', gone).off('end', gone).pause();
      if (seen.length > 0 && !socket.destroyed) socket.unshift(seen);
      resolve(kind);
    };
    const gone = (): void => over(null);
    const look = (chunk: Buffer): void => {
      seen = Buffer.concat([seen, chunk]);
      const compared = Math.min(seen.length, PREFACE.length);
      if (!seen.subarray(0, compared).equals(PREFACE.subarray(0, compared))) over('http');
      else if (compared === PREFACE.length) over('http2');
    };
    socket.on('data', look).once('close', gone).once('end', gone).resume();
  });
}

// Access control of a local address: all local programs, and in a browser the pages of the agent itself and direct
// navigation. Pages of other sites are rejected, because they would act as the local agent.

/**
 * True for requests of browsers: a browser always states the origin of a request, and no script can remove it. Node's
 * `fetch` states only the mode.
 */
function isFromBrowser({ headers }: IncomingMessage): boolean {
  return headers['sec-fetch-site'] !== undefined;
}

/** Navigation to a page: a link or a typed address. No other page can read the response. */
function isVisit({ method, headers }: IncomingMessage): boolean {
  const { 'sec-fetch-mode': mode, 'sec-fetch-dest': destination } = headers;
  return (method === 'GET' || method === 'HEAD') && mode === 'navigate' && destination === 'document';
}

/**
 * Browsers that resolve names below `localhost` themselves. All others use the address at 127.0.0.1.
 * https://www.rfc-editor.org/rfc/rfc6761#section-6.3
 */
const RESOLVES_LOCALHOST = /(?:Chrome|Chromium|Firefox)\//;

/** The host of a local address in a browser. Other hosts do not receive its cookies, including cookies of scripts. */
function ownHost(id: string): string {
  return `${id}.localhost`;
}

/** The address of the same page at the own host; null if the request does not name a port. */
function ownPage({ url = '/', headers: { host = '' } }: IncomingMessage, id: string): string | null {
  const port = /:\d{1,5}$/.exec(host)?.[0];
  return port === undefined ? null : `http://${ownHost(id)}${port}${url}`;
}

/** @throws SvcError `invalid_request`, `forbidden_host`, `forbidden_origin`, `access_denied` */
function checkRequester(request: IncomingMessage, id: string): void {
  const { url = '', headers } = request;
  if (!url.startsWith('/') && !(url === '*' && request.method === 'OPTIONS'))
    throw new SvcError('invalid_request', { message: 'A request target must be a path: this is not a proxy.' });
  if (namesManyHosts(request))
    throw new SvcError('invalid_request', { message: 'A request must have exactly one Host header.' });
  // Another site could make its own host name resolve to this address, which would make its pages same-origin.
  const host = hostOf(headers.host ?? '');
  if (host === null || !isLoopbackHost(host)) throw new SvcError('forbidden_host');
  // The host of another address, whose cookies the browser sends.
  if (isFromBrowser(request) && host.endsWith('.localhost') && host !== ownHost(id))
    throw new SvcError('forbidden_host');
  // A service worker outlives this address in the browser, and would respond for the next agent on its port.
  if (headers['service-worker'] !== undefined)
    throw new SvcError('access_denied', { message: 'Pages at a local address cannot install service workers.' });
  const { origin, 'sec-fetch-site': site = 'none' } = headers;
  const isOwn =
    (site === 'none' || site === 'same-origin') && (origin === undefined || isSameSite(origin, headers.host));
  if (!isOwn && !isVisit(request)) throw new SvcError('forbidden_origin');
}

const HOST = '127.0.0.1';
/** Browsers connect to this address first for names below `localhost`. */
const HOST_V6 = '::1';
/** Largest number of connections to one address: enough for the event streams and WebSockets of one pair of agents. */
const MAX_CONNECTIONS = 2048;
/** Idle timeout of a connection, milliseconds. */
const KEEP_ALIVE_MS = 75_000;
const BACKLOG = 511;
/** Headers about the bytes of a request, which change if it names a webhook. */
const OF_THE_BODY = /^(?:content-(?:digest|md5)|digest|repr-digest|signature(?:-input)?|trailer)$/;

export interface OriginServerDependencies extends NodeParts {
  readonly caller: RemoteCaller;
  /** Determines which URLs of an agent's card local programs may use. */
  readonly cards: Pick<CardAdmission, 'toLocalCard'>;
  /** The signed A2A card of an agent, or null. @throws SvcError if it cannot be fetched */
  readonly signedCard: (remote: Aid, local: Aid, signal: AbortSignal) => Promise<Card | null>;
  /** Replaces webhooks of local programs. */
  readonly push: PushRegistry;
  /**
   * Connects a socket to the service of the agent.
   * @param refused receives the reason if the remote node refuses
   * @throws SvcError if the agent is not reachable
   */
  readonly carry: (
    socket: Socket,
    target: ReturnType<OriginTarget>,
    refused: (failure: SvcError) => void,
  ) => Promise<void>;
}

class OriginServer implements OriginListener {
  readonly #target: OriginTarget;
  readonly #deps: OriginServerDependencies;
  readonly #listener: Server;
  /** Listens at `HOST_V6`. Null if this machine has no IPv6. */
  #listenerV6: Server | null = null;
  /** False if another program may have the port at `HOST_V6`. */
  #hasOwnHost = false;
  readonly #cookies = new SharedCookies();
  readonly #http: HttpServer;
  readonly #sockets = new Set<Socket>();
  readonly #unanswered = new WeakMap<Duplex, number>();
  #served = 0;
  #lastError: OriginFailure | null = null;

  constructor(target: OriginTarget, dependencies: OriginServerDependencies) {
    this.#target = target;
    this.#deps = dependencies;
    this.#listener = this.#newListener();
    this.#http = createHttpServer({
      insecureHTTPParser: false,
      maxHeaderSize: MAX_HTTP_HEADER_BYTES,
      keepAliveTimeout: KEEP_ALIVE_MS,
      // Streams may be silent for a day in both directions.
      requestTimeout: 0,
      // An unsupported upgrade is ignored, as HTTP allows.
      shouldUpgradeCallback: maySwitch,
    });
    // Node would drop headers beyond the limit silently. The called side rejects them.
    this.#http.maxHeadersCount = 0;
    this.#http.on('request', (request, response) => detach(this.#serve(request, response)));
    this.#http.on('clientError', (error: NodeJS.ErrnoException, socket) => {
      rejectOnSocket(error, socket, (this.#unanswered.get(socket) ?? 0) > 0);
    });
    this.#http.on('upgrade', (request, socket, head) => this.#upgrade(request, { socket, head }));
  }

  /** @throws SvcError `port_in_use` */
  async listen(port: number): Promise<void> {
    this.#listener.listen({ port, host: HOST, backlog: BACKLOG });
    try {
      await listening(this.#listener);
    } catch (cause) {
      throw new SvcError('port_in_use', {
        message: `Port ${port} of ${HOST} ${describePortError(cause)}. Choose another local_port, or omit it for a free one.`,
        details: { port },
        cause,
      });
    }
    this.#listener.on('error', (error) => this.#deps.log.warn({ error: error.message }, 'a local address failed'));
    await this.#listenV6();
  }

  #newListener(): Server {
    const listener = createServer({ allowHalfOpen: true, noDelay: true, pauseOnConnect: true }, (socket) =>
      this.#take(socket),
    );
    listener.maxConnections = MAX_CONNECTIONS;
    return listener;
  }

  async #listenV6(): Promise<void> {
    const listener = this.#newListener();
    listener.listen({ port: this.port, host: HOST_V6, backlog: BACKLOG });
    try {
      await listening(listener);
    } catch (error) {
      const code = codeOf(error);
      this.#hasOwnHost = code === 'EADDRNOTAVAIL' || code === 'EAFNOSUPPORT';
      return;
    }
    listener.on('error', (error) => this.#deps.log.warn({ error: error.message }, 'a local address failed'));
    this.#listenerV6 = listener;
    this.#hasOwnHost = true;
  }

  get port(): number {
    const address = this.#listener.address();
    return typeof address === 'object' && address !== null ? address.port : 0;
  }

  get connections(): number {
    return this.#sockets.size;
  }

  get served(): number {
    return this.#served;
  }

  get lastError(): OriginFailure | null {
    return this.#lastError;
  }

  async close(): Promise<void> {
    const listeners = [this.#listener, ...(this.#listenerV6 === null ? [] : [this.#listenerV6])];
    const closed = listeners.map((one) => new Promise<void>((resolve) => one.close(() => resolve())));
    for (const socket of this.#sockets) resetSocket(socket);
    await Promise.all(closed);
  }

  #take(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on('error', () => {});
    socket.once('close', () => this.#sockets.delete(socket));
    detach(this.#begin(socket));
  }

  async #begin(socket: Socket): Promise<void> {
    const kind = await firstBytes(socket);
    if (kind === null) return void socket.destroy();
    if (kind === 'http') {
      this.#http.emit('connection', socket);
      socket.resume();
      return;
    }
    this.#served++;
    try {
      await this.#deps.carry(socket, this.#target(), (failure) => this.#failed(failure));
    } catch (error) {
      this.#failed(error instanceof SvcError ? error : new SvcError('internal'));
      resetSocket(socket);
    }
  }

  #upgrade(request: IncomingMessage, upgrade: Upgrade): void {
    const { socket } = upgrade;
    socket.on('error', () => socket.destroy());
    const response = new ServerResponse(request);
    response.shouldKeepAlive = false;
    response.assignSocket(request.socket);
    response.once('finish', () => socket.resume().end(() => socket.destroy()));
    if (request.headers.expect?.toLowerCase() === '100-continue') response.writeContinue();
    detach(this.#serve(request, response, upgrade));
  }

  async #serve(request: IncomingMessage, response: ServerResponse, upgrade?: Upgrade): Promise<void> {
    const { socket } = request;
    const open = this.#unanswered.get(socket) ?? 0;
    if (socket.destroyed || open >= MAX_PIPELINED) return void socket.destroy();
    this.#unanswered.set(socket, open + 1);
    const gone = new AbortController();
    response.once('close', () => {
      this.#unanswered.set(socket, (this.#unanswered.get(socket) ?? 1) - 1);
      // A completed call may not be reported yet. Its link can serve the next call.
      if (!response.writableFinished) gone.abort();
    });
    this.#served++;
    try {
      const { id } = this.#target();
      checkRequester(request, id);
      const page = this.#movesBrowser(request, id) ? ownPage(request, id) : null;
      if (page === null) await this.#call(request, response, gone.signal, upgrade);
      else response.writeHead(307, { location: page, 'cache-control': 'no-store' }).end();
    } catch (error) {
      this.#refuse(response, error);
    }
  }

  /** True for a page that a browser must open at the own host of the address. */
  #movesBrowser(request: IncomingMessage, id: string): boolean {
    const { host = '', 'user-agent': browser = '' } = request.headers;
    const isElsewhere = isFromBrowser(request) && isVisit(request) && hostOf(host) !== ownHost(id);
    return isElsewhere && this.#hasOwnHost && RESOLVES_LOCALHOST.test(browser);
  }

  #visitorOf(request: IncomingMessage, id: string): OriginClient {
    const isBrowser = isFromBrowser(request);
    const isShared = isBrowser && hostOf(request.headers.host ?? '') !== ownHost(id);
    return { id, isBrowser, shared: isShared ? this.#cookies : null };
  }

  async #call(
    request: IncomingMessage,
    response: ServerResponse,
    signal: AbortSignal,
    upgrade?: Upgrade,
  ): Promise<void> {
    const { id, localAid: local, remoteAid: remote, accessToken } = this.#target();
    const visitor = this.#visitorOf(request, id);
    const { cookie: sentCookies = '' } = request.headers;
    const { question, body } = await inspectRequest(request);
    const isMetadata = isMetadataRequest(request);
    const push = question === null ? await this.#pushStep(request, body, visitor, signal) : null;
    const isRead = question !== null || isMetadata || push?.isRead === true;
    let note = '';
    const rules = {
      sent: (raw: RawHeaders) => {
        const all = headersForAgent(raw, visitor);
        const sent = push === null || push.body === null ? all : filterHeaders(all, (name) => !OF_THE_BODY.test(name));
        return isRead ? cardRequestHeaders(sent) : sent;
      },
      accepted: (raw: RawHeaders, place: ResponsePlace) => headersForProgram(raw, place, visitor, sentCookies),
      begin: (head: ServerResponse) => {
        if (note !== '') head.setHeader('svc-card', note);
        if (visitor.isBrowser) head.appendHeader('content-security-policy', PAGE_POLICY);
      },
    };
    const to = `http://${request.headers.host ?? ''}`;
    const lead = (card: Card) => this.#deps.cards.toLocalCard(card, remote, to, signal);
    const reshapeCard = (answer: CallResponse, place: ResponsePlace) =>
      withLocalCard(answer, question ?? 'document', place, lead, (text) => {
        note = text;
      });
    const reshape = question !== null ? reshapeCard : isMetadata ? withLocalMetadata : push?.reshape;
    const sentBody = push?.body ?? body;
    const target = {
      caller: this.#deps.caller,
      local,
      remote,
      prefix: '',
      path: request.url ?? '/',
      accessToken,
      rules,
      ...(sentBody === null ? {} : { body: sentBody }),
      ...(reshape === undefined ? {} : { reshape }),
    };
    const exchange = { request, response, context: { signal }, ...(upgrade === undefined ? {} : { upgrade }) };
    try {
      await callRemote(exchange, target);
    } catch (error) {
      const local =
        response.headersSent || !canUseSignedCard(request, error) ? null : await this.#signedCard(to, signal);
      if (local === null) throw error;
      response.setHeader('svc-card', `${cardNote(local)}; service=away`);
      sendLocalCard(response, local);
    }
  }

  /** The signed card of the agent, used if its service does not respond. Null if there is none. */
  async #signedCard(to: string, signal: AbortSignal): Promise<LocalCard | null> {
    const { localAid: local, remoteAid: remote } = this.#target();
    try {
      const card = await this.#deps.signedCard(remote, local, signal);
      return card === null ? null : await this.#deps.cards.toLocalCard(card, remote, to, signal);
    } catch (error) {
      this.#deps.log.debug({ agent: remote, error }, 'no signed card replaces the card of the service');
      return null;
    }
  }

  #pushStep(request: IncomingMessage, body: Buffer | null, visitor: OriginClient, signal: AbortSignal) {
    const { caller, push: registry } = this.#deps;
    const { isBrowser, id } = visitor;
    const origin = { ...this.#target(), id };
    const headers = headersForAgent(request.rawHeaders, visitor);
    return handleWebhooks(request, body, { registry, caller, origin, isBrowser, headers, signal });
  }

  #refuse(response: ServerResponse, error: unknown): void {
    const shown = publicError(error, (err) => this.#deps.log.error({ err }, 'a request at a local address failed'));
    this.#failed(shown);
    if (response.destroyed) return;
    if (response.headersSent) return void response.destroy();
    // Shows a program that the daemon responded: a service cannot set this header.
    response.setHeader('svc-error', shown.code);
    sendError(response, shown);
  }

  #failed(failure: SvcError): void {
    const { code } = failure;
    if (code !== 'cancelled') this.#lastError = { code, message: catalogMessage(failure), at: this.#deps.clock.now() };
  }
}

/** Serves local addresses of remote agents. */
export function originServers(dependencies: OriginServerDependencies): ServeOrigin {
  return async (target, port) => {
    const server = new OriginServer(target, dependencies);
    await server.listen(port);
    return server;
  };
}
