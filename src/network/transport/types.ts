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
 * A two-way byte stream with back-pressure. `end()` finishes our half (the other side reads a clean
 * end). `destroy()` resets both halves; the other side then reads an error with code
 * `stream_reset`, never a clean end. Where the whole connection ends, the code is `connection_lost`.
 *
 * The other side does not know of a stream before its first byte. Bytes before an `end()` survive a
 * `destroy()` after it; but then the other side learns that we stopped reading only when it writes
 * again, so a caller who may cancel keeps its half open until it has its answer.
 */
export interface Stream extends Duplex {
  readonly connection: Connection;
  /** True if it uses a faster transport than its connection. The system then reports a lost peer immediately. */
  readonly isUpgraded: boolean;
  /** Names who hears of the bytes that are queued in the stream from now on. */
  watchQueue(watch: QueueWatch): void;
  /**
   * Frees the memory of a chunk at once, instead of with a later garbage collection: one that was
   * read from this stream, or that this stream has written to the end. Nobody may look at it again.
   * A chunk that shares its memory with others is left alone. Bulk transfer needs it: at hundreds
   * of megabytes a second the collector would take a third of the CPU time.
   */
  release?(chunk: Buffer): void;
  /**
   * Settles when the engine has let go of a destroyed stream: not before a write that the other side leaves no room for
   * has ended. Missing where nothing outlives the stream.
   */
  whenReleased?(): Promise<void>;
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
  /** How it gets there, and whom limits hold it against. */
  readonly path: Path;
  /** True where we dialled. */
  readonly outbound: boolean;
  /** Smoothed round-trip time, milliseconds. */
  rtt(): number;
  stats(): ConnectionStats;
  /** Opens a stream; rejects where the connection is closed or the peer's stream limit is reached for too long. */
  openStream(): Promise<Stream>;
  /**
   * Receives the streams that the peer opens; set once, right after the connection is handed over.
   * Those that are opened side by side come in any order.
   */
  onStream(handler: (stream: Stream) => void): void;
  /** Settles when the connection has ended, for whatever reason. */
  readonly closed: Promise<void>;
  /** Ends the connection and all its streams at once; what is under way on them is lost. */
  close(): void;
}

export interface DialOptions {
  /** Give up after this many milliseconds. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
  /** What the path is, where the address belongs to something between us and the node. */
  readonly way?: Way;
  /** True where the other node has asked to be dialled: limits count the connection as one that it dialled. */
  readonly isAsked?: boolean;
}

export interface Endpoint {
  start(): Promise<void>;
  stop(): Promise<void>;
  /** Where it listens, port included; only after `start`. The host is 0.0.0.0 where it listens everywhere. */
  readonly address: Address;
  /**
   * Connects to a node.
   * @throws SvcError `connect_failed`, also where the node there proves another key; `timeout`; `cancelled`
   */
  dial(address: Address, expectedKey: Uint8Array, options?: DialOptions): Promise<Connection>;
  /** Receives the connections that others open, after their handshake. Set before `start`. */
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
  /** New streams use the faster transport from now on. */
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

/** A stream for bulk data beside a connection: lost packets do not slow it down. A lost stream has the error `connection_lost`. */
export interface BulkStream extends Duplex {
  /** Smoothed round-trip time, milliseconds. */
  rtt(): number;
  release(chunk: Buffer): void;
}

/** An offer of a bulk stream that waits for its answer. */
export interface OfferedBulkStream {
  readonly offer: Uint8Array;
  /** @throws SvcError `connect_failed` if no stream is possible, or the signal's reason */
  answered(answer: Uint8Array, signal: AbortSignal): Promise<BulkStream>;
  cancel(): void;
}

/** The answer to an offer, and the stream once both ends have heard each other. It rejects as `OfferedBulkStream.answered`. */
export interface TakenBulkStream {
  readonly answer: Uint8Array;
  readonly stream: Promise<BulkStream>;
}

/** Opens bulk streams between two nodes. They exchange an offer and an answer over a connection that they have. */
export interface BulkStreams {
  readonly offerBytes: number;
  /** Size of an answer, bytes. Zeros refuse the offer. */
  readonly answerBytes: number;
  /** Null if there is no room, or if a third node carries the packets of the path. */
  offer(path: Path): OfferedBulkStream | null;
  /** Null as for `offer`. */
  take(offer: Uint8Array, path: Path, signal: AbortSignal): TakenBulkStream | null;
}
