/**
 * A port that was opened from inside and is now listened on by the QUIC engine: translations belong to a port, not to
 * a socket, so nothing has to carry packets between the two.
 */
import { equalBytes } from '../../foundation/bytes.ts';
import type { Clock } from '../../foundation/clock.ts';
import { abortable } from '../../foundation/deadline.ts';
import { detach } from '../../foundation/detached.ts';
import { SvcError } from '../../foundation/errors.ts';
import { awakeTimeout } from '../../foundation/stall.ts';
import {
  type EngineConnection,
  type EngineConnectionStats,
  type EngineServer,
  type EngineStream,
  parsePeer,
} from '../transport/quic/engine.ts';
import { type EndpointParts, SOCKET_BUFFER_BYTES } from '../transport/quic/native-endpoint.ts';
import { enlargeReceiveBuffers, udpDescriptors } from '../transport/quic/receive-memory.ts';

/* A connection of the engine whose first stream has been taken already, and is given out once more. */

export class WithFirstStream implements EngineConnection {
  readonly #inner: EngineConnection;
  #first: EngineStream | null;

  constructor(inner: EngineConnection, first: EngineStream) {
    this.#inner = inner;
    this.#first = first;
  }

  async inboundStream(): Promise<EngineStream> {
    const first = this.#first;
    this.#first = null;
    return first ?? (await this.#inner.inboundStream());
  }

  outboundStream(): Promise<EngineStream> {
    return this.#inner.outboundStream();
  }

  remoteMultiaddr(): string {
    return this.#inner.remoteMultiaddr();
  }

  rtt(): number {
    return this.#inner.rtt();
  }

  stats(): EngineConnectionStats {
    return this.#inner.stats();
  }

  closed(): Promise<void> {
    return this.#inner.closed();
  }

  abort(): void {
    this.#inner.abort();
  }
}

/** How long the expected node has to come, milliseconds. */
export const LENT_PORT_TIMEOUT_MS = 10_000;
/**
 * Handshakes that are taken side by side. Some of a birthday's many may succeed, and a stranger's packet may hold a
 * place where the router lets everybody in.
 */
const PARALLEL_HANDSHAKES = 32;

interface LentPortOptions {
  /** Where it listens: every address of a family, or one of this machine. */
  readonly host: string;
  readonly port: number;
  /** Who is expected: everybody else is turned away. */
  readonly expectedKey: Uint8Array;
}

export class LentPort {
  readonly #server: EngineServer;
  readonly #options: LentPortOptions;
  readonly #clock: Clock;
  readonly #found = Promise.withResolvers<EngineConnection>();
  readonly #candidates = new Set<EngineConnection>();
  #isDecided = false;
  #closing: Promise<void> = Promise.resolve();

  /** @throws SvcError `connect_failed` where the port has been taken meanwhile */
  constructor(options: LentPortOptions, { engine, config }: EndpointParts, clock: Clock) {
    this.#options = options;
    this.#clock = clock;
    try {
      this.#server = new engine.Server(config, options.host, options.port);
    } catch (cause) {
      throw new SvcError('connect_failed', { message: 'The port that was opened has been taken meanwhile.', cause });
    }
    // Whether anybody waits for it or not.
    this.#found.promise.catch(() => {});
    for (let i = 0; i < PARALLEL_HANDSHAKES; i++) detach(this.#accept());
  }

  /**
   * The connection on which the expected node opens a stream first: by that it says which one of several it keeps. The
   * port is listened on until it ends.
   * @throws SvcError `timeout`, `cancelled`; the port is given up then, and free again when `close` settles: the engine
   *   waits for handshakes that are under way, which who has waited long enough need not
   */
  async connection(timeoutMs: number = LENT_PORT_TIMEOUT_MS, signal?: AbortSignal): Promise<EngineConnection> {
    using limit = awakeTimeout(this.#clock, timeoutMs, signal);
    try {
      const connection = await abortable(this.#found.promise, limit.signal);
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

  /** Settles when nothing comes to the port any more: it was given up, or its connection has ended. */
  get ended(): Promise<void> {
    const end = (): void => {};
    return this.#found.promise.then((connection) => connection.closed().then(end, end), end);
  }

  /** Settles when a connection came or the port was given up. */
  get settled(): Promise<void> {
    const settle = (): void => {};
    return this.#found.promise.then(settle, settle);
  }

  /** Gives the port up, unless a connection came; who waits for one hears `cancelled`. Settles when the port is free. */
  async close(): Promise<void> {
    if (!this.#isDecided) {
      this.#isDecided = true;
      this.#found.reject(new SvcError('cancelled'));
      for (const candidate of this.#candidates) candidate.abort();
      this.#closing = this.#server.abort();
    }
    await this.#closing;
  }

  async #accept(): Promise<void> {
    while (!this.#isDecided) {
      let connection: EngineConnection;
      try {
        connection = await this.#server.inboundConnection();
      } catch {
        // A handshake that failed; where the server has been aborted, this was the last one.
        continue;
      }
      await this.#consider(connection);
    }
  }

  async #consider(connection: EngineConnection): Promise<void> {
    const peer = parsePeer(connection.remoteMultiaddr());
    if (this.#isDecided || peer === null || !equalBytes(peer.key, this.#options.expectedKey)) return connection.abort();
    this.#candidates.add(connection);
    try {
      const first = await connection.inboundStream();
      if (this.#isDecided) return connection.abort();
      this.#isDecided = true;
      this.#candidates.delete(connection);
      for (const other of this.#candidates) other.abort();
      this.#found.resolve(new WithFirstStream(connection, first));
    } catch {
      this.#candidates.delete(connection);
    }
  }
}
