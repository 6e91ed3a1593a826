/** The REST surface: serves the operations table over HTTP behind the gate. */
import { type IncomingMessage, type Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { type Address, formatAddress, parseAddress } from '../../foundation/address.ts';
import type { Clock } from '../../foundation/clock.ts';
import { SECOND_DAEMON_HINT, SvcError } from '../../foundation/errors.ts';
import { parseAid } from '../../foundation/identity/aid.ts';
import type { Component } from '../../foundation/lifecycle.ts';
import type { Log } from '../../foundation/log.ts';
import type { MetricSource } from '../../foundation/metrics.ts';
import type { NodeParts } from '../../foundation/node-parts.ts';
import { listen } from '../../foundation/stream-listeners.ts';
import { type BoundStream, bindStreams, type Upgrade } from '../../operations/handlers/exchange.ts';
import type { ParseAid } from '../../operations/input.ts';
import type { BoundOperation } from '../../operations/operation.ts';
import { pageStreams } from '../../operations/pages.ts';
import { DaemonProver, isProofRequest } from '../daemon-prover.ts';
import { ConnectionLimit, Lingering } from './connections.ts';
import { docsHandlers, openApiHandler } from './docs-page.ts';
import { type AdmittedRequest, isWrite, RequestGate } from './gate.ts';
import { namesManyHosts } from './host.ts';
import { createHttpServer, MAX_HEADER_COUNT } from './listener.ts';
import { HttpMetrics, metricsHandler, ProcessMetrics } from './metrics.ts';
import { openApiDocument } from './openapi.ts';
import { isOpenPath } from './panel-path.ts';
import {
  hasUnreadBody,
  publicError,
  SWITCHING_PROTOCOLS,
  sendError,
  setSecurityHeaders,
  tooManyHeaders,
} from './response.ts';
import { type RoutedRequest, Router } from './router.ts';
import { NO_SESSIONS, type PanelSessions } from './token.ts';

/** Length of the accept queue. Local programs connect in bursts. */
const BACKLOG = 4096;
/** Time for requests in progress to finish when the server stops, in milliseconds. */
const STOP_GRACE_MS = 1_000;

export interface RestServerOptions {
  /** `host:port`. An empty host means all interfaces; port 0 lets the system choose. */
  readonly apiAddr: string;
  /** Requires the token from local programs too. */
  readonly requireLocalToken: boolean;
  /** Version of the daemon for the OpenAPI document. */
  readonly version: string;
}

export interface RestServerDependencies extends NodeParts {
  readonly operations: readonly BoundOperation[];
  /** Routes outside the operations table: event streams, uploads, the gateway, MCP. */
  readonly streams: readonly BoundStream[];
  /**
   * True for a connection that this daemon opened to an agent's service. Its requests do not come from a local program.
   */
  readonly isServiceConnection: (socket: Socket) => boolean;
  /** The current API token; empty if none is set. */
  readonly token: () => string;
  /** Key with which the daemon authenticates itself to its clients. */
  readonly proofKey: Uint8Array;
  /** Reads AIDs in requests. Default: no labels. */
  readonly parseAid?: ParseAid;
  /** Panel sessions, if the panel is enabled. */
  readonly sessions?: PanelSessions;
  /** Additional metrics for `/metrics`. */
  readonly metrics: readonly MetricSource[];
}

/**
 * Observes remote administration: each request before it runs, its tool calls, and its status (null if no response was
 * sent). If it throws, the request or tool call is rejected.
 */
export type AdminObserver = (
  method: string,
  path: string,
) => { readonly tool: (name: string) => void; readonly answered: (status: number | null) => void };

/** Remote administration authenticates and authorizes the caller before it passes on a connection. */
const REMOTE_ADMIN: AdmittedRequest = {
  origin: 'remote_admin',
  authorized: true,
  requireToken: () => {},
  fromPage: false,
  session: null,
};

function bindError(error: unknown, apiAddr: string): SvcError {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
  if (code === 'EADDRINUSE')
    return new SvcError('address_in_use', {
      message: `The API address ${apiAddr} is already in use by another svcd or another program. Stop it, or run a second daemon: ${SECOND_DAEMON_HINT}`,
      details: { address: apiAddr },
      cause: error,
    });
  // A machine that starts may get the address later, and the service manager starts the daemon again.
  if (code === 'EADDRNOTAVAIL')
    return new SvcError('network_unavailable', {
      message: `This machine does not have the API address ${apiAddr} now. Wait for its network, or correct --api-addr.`,
      details: { address: apiAddr },
      cause: error,
    });
  return new SvcError('config_invalid', {
    message: `The API cannot listen on ${apiAddr} (${code}). Choose another address with --api-addr.`,
    details: { key: 'api_addr' },
    cause: error,
  });
}

export class RestServer implements Component {
  readonly #options: RestServerOptions;
  readonly #listenOn: Address;
  /** The listen address, with the actual port while listening. Every link to a local service reads it. */
  #address: Address;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #isServiceConnection: RestServerDependencies['isServiceConnection'];
  readonly #sessions: PanelSessions;
  readonly #gate: RequestGate;
  readonly #prover: DaemonProver;
  readonly #connections = new ConnectionLimit();
  readonly #lingering: Lingering;
  readonly #adminStreams = new WeakMap<Duplex, AdminObserver>();
  readonly #webSockets = new Set<Duplex>();
  readonly #httpMetrics: HttpMetrics;
  readonly #processMetrics: ProcessMetrics;
  readonly #router: Router;
  readonly #server: Server;
  #stopping = false;

  /** @throws SvcError `config_invalid` if `apiAddr` is not a valid address */
  constructor(options: RestServerOptions, dependencies: RestServerDependencies) {
    const { operations, token, sessions = NO_SESSIONS, clock, log, isServiceConnection } = dependencies;
    const listenOn = parseAddress(options.apiAddr);
    if (listenOn === null) throw new SvcError('config_invalid', { details: { key: 'api_addr' } });
    this.#options = options;
    this.#listenOn = listenOn;
    this.#address = listenOn;
    this.#clock = clock;
    this.#processMetrics = new ProcessMetrics(clock);
    this.#lingering = new Lingering(clock);
    this.#log = log;
    this.#isServiceConnection = isServiceConnection;
    this.#gate = new RequestGate(
      { host: listenOn.host, requireLocalToken: options.requireLocalToken },
      { token, sessions, clock },
    );
    this.#prover = new DaemonProver({ key: dependencies.proofKey, token });
    this.#sessions = sessions;
    this.#httpMetrics = new HttpMetrics(() => this.#connections.open);
    const streams: readonly BoundStream[] = [
      ...dependencies.streams,
      ...bindStreams(pageStreams, {
        ...docsHandlers,
        metrics: metricsHandler([
          () => this.#httpMetrics.collect(),
          () => this.#processMetrics.collect(),
          ...dependencies.metrics,
        ]),
        openApi: openApiHandler(() =>
          openApiDocument({
            version: options.version,
            operations: operations.map(({ declaration }) => declaration),
            streams: streams.map(({ declaration }) => declaration),
          }),
        ),
      }),
    ];
    this.#router = new Router(
      { operations, streams },
      {
        clock,
        parseAid: dependencies.parseAid ?? parseAid,
        shown: (error, operation) => this.#shown(error, operation),
      },
    );
    this.#server = createHttpServer((request, response) => this.#handle(request, response));
    this.#server.on('upgrade', (request, socket, head) => this.#upgrade(request, { socket, head }));
    this.#server.on('connection', (socket) => {
      if (this.#adminStreams.has(socket)) return;
      this.#connections.take(socket);
      this.#lingering.watch(socket);
    });
  }

  /**
   * Listens and serves.
   * @throws SvcError `address_in_use`, `network_unavailable` if this machine does not have the address now, `config_invalid`
   */
  async start(): Promise<void> {
    const { host, port } = this.#listenOn;
    await new Promise<void>((resolve, reject) => {
      const failed = (error: Error): void => reject(bindError(error, this.#options.apiAddr));
      const stop = listen(this.#server, { error: failed });
      const listening = (): void => {
        stop();
        const bound = this.#server.address();
        if (bound !== null && typeof bound !== 'string') this.#address = { host: bound.address, port: bound.port };
        this.#server.on('error', (error) => this.#log.error({ err: error }, 'the API listener failed'));
        resolve();
      };
      const named = host === '' ? {} : { host: host === 'localhost' ? '127.0.0.1' : host };
      this.#server.listen({ port, ...named, backlog: BACKLOG }, listening);
    });
    this.#log.info({ address: formatAddress(this.address) }, 'the API is listening');
  }

  /** Stops accepting connections, waits for requests in progress, and destroys slow requests. */
  async stop(): Promise<void> {
    this.#stopping = true;
    this.#address = this.#listenOn;
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    const grace = this.#clock.after(STOP_GRACE_MS, () => this.#server.closeAllConnections());
    for (const socket of this.#webSockets) socket.destroy();
    await closed;
    grace.cancel();
    this.#processMetrics.stop();
  }

  /** The listen address with the actual port. */
  get address(): Address {
    return this.#address;
  }

  /**
   * Serves a connection of remote administration with the same routes, never as local. The caller is already
   * authenticated and authorized.
   */
  serveRemoteAdmin(stream: Duplex, observer: AdminObserver): void {
    if (this.#stopping) return void stream.destroy();
    this.#adminStreams.set(stream, observer);
    this.#server.emit('connection', stream);
  }

  /** A WebSocket request passes the same checks as other requests, so it can be rejected with a normal response. */
  #upgrade(request: IncomingMessage, upgrade: Upgrade): void {
    const { socket } = upgrade;
    this.#webSockets.add(socket);
    socket.once('close', () => this.#webSockets.delete(socket));
    socket.on('error', () => socket.destroy());
    const response = new ServerResponse(request);
    response.shouldKeepAlive = false;
    response.assignSocket(request.socket);
    response.once('finish', () => socket.resume().end(() => socket.destroy()));
    this.#handle(request, response, upgrade);
  }

  #handle(request: IncomingMessage, response: ServerResponse, upgrade?: Upgrade): void {
    if (request.socket.destroyed || !this.#lingering.take(request)) return;
    if (!this.#connections.asked(request, response)) return void request.socket.destroy();
    const startedAt = performance.now();
    setSecurityHeaders(response);
    let state: RoutedRequest | undefined;
    let observed: ReturnType<AdminObserver> | undefined;
    response.once('close', () => {
      const seconds = (performance.now() - startedAt) / 1000;
      const switched = response.statusCode === SWITCHING_PROTOCOLS;
      const status = response.headersSent || switched ? response.statusCode : null;
      this.#httpMetrics.record(state?.operation ?? '', status ?? 499, seconds);
      observed?.answered(status);
      if (this.#stopping) this.#server.closeIdleConnections();
    });
    if (isProofRequest(request) && !this.#adminStreams.has(request.socket)) {
      this.#prover.answer(request, response, (asking, isRight) => this.#gate.checkGuess(asking, isRight));
      return;
    }
    try {
      const { method = '', url = '' } = request;
      observed = this.#adminStreams.get(request.socket)?.(method, url.split('?', 1)[0] ?? '');
      state = { admission: this.#admit(request), upgrade, audit: (tool) => observed?.tool(tool), operation: '' };
      const { session } = state.admission;
      if (session !== null) this.#followSession(session, response, upgrade);
      // The body of a request method without a body is not read.
      if (!isWrite(request.method) && hasUnreadBody(request)) response.shouldKeepAlive = false;
      if (request.headers.expect?.toLowerCase() === '100-continue') response.writeContinue();
      this.#router.serve(request, response, state);
    } catch (error) {
      sendError(response, this.#shown(error, ''));
    }
  }

  /** Destroys a long-lived response when its session ends. Short responses still complete. */
  #followSession(session: string, response: ServerResponse, upgrade: Upgrade | undefined): void {
    const forget = this.#sessions.onEnd(session, () => {
      if (response.headersSent) response.destroy();
      upgrade?.socket.destroy();
    });
    response.once('close', forget);
  }

  #admit(request: IncomingMessage): AdmittedRequest {
    // The router would accept an absolute URL and ignore its host.
    if (request.url?.startsWith('/') !== true)
      throw new SvcError('invalid_request', {
        message: 'The request target must be a path. svcd is not an HTTP proxy.',
      });
    if (request.httpVersionMajor !== 1 || namesManyHosts(request))
      throw new SvcError('invalid_request', {
        message: 'A request must use HTTP/1.1 and have exactly one Host header.',
      });
    if (request.rawHeaders.length / 2 > MAX_HEADER_COUNT) throw tooManyHeaders(MAX_HEADER_COUNT);
    if (this.#adminStreams.has(request.socket)) return REMOTE_ADMIN;
    if (this.#isServiceConnection(request.socket))
      throw new SvcError('access_denied', {
        message: "The daemon's own API cannot be used as the service of an agent.",
      });
    const admission = this.#gate.admit(request);
    // Unknown paths too, so that strangers cannot find out which paths exist.
    if (!admission.authorized && !isOpenPath(request.url)) throw new SvcError('unauthorized');
    return admission;
  }

  #shown(error: unknown, operation: string): SvcError {
    const shown = publicError(error, (err) => this.#log.error({ operation, err }, 'an operation failed unexpectedly'));
    const { code, status, message } = shown;
    if (status >= 500 && code !== 'internal') this.#log.warn({ operation, code }, message);
    return shown;
  }
}
