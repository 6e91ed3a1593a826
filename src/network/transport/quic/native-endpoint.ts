/** The QUIC endpoint of the node: listens, dials, and limits what strangers can use. */

import { setTimeout as sleep } from 'node:timers/promises';
import { type Address, formatAddress } from '../../../foundation/address.ts';
import { type Clock, systemClock } from '../../../foundation/clock.ts';
import { detach } from '../../../foundation/detached.ts';
import type { PathKind } from '../../../foundation/domain/tunnels.ts';
import { SECOND_DAEMON_HINT, SvcError } from '../../../foundation/errors.ts';
import type { KeyPair } from '../../../foundation/identity/keys.ts';
import type { Log } from '../../../foundation/log.ts';
import {
  CONNECTION_WINDOW_BYTES,
  type ConnectionLimits,
  ConnectionTable,
  DEFAULT_CONNECTION_LIMITS,
  MAX_STREAMS_PER_CONNECTION,
  STREAM_WINDOW_BYTES,
} from '../connection-limits.ts';
import type { EngineConnection } from '../engine-connection.ts';
import { borrowedPath, kindByScope, type Path, plainPath, type Way, wayPath } from '../path.ts';
import type { Connection, DialOptions, Endpoint } from '../types.ts';
import type { BorrowedPorts } from '../udp-socket.ts';
import { Acceptor } from './acceptor.ts';
import { Dialer } from './dialer.ts';
import {
  type EngineServer,
  findEngine,
  isPortInUse,
  type Peer,
  parsePeer,
  privateKeyProto,
  type QuicEngine,
} from './engine.ts';
import { InitialGuard } from './initial-guard.ts';
import { NativeConnection } from './native-connection.ts';
import { enlargeReceiveBuffers, ReceiveBudget, udpDescriptors } from './receive-memory.ts';

/** A peer that is silent for this long is lost. */
export const IDLE_TIMEOUT_MS = 15_000;

/**
 * An idle connection sends a packet this often. It is far below the idle timeout, so that a node behind a NAT soon
 * notices a lost helper. Costs less than 50 bytes a second for both sides, with packet headers.
 */
export const KEEP_ALIVE_INTERVAL_MS = 4_000;

/**
 * How long `stop` waits at most until the closing packets are sent: a process that exits immediately does not send
 * them.
 */
const SHUTDOWN_TIMEOUT_MS = 500;

/** How often `stop` checks that. */
const SHUTDOWN_POLL_MS = 10;

/** Socket buffer size requested from the operating system. It may allow less. */
export const SOCKET_BUFFER_BYTES: number = 4 * 1024 * 1024;

/** The engine requires both numbers and uses neither: its datagrams have at most 1,200 bytes. */
const MTU_BYTES = 1_200;

export interface NativeQuicEndpointOptions {
  /** The node's key, proven to every peer. */
  readonly key: KeyPair;
  /** The IP address to listen on. Empty for all addresses of this machine, IPv4 and IPv6. */
  readonly host: string;
  /** 0 selects any free port. */
  readonly port: number;
  readonly limits?: Partial<ConnectionLimits>;
  readonly streamsPerConnection?: number;
  readonly idleTimeoutMs?: number;
}

/** The engine, and its configuration with the node's key. */
export interface EndpointParts {
  readonly engine: QuicEngine;
  readonly config: object;
}

interface NativeQuicEndpointDependencies {
  readonly log: Log;
  readonly clock?: Clock;
  readonly engine?: QuicEngine | undefined;
  /** As `AcceptorOptions.adaptMs`. */
  readonly adaptHandshakesMs?: number | undefined;
  /** Carries dials while UDP does not work. */
  readonly borrowed?: BorrowedPorts;
  /** The kind of the path between our socket and an address. Default: by the address alone. */
  readonly kindOf?: (remote: Address, outbound: boolean) => PathKind;
  /**
   * The source that limits count for a node at an address, instead of its host: lent ports count apart. Default: the
   * host.
   */
  readonly sourceAt?: (host: string, remote: Address, nodeKey: Uint8Array) => string;
  /** As in `ConnectionTable`. */
  readonly isKnown?: (nodeKey: Uint8Array) => boolean;
}

