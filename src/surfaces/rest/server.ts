/** The REST surface: the operations table over HTTP, behind the gate. */

import { type IncomingMessage, type Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { type Address, formatAddress, parseAddress } from '../../foundation/address.ts';
import type { Clock } from '../../foundation/clock.ts';
import { detach } from '../../foundation/detached.ts';
import { SECOND_DAEMON_COMMAND, SvcError } from '../../foundation/errors.ts';
import type { Component } from '../../foundation/lifecycle.ts';
import type { Log } from '../../foundation/log.ts';
import type { MetricSource } from '../../foundation/metrics.ts';
import { listen } from '../../foundation/stream-listeners.ts';
import { type BoundStream, bindStreams, type Upgrade } from '../../operations/handlers/exchange.ts';
import { rememberingParseAid } from '../../operations/input.ts';
import type { BoundOperation } from '../../operations/operation.ts';
import { pageStreams } from '../../operations/pages.ts';
import { DaemonProver, isProofRequest } from '../daemon-prover.ts';
import { hasUnreadBody, SWITCHED, sendError, setSecurityHeaders, shownError, tooManyHeaders } from './answer.ts';
import { ConnectionLimit } from './connections.ts';
import { docsHandlers, openApiHandler } from './docs-page.ts';
import { type AdmittedRequest, RequestGate } from './gate.ts';
import { namesManyHosts } from './host.ts';
import { HttpMetrics } from './http-metrics.ts';
import { Lingering } from './lingering.ts';
import { createHttpServer, MAX_HEADER_COUNT } from './listener.ts';
import { metricsHandler } from './metrics-page.ts';
import { openApiDocument } from './openapi.ts';
import { isOpenPath } from './panel-path.ts';
import { ProcessMetrics } from './process-metrics.ts';
import { type RequestState, RequestStates } from './request-state.ts';
import { isWrite } from './route-checks.ts';
import { Routers } from './routers.ts';
import { NO_SESSIONS, type PanelSessions } from './token.ts';

/** Connections that the system holds until they are taken: bursts of programs on this machine come at once. */
const BACKLOG = 4096;
/** How long requests under way may take to end when the server stops. */
const STOP_GRACE_MS = 1_000;

export interface RestServerOptions {
  /** `host:port`; an empty host is every interface, port 0 lets the system choose. */
  readonly apiAddr: string;
  /** Asks programs on this machine for the token too. */
  readonly requireLocalToken: boolean;
  /** Version of the daemon, for the OpenAPI document. */
  readonly version: string;
}

export interface RestServerDependencies {
  readonly operations: readonly BoundOperation[];
  /** Routes that are served by hand: event streams, uploads, the gateway, MCP. */
  readonly streams: readonly BoundStream[];
  /** True for a connection that this daemon made to the service of an agent: whoever speaks there is no program of this machine. */
  readonly isServiceConnection: (socket: Socket) => boolean;
  /** The API token of this moment; empty for none. */
  readonly token: () => string;
  /** Key by which the daemon proves itself to its clients. */
  readonly proofKey: Uint8Array;
  /** Sessions of the panel; left out for none. */
  readonly sessions?: PanelSessions;
  /** What `/metrics` shows beside the figures of the API and of the process. */
  readonly metrics: readonly MetricSource[];
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Told of each request on a connection of remote administration before it runs, of the tools that it
 * calls, and of its status (null: it was never answered). What it throws refuses the request, or the tool.
 */
export type AdminObserver = (
  method: string,
  path: string,
) => { readonly tool: (name: string) => void; readonly answered: (status: number | null) => void };

/** Remote administration proves and authorises its caller before a connection is handed over. */
const REMOTE_ADMIN: AdmittedRequest = {
  origin: 'remote_admin',
  authorised: true,
  requireToken: () => {},
  fromPage: false,
  session: null,
};

function bindError(error: unknown, apiAddr: string): SvcError {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
  if (code === 'EADDRINUSE')
    return new SvcError('address_in_use', {
      message: `The API address ${apiAddr} is already in use: by another svcd, or by another program. Stop it, or run a second one beside it: ${SECOND_DAEMON_COMMAND}`,
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
  /** Where it listens: with the port that the system chose, while it does. Each link to a service here asks. */
  #address: Address;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #isServiceConnection: RestServerDependencies['isServiceConnection'];
  readonly #sessions: PanelSessions;
  readonly #gate: RequestGate;
  readonly #prover: DaemonProver;
  readonly #states = new RequestStates();
  readonly #connections = new ConnectionLimit();
  readonly #lingering: Lingering;
  readonly #adminStreams = new WeakMap<Duplex, AdminObserver>();
  readonly #webSockets = new Set<Duplex>();
  readonly #httpMetrics: HttpMetrics;
  readonly #processMetrics = new ProcessMetrics();
  readonly #routers: Routers;
  readonly #server: Server;
  #stopping = false;

  /** @throws SvcError `config_invalid` where `apiAddr` is no address */
  constructor(options: RestServerOptions, dependencies: RestServerDependencies) {
    const { operations, token, sessions = NO_SESSIONS, clock, log, isServiceConnection } = dependencies;
    const listenOn = parseAddress(options.apiAddr);
    if (listenOn === null) throw new SvcError('config_invalid', { details: { key: 'api_addr' } });
    this.#options = options;
    this.#listenOn = listenOn;
    this.#address = listenOn;
    this.#clock = clock;
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
    this.#routers = new Routers(
      { operations, streams },
      {
        clock,
        states: this.#states,
        parseAid: rememberingParseAid(),
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
   * Binds the address and serves.
   * @throws SvcError `address_in_use`, `config_invalid`
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
    await this.#processMetrics.start();
    this.#log.info({ address: formatAddress(this.address) }, 'the API is listening');
  }

  /** Refuses new connections, lets requests under way end, and cuts what takes too long. */
  async stop(): Promise<void> {
    this.#stopping = true;
    this.#address = this.#listenOn;
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    const grace = this.#clock.after(STOP_GRACE_MS, () => this.#server.closeAllConnections());
    for (const socket of this.#webSockets) socket.destroy();
    await closed;
    grace.cancel();
    await this.#processMetrics.stop();
    await this.#routers.close();
  }

  /** Where the API listens, with the port that the system chose. */
  get address(): Address {
    return this.#address;
  }

  /**
   * Serves a connection that remote administration accepted: the same routes, never local. The caller
   * has proven who speaks and that they may.
   */
  serveRemoteAdmin(stream: Duplex, observer: AdminObserver): void {
    if (this.#stopping) return void stream.destroy();
    this.#adminStreams.set(stream, observer);
    this.#server.emit('connection', stream);
  }

  /** A request for a WebSocket takes the way of every other: it can be refused on the same response. */
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
    let state: RequestState | undefined;
    let observed: ReturnType<AdminObserver> | undefined;
    response.once('close', () => {
      const seconds = (performance.now() - startedAt) / 1000;
      const switched = response.statusCode === SWITCHED;
      const status = response.headersSent || switched ? response.statusCode : null;
      this.#httpMetrics.record(state?.operation ?? '', status ?? 499, seconds);
      observed?.answered(status);
      if (this.#stopping) this.#server.closeIdleConnections();
    });
    if (isProofRequest(request) && !this.#adminStreams.has(request.socket)) {
      detach(this.#prover.answer(request, response, this.#address.port));
      return;
    }
    try {
      const { method = '', url = '' } = request;
      observed = this.#adminStreams.get(request.socket)?.(method, url.split('?', 1)[0] ?? '');
      state = { admission: this.#admit(request), upgrade, audit: (tool) => observed?.tool(tool), operation: '' };
      this.#states.set(request, state);
      const { session } = state.admission;
      if (session !== null) this.#followSession(session, response, upgrade);
      // A body where none belongs is not read.
      if (!isWrite(request.method) && hasUnreadBody(request)) response.shouldKeepAlive = false;
      if (request.headers.expect?.toLowerCase() === '100-continue') response.writeContinue();
      this.#routers.route(request, response, (error) => sendError(response, this.#shown(error, '')));
    } catch (error) {
      sendError(response, this.#shown(error, ''));
    }
  }

  /** Cuts an answer without end when the session ends that asked for it; short ones still arrive. */
  #followSession(session: string, response: ServerResponse, upgrade: Upgrade | undefined): void {
    const forget = this.#sessions.whenEnds(session, () => {
      if (response.headersSent) response.destroy();
      upgrade?.socket.destroy();
    });
    response.once('close', forget);
  }

  #admit(request: IncomingMessage): AdmittedRequest {
    // The router would take a whole URL and ignore whose it is.
    if (request.url?.startsWith('/') !== true)
      throw new SvcError('invalid_request', { message: 'The target of a request is a path: this is no proxy.' });
    if (request.httpVersionMajor !== 1 || namesManyHosts(request))
      throw new SvcError('invalid_request', { message: 'A request is of HTTP/1.1 and has one Host header.' });
    if (request.rawHeaders.length / 2 > MAX_HEADER_COUNT) throw tooManyHeaders(MAX_HEADER_COUNT);
    if (this.#adminStreams.has(request.socket)) return REMOTE_ADMIN;
    if (this.#isServiceConnection(request.socket))
      throw new SvcError('access_denied', { message: "The daemon's own API is no service of an agent." });
    const admission = this.#gate.admit(request);
    // Unknown paths too: a stranger does not learn which ones there are.
    if (!admission.authorised && !isOpenPath(request.url)) throw new SvcError('unauthorized');
    return admission;
  }

  #shown(error: unknown, operation: string): SvcError {
    const shown = shownError(error, (err) => this.#log.error({ operation, err }, 'an operation failed unexpectedly'));
    const { code, status, message } = shown;
    if (status >= 500 && code !== 'internal') this.#log.warn({ operation, code }, message);
    return shown;
  }
}
