/**
 * The transport that the rest of the network layer sees: mutually authenticated connections
 * between two node keys, and streams on them. Implemented over the native engine in this folder,
 * and in memory for tests; one compliance suite holds both.
 */
import type { Duplex } from 'node:stream';
import type { Address } from '../../foundation/address.ts';
import type { Path, Way } from '../path.ts';
import type { QueueWatch } from './watched-stream.ts';

/**
 * A two-way byte stream with back-pressure. `end()` finishes our half (the other side reads a clean
 * end). `destroy()` resets both halves; the other side then reads an error with code
 * `stream_reset`, never a clean end. Where the whole connection ends, the code is `connection_lost`.
 *
 * The other side does not know of a stream before its first byte. Bytes before an `end()` survive a
 * `destroy()` after it; but then the other side learns that we stopped reading only when it writes
 * again, so a caller who may cancel keeps its half open until it has its answer.
 */
export interface QuicStream extends Duplex {
  readonly connection: QuicConnection;
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

export interface QuicConnection {
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
  openStream(): Promise<QuicStream>;
  /**
   * Receives the streams that the peer opens; set once, right after the connection is handed over.
   * Those that are opened side by side come in any order.
   */
  onStream(handler: (stream: QuicStream) => void): void;
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

export interface QuicEndpoint {
  start(): Promise<void>;
  stop(): Promise<void>;
  /** Where it listens, port included; only after `start`. The host is 0.0.0.0 where it listens everywhere. */
  readonly address: Address;
  /**
   * Connects to a node.
   * @throws SvcError `connect_failed`, also where the node there proves another key; `timeout`; `cancelled`
   */
  dial(address: Address, expectedKey: Uint8Array, options?: DialOptions): Promise<QuicConnection>;
  /** Receives the connections that others open, after their handshake. Set before `start`. */
  onConnection(handler: (connection: QuicConnection) => void): void;
}
