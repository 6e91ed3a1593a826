/** A connection of the engine, after its handshake. */

import type { Clock, Timer } from '../../../foundation/clock.ts';
import { detach } from '../../../foundation/detached.ts';
import { SvcError } from '../../../foundation/errors.ts';
import { awakeClock } from '../../../foundation/stall.ts';
import { CONNECTION_WINDOW_BYTES, OPEN_STREAM_TIMEOUT_MS, STREAM_WINDOW_BYTES } from '../connection-limits.ts';
import type { EngineConnection, EngineStream } from '../engine-connection.ts';
import type { Path } from '../path.ts';
import { StreamError } from '../stream.ts';
import type { Connection, ConnectionStats, Stream } from '../types.ts';
import { NativeStream } from './native-stream.ts';

/**
 * Destroyed streams that the engine cannot release, because the peer neither reads nor writes on them. A peer with more such streams for some time loses the connection.
 */
const MAX_STUCK_STREAMS = 128;

/** Time for the peer to release them: thousands of streams can end at the same time. */
export const STUCK_GRACE_MS = 8_000;

/** Memory that the engine reserves for the streams of a connection, bytes. It is freed with the connection object. */
const ENGINE_BYTES = 370_000;
/** Counts this many times for the garbage collector, which starts at 64 MiB and takes some time. */
const WEIGHT = 2;

/**
 * Tells the garbage collector how much memory a connection uses in the engine, so that it runs before closed
 * connections use much: strangers can open and close hundreds a second. The pages of a resizable buffer are never
 * touched, so the buffer itself uses no memory.
 */
const weights = new WeakMap<EngineConnection, ArrayBuffer>();

/** Pending accept calls in the engine. */
const PARALLEL_ACCEPTS = 4;

interface NativeConnectionOptions {
  readonly native: EngineConnection;
  /** The key that the other node proved. */
  readonly remoteKey: Uint8Array;
  readonly path: Path;
  readonly outbound: boolean;
}

export class NativeConnection implements Connection {
  readonly remoteKey: Uint8Array;
  readonly path: Path;
  readonly outbound: boolean;
  readonly closed: Promise<void>;
  readonly #native: EngineConnection;
  readonly #clock: Clock;
  readonly #streams = new Set<NativeStream>();
  #stuckStreams = 0;
  #stuckTimer: Timer | undefined;
  #ended = false;
  #accepting = false;
  /** Datagrams sent before we closed. Null unless this side closed first. */
  #sentBeforeClose: number | null = null;

  constructor(options: NativeConnectionOptions, dependencies: { readonly clock: Clock }) {
    this.#native = options.native;
    weights.set(this.#native, new ArrayBuffer(WEIGHT * ENGINE_BYTES, { maxByteLength: WEIGHT * ENGINE_BYTES }));
    this.#clock = dependencies.clock;
    this.remoteKey = options.remoteKey;
    this.path = options.path;
    this.outbound = options.outbound;
    const end = (): void => this.#end();
    this.closed = this.#native.closed().then(end, end);
  }

  rtt(): number {
    return this.#native.rtt();
  }

  stats(): ConnectionStats {
    const { udpTxBytes, udpRxBytes, pathSentPackets, pathLostPackets } = this.#native.stats();
    return {
      bytesSent: udpTxBytes,
      bytesReceived: udpRxBytes,
      packetsSent: pathSentPackets,
      packetsLost: pathLostPackets,
    };
  }

  openStream(): Promise<Stream> {
    if (this.#ended) return Promise.reject(new SvcError('connect_failed'));
    return new Promise((resolve, reject) => {
      let waiting = true;
      const timer = awakeClock(this.#clock).after(OPEN_STREAM_TIMEOUT_MS, () => {
        waiting = false;
        reject(new SvcError('timeout', { message: 'The other node rejects further streams on this connection.' }));
      });
      this.#native.outboundStream().then(
        (native) => {
          timer.cancel();
          const stream = this.#wrap(native);
          if (waiting && !this.#ended) resolve(stream);
          else stream.destroy();
          if (this.#ended) reject(new SvcError('connect_failed'));
        },
        (cause: unknown) => {
          timer.cancel();
          reject(new SvcError('connect_failed', { cause }));
        },
      );
    });
  }

  onStream(handler: (stream: Stream) => void): void {
    if (this.#accepting) throw new Error('onStream is called once');
    this.#accepting = true;
    // Until now the streams were queued in the engine, within the stream limit and the windows.
    for (let i = 0; i < PARALLEL_ACCEPTS; i++) detach(this.#acceptStreams(handler));
  }

  async #acceptStreams(handler: (stream: Stream) => void): Promise<void> {
    while (!this.#ended) {
      let native: EngineStream;
      try {
        native = await this.#native.inboundStream();
      } catch {
        return;
      }
      const stream = this.#wrap(native);
      if (this.#ended) {
        stream.destroy();
        return;
      }
      // The first bytes announced the stream, so they are here: read them already.
      stream.read(0);
      handler(stream);
    }
  }

  #wrap(native: EngineStream): NativeStream {
    const stream = new NativeStream(native, this, () => {
      this.#stuckStreams--;
      if (this.#stuckStreams <= MAX_STUCK_STREAMS) this.#forgiveStuck();
    });
    this.#streams.add(stream);
    stream.once('close', () => {
      this.#streams.delete(stream);
      this.#stuckStreams++;
      if (this.#stuckStreams > MAX_STUCK_STREAMS && !this.#ended)
        this.#stuckTimer ??= this.#clock.after(STUCK_GRACE_MS, () => this.close());
    });
    return stream;
  }

  /** Maximum number of unread bytes for readers that have read nothing since the last call. */
  heldBackBytes(): number {
    let stopped = 0;
    for (const stream of this.#streams) if (stream.hasStopped()) stopped++;
    return Math.min(stopped * STREAM_WINDOW_BYTES, CONNECTION_WINDOW_BYTES);
  }

  close(): void {
    if (!this.#ended) this.#sentBeforeClose = this.#native.stats().udpTxDatagrams;
    this.#native.abort();
    this.#end();
  }

  /** True until the packet that announces our `close` is sent. */
  get closing(): boolean {
    return this.#sentBeforeClose !== null && this.#native.stats().udpTxDatagrams === this.#sentBeforeClose;
  }

  #forgiveStuck(): void {
    this.#stuckTimer?.cancel();
    this.#stuckTimer = undefined;
  }

  #end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#forgiveStuck();
    for (const stream of this.#streams) stream.destroy(new StreamError('connection_lost'));
  }
}