/** A connection of the engine that did not use the sockets of the endpoint. */
interface Adoption {
  /** True if we dialed it and send the hello. */
  readonly outbound: boolean;
  readonly way: Way;
  /** As in `DialOptions`. */
  readonly isAsked?: boolean;
}

export class NativeQuicEndpoint implements Endpoint {
  readonly #options: NativeQuicEndpointOptions;
  readonly #log: Log;
  readonly #clock: Clock;
  readonly #engine: QuicEngine;
  /** As in `FoundEngine`. */
  readonly missing: string | null;
  readonly #borrowed: BorrowedPorts | undefined;
  readonly #kindOf: (remote: Address, outbound: boolean) => PathKind;
  readonly #sourceAt: (host: string, remote: Address, nodeKey: Uint8Array) => string;
  readonly #idleTimeoutMs: number;
  readonly #adaptMs: number | undefined;
  readonly #accepted: ConnectionTable<NativeConnection>;
  readonly #dialled = new Set<NativeConnection>();
  readonly #heldBack: ReceiveBudget;
  #servers: readonly EngineServer[] = [];
  /**
   * Settles when the listening sockets have their buffers. The first incoming connection sets them, in a child process
   * that would take a tenth of the start-up time.
   */
  #buffers: Promise<void> | undefined;
  #acceptors: readonly Acceptor[] = [];
  #guard: InitialGuard | undefined;
  #dialer: Dialer | undefined;
  #parts: EndpointParts | undefined;
  #address: Address | undefined;
  #handler: ((connection: Connection) => void) | undefined;

  constructor(options: NativeQuicEndpointOptions, dependencies: NativeQuicEndpointDependencies) {
    this.#options = options;
    this.#log = dependencies.log;
    this.#clock = dependencies.clock ?? systemClock;
    const { engine, missing } = findEngine(dependencies.engine);
    this.#engine = engine;
    this.missing = missing;
    this.#borrowed = dependencies.borrowed;
    this.#kindOf = dependencies.kindOf ?? kindByScope;
    this.#sourceAt = dependencies.sourceAt ?? ((host) => host);
    this.#idleTimeoutMs = options.idleTimeoutMs ?? IDLE_TIMEOUT_MS;
    this.#adaptMs = dependencies.adaptHandshakesMs;
    this.#accepted = new ConnectionTable({ ...DEFAULT_CONNECTION_LIMITS, ...options.limits }, dependencies.isKnown);
    this.#heldBack = new ReceiveBudget(() => this.#connections(), this.#clock, this.#log, dependencies.isKnown);
  }

