/** Accepts the connection of one node on a further port of the QUIC engine. */

import { equalBytes } from '../../../foundation/bytes.ts';
import type { Clock } from '../../../foundation/clock.ts';
import { abortable } from '../../../foundation/deadline.ts';
import { detach } from '../../../foundation/detached.ts';
import { SvcError } from '../../../foundation/errors.ts';
import { awakeTimeout } from '../../../foundation/stall.ts';
import { type EngineConnection, type LentPort, type LentPortOptions, PortTaken } from '../engine-connection.ts';
import { bindFailure } from '../udp-socket.ts';
import { type EngineServer, isPortInUse, parsePeer } from './engine.ts';
import { Gates, WrappedConnection } from './gates.ts';
import { type EndpointParts, SOCKET_BUFFER_BYTES } from './native-endpoint.ts';
import { enlargeReceiveBuffers, udpDescriptors } from './receive-memory.ts';

/** Time for the expected node to connect, milliseconds. */
export const LENT_PORT_TIMEOUT_MS = 10_000;
/**
 * Handshakes to process at the same time. Several of a birthday round may succeed, and behind an open NAT, packets of strangers can occupy slots.
 */
const PARALLEL_HANDSHAKES = 32;

export class EngineLentPort implements LentPort {
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

  get ended(): Promise<void> {
    const end = (): void => {};
    return this.#accepted.promise.then((connection) => connection.closed().then(end, end), end);
  }

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
    return remote === null ? connection : new WrappedConnection(connection, { remote });
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
      this.#accepted.resolve(new WrappedConnection(connection, { first }));
    } catch {
      this.#candidates.delete(connection);
    }
  }
}
