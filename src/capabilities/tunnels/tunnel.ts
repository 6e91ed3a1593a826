/** One tunnel: a listener on 127.0.0.1 whose connections go through links to one remote agent. */
import { createServer, type Server, type Socket } from 'node:net';
import { formatAddress } from '../../foundation/address.ts';
import type { Timer } from '../../foundation/clock.ts';
import { detach } from '../../foundation/detached.ts';
import type { CloseReason } from '../../foundation/domain/tunnels.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { NodeParts } from '../../foundation/node-parts.ts';
import { catalogMessage, serviceFailure } from '../../foundation/service-failure.ts';
import { describePortError, resetSocket } from '../../foundation/sockets.ts';
import { listening } from '../../foundation/stream-listeners.ts';
import type { AccessAsk, AskOwner, LinkPath, LinkPaths } from '../../network/links/types.ts';
import { RESUME_MS, type TunnelConnection } from './connection.ts';
import { MAX_CONNECTIONS_PER_CALLER } from './inbound-places.ts';
import { LinkAhead } from './link-ahead.ts';
import { EarlyBytes } from './opening.ts';
import type { OutboundConnections } from './outbound.ts';
import type { ClosedTunnel, NoPath, TunnelFailure, TunnelInfo, TunnelRequest } from './types.ts';

/** Time for a client's link to open, milliseconds. */
const LINK_TIMEOUT_MS = 30_000;
const HOST = '127.0.0.1';
/** The request to the owner of the remote agent. */
export const TUNNEL_ASK: AccessAsk = { kind: 'tunnel', asked: 'TCP', tool: null, note: '', waitS: 0 };

/** Shared by the tunnels of a node. */
export interface TunnelParts extends NodeParts {
  readonly connections: OutboundConnections;
  readonly links: LinkPaths;
  /** Asks the owner of the remote agent after a refused connection. */
  readonly askOwner: AskOwner;
}

export class Tunnel {
  readonly id: string;
  #request: TunnelRequest;
  readonly #parts: TunnelParts;
  readonly #onClosed: (end: ClosedTunnel) => void;
  readonly #server: Server;
  readonly #clients = new Map<Socket, TunnelConnection | null>();
  readonly #openedAt: number;
  /** The last known path. */
  #path: LinkPath;
  /** The newest connection, while it is open. */
  #newest: { readonly socket: Socket; readonly connection: TunnelConnection } | null = null;
  #lastActivityAt: number;
  #bytesUp = 0;
  #bytesDown = 0;
  #lastError: TunnelFailure | null = null;
  #idleTimer: Timer | null = null;
  #closed = false;
  #isOneShot = false;
  #isAsking = false;
  readonly #ahead: LinkAhead;

