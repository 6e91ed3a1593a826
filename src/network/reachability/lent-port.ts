/**
 * A port that was opened from inside and that the QUIC engine listens on now. A NAT mapping belongs to the port, not to
 * the socket, so packets need no forwarding.
 */
import { equalBytes } from '../../foundation/bytes.ts';
import type { Clock } from '../../foundation/clock.ts';
import { abortable } from '../../foundation/deadline.ts';
import { detach } from '../../foundation/detached.ts';
import { SvcError } from '../../foundation/errors.ts';
import { awakeTimeout } from '../../foundation/stall.ts';
import {
  type EngineConnection,
  type EngineServer,
  type EngineStream,
  isPortInUse,
  parsePeer,
  WrappedConnection,
} from '../transport/quic/engine.ts';
import { type EndpointParts, SOCKET_BUFFER_BYTES } from '../transport/quic/native-endpoint.ts';
import { enlargeReceiveBuffers, udpDescriptors } from '../transport/quic/receive-memory.ts';
import { GatedConnection, Gates } from '../transport/tls/gates.ts';
import { type BorrowedPort, bindFailure } from '../transport/udp-socket.ts';

/* An engine connection that returns its first stream, which was already accepted, once more. */

class ReplayedStreamConnection extends WrappedConnection {
  #first: EngineStream | null;

  constructor(inner: EngineConnection, first: EngineStream) {
    super(inner);
    this.#first = first;
  }

  override async inboundStream(): Promise<EngineStream> {
    const first = this.#first;
    this.#first = null;
    return first ?? (await super.inboundStream());
  }
}

/** Time for the expected node to connect, milliseconds. */
export const LENT_PORT_TIMEOUT_MS = 10_000;
/**
 * Handshakes to process at the same time. Several of a birthday round may succeed, and behind an open NAT, packets of strangers can occupy slots.
 */
const PARALLEL_HANDSHAKES = 32;

/** Another program has bound the port since it was opened. */
export class PortTaken extends SvcError {
  constructor(cause: unknown) {
    super('connect_failed', { message: 'Another program has bound the port that was opened. Retry.', cause });
  }
}

interface LentPortOptions {
  /** The local address to listen on: all addresses of a family, or one. */
  readonly host: string;
  readonly port: number;
  /** The key of the expected node. Other nodes are rejected. */
  readonly expectedKey: Uint8Array;
  /** The port of a helper that leads to this one (UDP over TLS). It is closed with this one. */
  readonly via?: BorrowedPort | undefined;
}

export class LentPort {
  readonly #server: EngineServer;
  readonly #gates: Gates | null;
  readonly #options: LentPortOptions;
  readonly #clock: Clock;
  readonly #accepted = Promise.withResolvers<EngineConnection>();
  /** Connections of the expected node that `connection` has not returned. */
  readonly #candidates = new Set<EngineConnection>();
  #isDecided = false;
  #isTaken = false;
  #closing: Promise<void> | null = null;

  /** @throws SvcError `connect_failed` if the engine cannot bind the port; `PortTaken` if another program has bound it */
  constructor(options: LentPortOptions, { engine, config }: EndpointParts, clock: Clock) {
    this.#options = options;
    this.#clock = clock;
    try {
      this.#server = new engine.Server(config, options.host, options.port);
    } catch (cause) {
      options.via?.close();
      throw isPortInUse(cause) ? new PortTaken(cause) : bindFailure(cause);
    }
    this.#gates = options.via === undefined ? null : new Gates(options.via, options.port, clock);
    // Rejections are not unhandled if no caller waits.
    this.#accepted.promise.catch(() => {});
    detach(this.ended.then(() => this.#gates?.close()));
    for (let i = 0; i < PARALLEL_HANDSHAKES; i++) detach(this.#accept());
  }

  /**
   * The first connection on which the expected node opens a stream: of several connections, that node uses this one.
   * The port remains open until the connection closes.
   * @throws SvcError `timeout`, `cancelled`; the port is closed then. `close` settles when it is free, because the
   *   engine finishes pending handshakes first
   */
  async connection(timeoutMs: number = LENT_PORT_TIMEOUT_MS, signal?: AbortSignal): Promise<EngineConnection> {
    using limit = awakeTimeout(this.#clock, timeoutMs, signal);
    try {
      const connection = await abortable(this.#accepted.promise, limit.signal);
      this.#isTaken = true;
      this.#candidates.clear();
      detach(enlargeReceiveBuffers(udpDescriptors(this.#options.port), SOCKET_BUFFER_BYTES));
      const free = (): Promise<void> => this.#server.abort();
      detach(connection.closed().then(free, free));
      return connection;
    } catch (error) {
      detach(this.close());
      throw error;
    }
  }

  get port(): number {
    return this.#options.port;
  }

  /** Settles when the port is no longer used: it was closed without a connection, or the connection was closed. */
  get ended(): Promise<void> {
    const end = (): void => {};
    return this.#accepted.promise.then((connection) => connection.closed().then(end, end), end);
  }

  /**
   * Closes the port unless `connection` has returned one. `connection` rejects with `cancelled`. Settles when the port
   * is free.
   */
  async close(): Promise<void> {
    if (this.#isTaken) return;
    this.#isDecided = true;
    this.#accepted.reject(new SvcError('cancelled'));
    for (const candidate of this.#candidates) candidate.abort();
    this.#closing ??= this.#server.abort();
    await this.#closing;
  }

  async #accept(): Promise<void> {
    while (!this.#isDecided) {
      let connection: EngineConnection;
      try {
        connection = await this.#server.inboundConnection();
      } catch {
        // A failed handshake, or the server was aborted.
        continue;
      }
      await this.#evaluate(this.#throughGate(connection));
    }
  }

  #throughGate(connection: EngineConnection): EngineConnection {
    const peer = parsePeer(connection.remoteMultiaddr());
    const remote = peer === null ? null : (this.#gates?.remoteAt(peer.address) ?? null);
    return remote === null ? connection : new GatedConnection(connection, remote);
  }

  async #evaluate(connection: EngineConnection): Promise<void> {
    const peer = parsePeer(connection.remoteMultiaddr());
    if (this.#isDecided || peer === null || !equalBytes(peer.key, this.#options.expectedKey)) return connection.abort();
    this.#candidates.add(connection);
    try {
      const first = await connection.inboundStream();
      if (this.#isDecided) return connection.abort();
      this.#isDecided = true;
      for (const other of this.#candidates) if (other !== connection) other.abort();
      this.#accepted.resolve(new ReplayedStreamConnection(connection, first));
    } catch {
      this.#candidates.delete(connection);
    }
  }
}