  /** @throws SvcError `address_in_use`, `network_unavailable` if this machine does not have the address now */
  async start(): Promise<void> {
    const config = this.#config();
    this.#parts = { engine: this.#engine, config };
    const { host, port } = this.#options;
    this.#servers = host === '' ? this.#listenEverywhere(config, port) : [this.#listen(config, host, port)];
    const bound = this.#servers[0]?.port() ?? port;
    this.#address = { host: host === '' ? '0.0.0.0' : host, port: bound };
    this.#dialer = new Dialer({ engine: this.#engine, config }, { clock: this.#clock, borrowed: this.#borrowed });
    const dependencies = { clock: this.#clock, log: this.#log };
    const onConnection = (connection: EngineConnection): void => this.#accept(connection);
    const guard = new InitialGuard(() => udpDescriptors(bound), this.#clock, this.#log);
    this.#guard = guard;
    const accepting = {
      idleTimeoutMs: this.#idleTimeoutMs,
      adaptMs: this.#adaptMs,
      onConnection,
      onFlood: () => detach(guard.alarm()),
    };
    this.#acceptors = this.#servers.map((server) => new Acceptor(server, accepting, dependencies));
    for (const acceptor of this.#acceptors) acceptor.start();
    this.#heldBack.start();
  }

  #config(): object {
    return new this.#engine.QuinnConfig({
      privateKeyProto: privateKeyProto(this.#options.key),
      handshakeTimeout: this.#idleTimeoutMs,
      shutdownTimeout: SHUTDOWN_TIMEOUT_MS,
      maxIdleTimeout: this.#idleTimeoutMs,
      keepAliveInterval: Math.min(KEEP_ALIVE_INTERVAL_MS, Math.ceil(this.#idleTimeoutMs / 3)),
      maxConcurrentStreamLimit: this.#options.streamsPerConnection ?? MAX_STREAMS_PER_CONNECTION,
      maxStreamData: STREAM_WINDOW_BYTES,
      maxConnectionData: CONNECTION_WINDOW_BYTES,
      receiveBufferSize: SOCKET_BUFFER_BYTES,
      sendBufferSize: SOCKET_BUFFER_BYTES,
      initialMtu: MTU_BYTES,
      mtuUpperBound: MTU_BYTES,
    });
  }

  #listen(config: object, host: string, port: number): EngineServer {
    try {
      return new this.#engine.Server(config, host, port);
    } catch (cause) {
      const inUse = isPortInUse(cause);
      const where = formatAddress({ host, port });
      const message = inUse
        ? `UDP address ${where} is in use by another svcd or another program. Stop it, or choose another address with quic_listen_addr (default: the port after --listen). To run a second svcd: ${SECOND_DAEMON_HINT}`
        : `UDP address ${where} cannot be used now (${cause instanceof Error ? cause.message : 'unknown failure'}). If it is an address of this machine, wait for its network. Otherwise correct quic_listen_addr or listen_addr.`;
      throw new SvcError(inUse ? 'address_in_use' : 'network_unavailable', { message, cause });
    }
  }

  /**
   * The engine's IPv6 sockets do not accept IPv4, so there are two sockets on one port. The machine may have no IPv6.
   */
  #listenEverywhere(config: object, port: number): readonly EngineServer[] {
    const v4 = this.#listen(config, '0.0.0.0', port);
    try {
      return [v4, this.#listen(config, '::', v4.port())];
    } catch (error) {
      this.#log.info({ error: String(error) }, 'no QUIC over IPv6');
      return [v4];
    }
  }

  /** For further sockets. Only after `start`. */
  get parts(): EndpointParts {
    if (this.#parts === undefined) throw new Error('the QUIC endpoint has not been started');
    return this.#parts;
  }

  get address(): Address {
    if (this.#address === undefined) throw new Error('the QUIC endpoint has not been started');
    return this.#address;
  }

  onConnection(handler: (connection: Connection) => void): void {
    this.#handler = handler;
  }

  #accept(native: EngineConnection): void {
    const peer = parsePeer(native.remoteMultiaddr());
    if (peer === null) return native.abort();
    this.#buffers ??= enlargeReceiveBuffers(udpDescriptors(this.address.port), SOCKET_BUFFER_BYTES);
    const path = plainPath(this.#kindOf(peer.address, false), peer.address);
    this.#take(this.#wrap(native, peer, path, false));
  }

  /** Passes on a connection that another node dialed, if the limits allow it. */
  #take(connection: NativeConnection): void {
    const refusal = this.#handler === undefined ? 'not_taken' : this.#accepted.admit(connection);
    if (refusal !== null) {
      this.#log.debug({ source: connection.path.source, refusal }, 'QUIC connection refused');
      return connection.close();
    }
    detach(connection.closed.then(() => this.#accepted.remove(connection)));
    this.#handler?.(connection);
  }

  #wrap(native: EngineConnection, { key }: Peer, path: Path, outbound: boolean): NativeConnection {
    this.#heldBack.onConnection();
    const source = this.#sourceAt(path.source, path.remote, key);
    const counted = { ...path, source };
    return new NativeConnection({ native, remoteKey: key, path: counted, outbound }, { clock: this.#clock });
  }

  /**
   * Tracks a connection that we dialed until it ends.
   * @throws SvcError `connect_failed` if the peer asked for it and has reached its limit
   */
  #keep(connection: NativeConnection, isAsked: boolean = false): void {
    if (!isAsked) this.#dialled.add(connection);
    else if (this.#accepted.admit(connection) !== null) {
      connection.close();
      throw new SvcError('connect_failed', { message: 'The node has too many connections to this one.' });
    }
    detach(
      connection.closed.then(() => {
        this.#dialled.delete(connection);
        this.#accepted.remove(connection);
      }),
    );
  }

  /**
   * Adds a connection of the engine that uses another socket of this process. If the peer dialed it, the
   * limits and the handler of the endpoint apply, and it may be closed on return.
   * @throws SvcError `connect_failed` if the peer has not proven a known kind of key, or the endpoint is stopped
   */
  adopt(native: EngineConnection, { outbound, way, isAsked }: Adoption): Connection {
    const peer = parsePeer(native.remoteMultiaddr());
    if (peer === null || this.#dialer === undefined) {
      native.abort();
      throw new SvcError('connect_failed');
    }
    const path = native.isBorrowed === true ? borrowedPath(way, peer) : wayPath(way, peer);
    const connection = this.#wrap(native, peer, path, outbound);
    if (outbound) this.#keep(connection, isAsked);
    else this.#take(connection);
    return connection;
  }

  async dial(address: Address, expectedKey: Uint8Array, options: DialOptions = {}): Promise<Connection> {
    if (this.#dialer === undefined)
      throw new SvcError('connect_failed', { message: 'The QUIC endpoint is not running.' });
    const { native, peer } = await this.#dialer.dial(address, expectedKey, options);
    const path = this.#dialledPath(native, peer, options.way);
    const connection = this.#wrap(native, peer, path, true);
    this.#keep(connection, options.isAsked);
    return connection;
  }

  #dialledPath(native: EngineConnection, peer: Peer, way: Way | undefined): Path {
    if (native.isBorrowed === true) return borrowedPath(way, peer);
    return way === undefined ? plainPath(this.#kindOf(peer.address, true), peer.address) : wayPath(way, peer);
  }

  /**
   * The local port of dials over IPv6.
   * @throws SvcError `connect_failed` if the endpoint is stopped, or this machine has no IPv6
   */
  async ipv6DialPort(): Promise<number> {
    if (this.#dialer === undefined) throw new SvcError('connect_failed');
    return await this.#dialer.ipv6Port();
  }

  /** Later dials use new local ports. */
  renewPorts(): void {
    this.#dialer?.renew();
  }

  #connections(): NativeConnection[] {
    return [...this.#accepted, ...this.#dialled];
  }

  async stop(): Promise<void> {
    this.#heldBack.stop();
    for (const acceptor of this.#acceptors) acceptor.stop();
    const connections = this.#connections();
    for (const connection of connections) connection.close();
    if (connections.length > 0) await this.#closingPackets(connections);
    this.#dialer?.stop();
    this.#dialer = undefined;
    await this.#buffers;
    await this.#guard?.stop();
    await Promise.all(this.#servers.map((server) => server.abort()));
  }

  async #closingPackets(connections: readonly NativeConnection[]): Promise<void> {
    // Real time: the engine does not use the injected clock.
    for (let waited = 0; waited < SHUTDOWN_TIMEOUT_MS; waited += SHUTDOWN_POLL_MS) {
      await sleep(SHUTDOWN_POLL_MS);
      if (!connections.some(({ closing }) => closing)) break;
    }
    await Promise.all(connections.map(({ closed }) => closed));
  }
}