  constructor(
    id: string,
    request: TunnelRequest,
    path: LinkPath,
    parts: TunnelParts,
    onClosed: (end: ClosedTunnel) => void,
  ) {
    this.id = id;
    this.#request = request;
    this.#path = path;
    this.#parts = parts;
    this.#onClosed = onClosed;
    this.#ahead = new LinkAhead(parts.clock, () => this.#openAhead());
    this.#openedAt = parts.clock.now();
    this.#lastActivityAt = this.#openedAt;
    this.#server = createServer({ allowHalfOpen: true, noDelay: true, pauseOnConnect: true }, (socket) =>
      this.#client(socket),
    );
    this.#server.maxConnections = MAX_CONNECTIONS_PER_CALLER;
  }

  /**
   * Starts to listen.
   * @throws SvcError `port_in_use`
   */
  async listen(): Promise<void> {
    try {
      this.#server.listen(this.request.localPort, HOST);
      await listening(this.#server);
    } catch (error) {
      throw new SvcError('port_in_use', {
        message: `Port ${this.request.localPort} of ${HOST} ${describePortError(error)}. Choose another local_port, or leave it out for a free one.`,
        details: { port: this.request.localPort },
        cause: error,
      });
    }
    // The listener may fail later too, for example without free descriptors. The tunnel stays open.
    this.#server.on('error', (error) =>
      this.#parts.log.warn({ tunnel: this.id, error: error.message }, 'tunnel listener failed'),
    );
    this.#armIdleTimer();
  }

  get request(): TunnelRequest {
    return this.#request;
  }

  /** Later connections use `request`. Its idle timeout starts again if no client is connected. */
  change(request: TunnelRequest): void {
    this.#request = request;
    this.#ahead.drop();
    if (this.#clients.size === 0) this.#armIdleTimer();
  }

  get port(): number {
    const address = this.#server.address();
    return typeof address === 'object' && address !== null ? address.port : this.request.localPort;
  }

  /** The path of the newest connection. Without one, the path of the next connection. */
  #currentPath(): LinkPath {
    const { remoteAid, disableRelay } = this.request;
    this.#path = this.#newest?.connection.path() ?? this.#parts.links.path(remoteAid, disableRelay) ?? this.#path;
    return this.#path;
  }

  info(): TunnelInfo {
    const { kind, remote, rttMs } = this.#currentPath();
    return {
      id: this.id,
      localAid: this.request.localAid,
      remoteAid: this.request.remoteAid,
      listen: `${HOST}:${this.port}`,
      path: kind,
      remoteAddr: remote === null ? '' : formatAddress(remote),
      rttMs,
      openedAt: this.#openedAt,
      lastActivityAt: this.#lastActivityAt,
      activeConns: this.#clients.size,
      bytesUp: this.#bytesUp,
      bytesDown: this.#bytesDown,
      idleTimeoutSec: this.request.idleTimeoutSec,
      noPath: this.#noPath(),
      lastError: this.#lastError,
    };
  }

  #noPath(): NoPath | null {
    const lost = [...this.#clients.values()]
      .map((one) => (one === null ? null : this.#parts.connections.lostAt(one)))
      .filter((at) => at !== null);
    if (lost.length === 0) return null;
    const since = Math.min(...lost);
    return { since, heldUntil: since + RESUME_MS, connections: lost.length };
  }

  /** Accepts one client and closes after it. */
  serveOnlyOne(): void {
    this.#isOneShot = true;
    this.#server.maxConnections = 1;
  }

  /** Disconnects the clients. New clients are served. */
  reset(): void {
    this.#ahead.drop();
    for (const [socket, connection] of this.#clients) {
      resetSocket(socket);
      connection?.destroy();
    }
  }

  /** Closes the tunnel. Its port is free when this settles. */
  async close(reason: CloseReason): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    const end = { ...this.info(), activeConns: 0, closedAt: this.#parts.clock.now(), reason };
    this.#idleTimer?.cancel();
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.reset();
    await closed;
    this.#onClosed(end);
  }

  #client(socket: Socket): void {
    this.#idleTimer?.cancel();
    this.#touch();
    this.#clients.set(socket, null);
    socket.on('error', () => {});
    socket.on('close', () => this.#clientGone(socket));
    this.#serve(socket).catch((error: unknown) => {
      this.#failed(error instanceof SvcError ? error : new SvcError('internal'));
      resetSocket(socket);
    });
  }

  async #serve(socket: Socket): Promise<void> {
    const { localAid, remoteAid, accessToken, disableRelay } = this.request;
    const abort = new AbortController();
    const onGone = (): void => abort.abort();
    socket.once('close', onGone);
    const later = () => ({ accessToken: this.request.accessToken, disableRelay: this.request.disableRelay });
    const early = new EarlyBytes(socket, (bytes) => {
      this.#bytesUp += bytes;
    });
    const options = {
      timeoutMs: LINK_TIMEOUT_MS,
      signal: abort.signal,
      accessToken,
      disableRelay,
      later,
      early,
      ahead: this.#ahead,
    };
    const connection = await this.#parts.connections.open(localAid, remoteAid, options);
    early.stop();
    if (socket.destroyed) return connection.destroy();
    this.#path = connection.path();
    if (this.#path.isUpgraded === true && !this.#isOneShot) this.#ahead.prepare();
    this.#newest = { socket, connection };
    this.#clients.set(socket, connection);
    socket.off('close', onGone);
    const observer = {
      sent: (bytes: number) => {
        this.#bytesUp += bytes;
        this.#touch();
      },
      received: (bytes: number) => {
        this.#bytesDown += bytes;
        this.#touch();
      },
      refused: (failure: SvcError) => this.#failed(failure),
      unanswered: () => this.#failed(serviceFailure('closed')),
    };
    connection.join(socket, observer, true);
  }

  #openAhead() {
    const { localAid, remoteAid, accessToken, disableRelay } = this.request;
    const options = { timeoutMs: LINK_TIMEOUT_MS, accessToken, disableRelay };
    return this.#parts.connections.openAhead(localAid, remoteAid, options);
  }

  #failed(failure: SvcError): void {
    const { code } = failure;
    // A message of the catalog, not of the remote node: assistants read it.
    const message = catalogMessage(failure);
    // A client that disconnected needs no explanation.
    if (code !== 'cancelled') this.#lastError = { code, message, at: this.#parts.clock.now() };
    this.#parts.log.info({ tunnel: this.id, code }, 'tunnel connection failed');
    if (code === 'access_denied') detach(this.#askOwner());
  }

  /** The owner decides about later connections. */
  async #askOwner(): Promise<void> {
    const { localAid, remoteAid, accessToken } = this.request;
    if (this.#isAsking || accessToken !== undefined) return;
    this.#isAsking = true;
    try {
      await this.#parts.askOwner(localAid, remoteAid, TUNNEL_ASK);
    } catch (error) {
      if (error instanceof SvcError && error.code === 'access_pending') this.#failed(error);
    } finally {
      this.#isAsking = false;
    }
  }

  #touch(): void {
    this.#lastActivityAt = this.#parts.clock.now();
  }

  #clientGone(socket: Socket): void {
    const connection = this.#clients.get(socket) ?? null;
    if (connection !== null && this.#parts.connections.isGivenUp(connection))
      this.#failed(new SvcError('connect_failed'));
    this.#clients.delete(socket);
    if (this.#newest?.socket === socket) this.#newest = null;
    this.#touch();
    if (this.#clients.size > 0) return;
    if (this.#isOneShot) detach(this.close('asked'));
    else this.#armIdleTimer();
  }

  #armIdleTimer(): void {
    this.#idleTimer?.cancel();
    const { idleTimeoutSec } = this.request;
    if (this.#closed || idleTimeoutSec === -1) return;
    this.#idleTimer = this.#parts.clock.after(idleTimeoutSec * 1000, () => {
      if (this.#clients.size === 0) detach(this.close('idle'));
    });
  }
}
