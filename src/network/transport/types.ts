/**
 * The transport interface: mutually authenticated connections between two node keys, and streams on them. Adapters
 * implement it in the folders below: the native QUIC engine, TCP between LAN peers, and UDP lanes. Tests use an in-memory
 * adapter. One conformance suite tests all of them. Code above this folder does not know which adapter carries a stream.
 */
import type { Duplex } from 'node:stream';
import type { Address } from '../../foundation/address.ts';
import type { Component } from '../../foundation/lifecycle.ts';
import type { Path, Way } from './path.ts';
import type { QueueWatch } from './stream.ts';

/**
 * A two-way byte stream with back-pressure. `end()` finishes our half; the peer then reads a clean end. `destroy()`
 * resets both halves; the peer then gets an error with code `stream_reset`, never a clean end. If the connection is
 * lost, the code is `connection_lost`.
 *
 * The peer learns about a stream with its first byte. Bytes before `end()` arrive even if `destroy()` follows. In that
 * case the peer may not notice that we stopped reading until it writes again, so a caller that may cancel does not end
 * its half before it has the response.
 */
export interface Stream extends Duplex {
  readonly connection: Connection;
  /** True if it uses a faster transport than its connection. The system then reports a lost peer immediately. */
  readonly isUpgraded: boolean;
  /** Sets the receiver of changes of the queued bytes. */
  watchQueue(watch: QueueWatch): void;
  /**
   * Frees the memory of a chunk immediately instead of at the next garbage collection. The chunk was read from this
   * stream, or the stream has finished writing it, and it must not be used again. A chunk that shares its memory is
   * ignored. Bulk transfer needs this: at hundreds of megabytes a second, garbage collection would use a third of the
   * CPU time.
   */
  release?(chunk: Buffer): void;
  /**
   * Settles when the engine has released a destroyed stream, which a blocked write can delay. Missing if the adapter
   * keeps nothing after `close`.
   */
  whenReleased?(): Promise<void>;
  /** Sets what each write waits for, so that little of it is queued in the engine. Missing if the adapter cannot wait. */
  setPace?(pace: WritePace): void;
  /**
   * Both sides have agreed to continue on another stream, or wait for each other's last word (null: they stay here).
   * Each half continues there after its bytes on this stream, whose end is then no end for the reader. Missing if the
   * adapter cannot.
   */
  continueOn?(next: Promise<BulkStream | null>): void;
}

/** Decides when a stream may pass more bytes to its engine. */
export interface WritePace {
  /** Largest part for the next `before`, bytes. */
  readonly maxBytes: number;
  /** Null if these bytes may be passed now. Settles when they may, or when the stream has closed or moved. */
  before(bytes: number): Promise<void> | null;
}

export interface ConnectionStats {
  readonly bytesSent: number;
  readonly bytesReceived: number;
  readonly packetsSent: number;
  readonly packetsLost: number;
}

export interface Connection {
  /** The Ed25519 public key that the other node proved in the handshake. */
  readonly remoteKey: Uint8Array;
  /** Its path, and the source for limits. */
  readonly path: Path;
  /** True if we dialed. */
  readonly outbound: boolean;
  /** Smoothed round-trip time, milliseconds. */
  rtt(): number;
  stats(): ConnectionStats;
  /** Opens a stream. Rejects if the connection is closed or the peer's stream limit is not freed in time. */
  openStream(): Promise<Stream>;
  /**
   * Receives the streams that the peer opens. Set once, immediately after receiving the connection. Streams that are
   * opened at the same time arrive in any order.
   */
  onStream(handler: (stream: Stream) => void): void;
  /** Settles when the connection is closed for any reason. */
  readonly closed: Promise<void>;
  /** Ends the connection and all its streams immediately. Data in transit is lost. */
  close(): void;
}

export interface DialOptions {
  /** Timeout, milliseconds. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
  /** The path, if the address is not the node's. */
  readonly way?: Way;
  /** True to use no port of another node. */
  readonly isFromOwnPort?: boolean;
  /** True if the peer asked us to dial. Limits then count the connection as dialed by the peer. */
  readonly isAsked?: boolean;
}

export interface Endpoint {
  start(): Promise<void>;
  stop(): Promise<void>;
  /** The listening address, with the port. Only after `start`. The host is 0.0.0.0 for all interfaces. */
  readonly address: Address;
  /**
   * Connects to a node.
   * @throws SvcError `connect_failed`, also if the node proves another key; `timeout`; `cancelled`
   */
  dial(address: Address, expectedKey: Uint8Array, options?: DialOptions): Promise<Connection>;
  /** Receives the connections that other nodes open, after their handshake. Set before `start`. */
  onConnection(handler: (connection: Connection) => void): void;
}

/** The traffic of a connection over a faster transport. */
export interface UpgradeState {
  /** Bytes. */
  sent: number;
  received: number;
  /** True if new streams of this node use it. */
  isReady: boolean;
}

/** The connection of a new stream. */
export interface UpgradePeer {
  readonly connection: Connection;
  readonly state: UpgradeState;
  /** Sends a request to the peer over the connection. Null if the peer does not know it or refuses. */
  readonly request: (body: Uint8Array) => Promise<Uint8Array | null>;
  /** New streams can use the faster transport. */
  readonly onReady: () => void;
}

/** The connection of a request. */
export interface UpgradeCaller {
  readonly connection: Connection;
  readonly state: UpgradeState;
  /** Receives streams that the peer opens over the faster transport. */
  readonly onStream: (stream: Stream) => void;
}

/** Opens streams of a connection over a faster transport that both nodes agree on. */
export interface StreamUpgrade extends Component {
  /** Largest request, bytes. */
  readonly maxRequestBytes: number;
  /** Size of a response, bytes. */
  readonly responseBytes: number;
  /** A new stream, or null if the connection must carry it. */
  open(peer: UpgradePeer): Stream | null;
  /** The response to a request, or null to refuse. @throws SvcError `protocol_error` for a malformed request */
  answer(request: Uint8Array, caller: UpgradeCaller): Promise<Uint8Array | null>;
}

/** A stream for bulk data in addition to a connection: lost packets do not slow it down. A lost stream has the error `connection_lost`. */
export interface BulkStream extends Duplex {
  /** Smoothed round-trip time, milliseconds. */
  rtt(): number;
  /** Bytes of packets received. */
  received(): number;
  release(chunk: Buffer): void;
}

/** An offer of a bulk stream that waits for its answer. */
export interface OfferedBulkStream {
  readonly offer: Uint8Array;
  /** @throws SvcError `connect_failed` if no stream is possible, or the signal's reason */
  answered(answer: Uint8Array, signal: AbortSignal): Promise<BulkStream>;
  cancel(): void;
}

/**
 * The answer to an offer, and the stream after a packet has arrived at both ends. It rejects as
 * `OfferedBulkStream.answered`.
 */
export interface TakenBulkStream {
  readonly answer: Uint8Array;
  readonly stream: Promise<BulkStream>;
}

export interface BulkOptions {
  /** True if a slow reader should slow the writer down. Both sides pass the same. Default: the reader must be fast. */
  readonly hasBackPressure?: boolean;
}

/** Opens bulk streams between two nodes. They exchange an offer and an answer over a connection that they have. */
export interface BulkStreams {
  readonly offerBytes: number;
  /** Size of an answer, bytes. Zeros refuse the offer. */
  readonly answerBytes: number;
  /** Null if there is no room, or if a third node carries the packets of the path. */
  offer(path: Path, options?: BulkOptions): OfferedBulkStream | null;
  /** Null as for `offer`. */
  take(offer: Uint8Array, path: Path, signal: AbortSignal, options?: BulkOptions): TakenBulkStream | null;
}
