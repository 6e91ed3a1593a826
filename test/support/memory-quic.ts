/** The QUIC endpoint in memory: the same semantics as the native one, without sockets. */
import type { Address } from '../../src/foundation/address.ts';
import { equalBytes } from '../../src/foundation/bytes.ts';
import { type Clock, systemClock } from '../../src/foundation/clock.ts';
import { SvcError } from '../../src/foundation/errors.ts';
import { wakingClock } from '../../src/foundation/stall.ts';
import { kindByScope, type Path, plainPath, type Way, wayPath } from '../../src/network/path.ts';
import { ConnectionTable } from '../../src/network/quic/connection-table.ts';
import {
  type ConnectionLimits,
  DEFAULT_CONNECTION_LIMITS,
  MAX_STREAMS_PER_CONNECTION,
  STREAM_WINDOW_BYTES,
} from '../../src/network/quic/limits.ts';
import { OPEN_STREAM_TIMEOUT_MS } from '../../src/network/quic/native-connection.ts';
import { StreamError } from '../../src/network/quic/stream-error.ts';
import type {
  ConnectionStats,
  DialOptions,
  QuicConnection,
  QuicEndpoint,
  QuicStream,
} from '../../src/network/quic/types.ts';
import { WatchedStream } from '../../src/network/quic/watched-stream.ts';

/** What the other node sends to say that it has a chunk. */
const RECEIPT_BYTES = 32;
const DIAL_TIMEOUT_MS = 10_000;
const FIRST_PORT = 40_000;

export interface MemoryEndpointOptions {
  readonly publicKey: Uint8Array;
  /** Where it listens; 127.0.0.1 and the next free port where left out. */
  readonly host?: string;
  readonly port?: number;
  readonly limits?: Partial<ConnectionLimits>;
  readonly streamsPerConnection?: number;
  /** The network's where left out. */
  readonly clock?: Clock;
}

/** The wire that all endpoints of a test share. */
export class MemoryQuicNetwork {
  readonly #endpoints = new Map<string, MemoryQuicEndpoint>();
  readonly #silent = new Set<string>();
  readonly #clock: Clock;
  /** Bytes are acknowledged: a long transfer in one direction does not look like a dead path to its sender. */
  acknowledges = false;
  #nextPort = FIRST_PORT;

  constructor(clock: Clock = systemClock) {
    this.#clock = clock;
  }

  endpoint(options: MemoryEndpointOptions): MemoryQuicEndpoint {
    return new MemoryQuicEndpoint(this, this.#clock, options);
  }

  freePort(): number {
    return this.#nextPort++;
  }

  add(endpoint: MemoryQuicEndpoint): void {
    const name = nameOf(endpoint.address);
    if (this.#endpoints.has(name)) throw new SvcError('address_in_use');
    this.#endpoints.set(name, endpoint);
  }

  remove(endpoint: MemoryQuicEndpoint): void {
    this.#endpoints.delete(nameOf(endpoint.address));
  }

  at(address: Address): MemoryQuicEndpoint | undefined {
    return this.#silent.has(nameOf(address)) ? undefined : this.#endpoints.get(nameOf(address));
  }

  /** Makes an address answer no dial any more, as a cut line would; what is open stays. */
  silence(address: Address): void {
    this.#silent.add(nameOf(address));
  }
}

function nameOf({ host, port }: Address): string {
  return `${host} ${port}`;
}

export class MemoryQuicEndpoint implements QuicEndpoint {
  readonly #network: MemoryQuicNetwork;
  readonly #clock: Clock;
  readonly #options: MemoryEndpointOptions;
  readonly #address: Address;
  readonly #accepted: ConnectionTable<MemoryConnection>;
  readonly #dialled = new Set<MemoryConnection>();
  readonly #stop = new AbortController();
  #running = false;
  #handler: ((connection: QuicConnection) => void) | undefined;

  constructor(network: MemoryQuicNetwork, clock: Clock, options: MemoryEndpointOptions) {
    this.#network = network;
    this.#clock = options.clock ?? clock;
    this.#options = options;
    const port = options.port === undefined || options.port === 0 ? network.freePort() : options.port;
    this.#address = { host: options.host ?? '127.0.0.1', port };
    this.#accepted = new ConnectionTable({ ...DEFAULT_CONNECTION_LIMITS, ...options.limits });
  }

  get address(): Address {
    return this.#address;
  }

  async start(): Promise<void> {
    this.#network.add(this);
    this.#running = true;
  }

  async stop(): Promise<void> {
    this.#running = false;
    this.#network.remove(this);
    this.#stop.abort();
    for (const connection of [...this.#accepted, ...this.#dialled]) connection.close();
  }

  onConnection(handler: (connection: QuicConnection) => void): void {
    this.#handler = handler;
  }

  /** A connection to `caller`, or null where this endpoint takes none. What its way is, both sides know here. */
  accept(
    caller: MemoryConnection,
    from: { key: Uint8Array; address: Address; way: Way | undefined },
  ): MemoryConnection | null {
    const connection = this.#connection(from.key, from.address, false, from.way);
    connection.join(caller);
    if (this.#handler === undefined || this.#accepted.admit(connection) !== null) return null;
    void connection.closed.then(() => this.#accepted.remove(connection));
    const handler = this.#handler;
    queueMicrotask(() => handler(connection));
    return connection;
  }

  get publicKey(): Uint8Array {
    return this.#options.publicKey;
  }

  #connection(key: Uint8Array, address: Address, outbound: boolean, way?: Way): MemoryConnection {
    const path = way === undefined ? plainPath(kindByScope(address), address) : wayPath(way, { address, key });
    const streams = this.#options.streamsPerConnection ?? MAX_STREAMS_PER_CONNECTION;
    const receiptBytes = this.#network.acknowledges ? RECEIPT_BYTES : 0;
    return new MemoryConnection(key, path, outbound, { clock: this.#clock, streams, receiptBytes });
  }

  async dial(address: Address, expectedKey: Uint8Array, options: DialOptions = {}): Promise<QuicConnection> {
    if (!this.#running) throw new SvcError('connect_failed');
    if (options.signal?.aborted) throw new SvcError('cancelled');
    const target = this.#network.at(address);
    if (target === undefined) return await this.#unanswered(options);
    // A dial takes a turn of the event loop, as on the wire.
    await new Promise((resolve) => setImmediate(resolve));
    if (options.signal?.aborted || !this.#running) throw new SvcError('cancelled');
    const connection = this.#connection(target.publicKey, address, true, options.way);
    const accepted = target.accept(connection, { key: this.publicKey, address: this.#address, way: options.way });
    if (accepted !== null) connection.join(accepted);
    this.#dialled.add(connection);
    void connection.closed.then(() => this.#dialled.delete(connection));
    if (!equalBytes(target.publicKey, expectedKey)) {
      connection.close();
      throw new SvcError('connect_failed');
    }
    // As on the wire, the caller's handshake succeeds first; a refusal then closes it.
    if (accepted === null) setImmediate(() => connection.close());
    return connection;
  }

  #unanswered(options: DialOptions): Promise<never> {
    return new Promise((_, reject) => {
      const signals = [this.#stop.signal, ...(options.signal === undefined ? [] : [options.signal])];
      const cancel = (): void => finish('cancelled');
      const timer = wakingClock(this.#clock).after(options.timeoutMs ?? DIAL_TIMEOUT_MS, () => finish('timeout'));
      function finish(code: 'cancelled' | 'timeout'): void {
        timer.cancel();
        for (const signal of signals) signal.removeEventListener('abort', cancel);
        reject(new SvcError(code));
      }
      for (const signal of signals) signal.addEventListener('abort', cancel);
    });
  }
}

interface ConnectionParts {
  readonly clock: Clock;
  readonly streams: number;
  /** Bytes by which each piece is acknowledged; 0: it is not. */
  readonly receiptBytes: number;
}

class MemoryConnection implements QuicConnection {
  readonly closed: Promise<void>;
  #settleClosed: () => void = () => {};
  #peer: MemoryConnection | undefined;
  #handler: ((stream: QuicStream) => void) | undefined;
  #ended = false;
  /** Streams that the peer opened and that nobody took yet. */
  readonly #incoming: MemoryStream[] = [];
  readonly #streams = new Set<MemoryStream>();
  /** Open streams that we opened, and those that wait for the peer's limit. */
  #opened = 0;
  readonly #waiting: (() => void)[] = [];
  bytesSent = 0;
  /** Bytes of acknowledgements that came. */
  bytesOfReceipts = 0;
  readonly receiptBytes: number;
  readonly remoteKey: Uint8Array;
  readonly path: Path;
  readonly outbound: boolean;
  readonly #clock: Clock;
  /** Streams that the peer may have open. */
  readonly #maxStreams: number;

  constructor(remoteKey: Uint8Array, path: Path, outbound: boolean, { clock, streams, receiptBytes }: ConnectionParts) {
    this.remoteKey = remoteKey;
    this.path = path;
    this.outbound = outbound;
    this.#clock = clock;
    this.#maxStreams = streams;
    this.receiptBytes = receiptBytes;
    this.closed = new Promise((resolve) => {
      this.#settleClosed = resolve;
    });
  }

  join(peer: MemoryConnection): void {
    this.#peer = peer;
  }

  get ended(): boolean {
    return this.#ended;
  }

  rtt(): number {
    return 0;
  }

  stats(): ConnectionStats {
    const bytesReceived = (this.#peer?.bytesSent ?? 0) + this.bytesOfReceipts;
    return { bytesSent: this.bytesSent, bytesReceived, packetsSent: 0, packetsLost: 0 };
  }

  async openStream(): Promise<QuicStream> {
    const peer = this.#peer;
    // A connection that the other side refused stays open until the refusal arrives.
    if (this.#ended || peer === undefined) throw new SvcError('connect_failed');
    if (this.#opened >= peer.#maxStreams) await this.#turn();
    this.#opened++;
    const ours = new MemoryStream(this, () => peer.#take(theirs));
    const theirs: MemoryStream = new MemoryStream(peer, () => {});
    ours.join(theirs);
    theirs.join(ours);
    this.#streams.add(ours);
    peer.#streams.add(theirs);
    let halves = 2;
    const gone = (): void => {
      halves--;
      if (halves > 0) return;
      this.#opened--;
      this.#waiting.shift()?.();
    };
    ours.once('close', () => {
      this.#streams.delete(ours);
      gone();
    });
    theirs.once('close', () => {
      peer.#streams.delete(theirs);
      gone();
    });
    return ours;
  }

  /** Waits for a free place within the peer's stream limit. */
  #turn(): Promise<void> {
    return new Promise((resolve, reject) => {
      const go = (): void => {
        timer.cancel();
        if (this.#ended) reject(new SvcError('connect_failed'));
        else resolve();
      };
      const timer = wakingClock(this.#clock).after(OPEN_STREAM_TIMEOUT_MS, () => {
        this.#waiting.splice(this.#waiting.indexOf(go), 1);
        reject(new SvcError('timeout'));
      });
      this.#waiting.push(go);
    });
  }

  #take(stream: MemoryStream): void {
    if (this.#handler === undefined) this.#incoming.push(stream);
    else this.#handler(stream);
  }

  onStream(handler: (stream: QuicStream) => void): void {
    if (this.#handler !== undefined) throw new Error('onStream is called once');
    this.#handler = handler;
    for (const stream of this.#incoming.splice(0)) queueMicrotask(() => handler(stream));
  }

  close(): void {
    if (this.#ended) return;
    this.#ended = true;
    for (const stream of this.#streams) stream.destroy(new StreamError('connection_lost'));
    for (const go of this.#waiting.splice(0)) go();
    this.#settleClosed();
    const peer = this.#peer;
    setImmediate(() => peer?.close());
  }
}

/** One direction's bytes under way: what flow control lets a sender be ahead of its reader. */
class MemoryStream extends WatchedStream implements QuicStream {
  readonly connection: MemoryConnection;
  #peer: MemoryStream | undefined;
  #announce: (() => void) | undefined;
  #received: (Buffer | null)[] = [];
  #receivedBytes = 0;
  #wanted = false;
  #finished = false;
  #readEnded = false;
  /** The write of the peer that waits for our reader. */
  #blocked: ((error?: Error) => void) | undefined;

  constructor(connection: MemoryConnection, announce: () => void) {
    super({ allowHalfOpen: true });
    this.connection = connection;
    this.#announce = announce;
    this.on('error', () => {});
  }

  join(peer: MemoryStream): void {
    this.#peer = peer;
  }

  /** A stream is unknown to the other side until something happens on it. */
  #show(): void {
    const announce = this.#announce;
    this.#announce = undefined;
    if (announce !== undefined) setImmediate(announce);
  }

  override _read(): void {
    this.#wanted = true;
    this.#deliver();
  }

  #deliver(): void {
    while (this.#wanted && this.#received.length > 0) {
      const chunk = this.#received.shift() ?? null;
      this.#receivedBytes -= chunk?.length ?? 0;
      if (chunk === null) this.#readEnded = true;
      this.#wanted = this.push(chunk);
    }
    if (this.#receivedBytes < STREAM_WINDOW_BYTES) {
      const resume = this.#blocked;
      this.#blocked = undefined;
      resume?.();
    }
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, callback: (error?: Error) => void): void {
    this.#show();
    const peer = this.#peer;
    this.connection.bytesSent += chunk.length;
    const copy = Buffer.from(chunk);
    setImmediate(() => {
      if (peer === undefined || peer.destroyed) {
        // Where the connection ended, that is why.
        callback(new StreamError(peer?.connection.ended === true ? 'connection_lost' : 'stream_reset'));
        return;
      }
      this.connection.bytesOfReceipts += this.connection.receiptBytes;
      peer.#received.push(copy);
      peer.#receivedBytes += copy.length;
      peer.#blocked = callback;
      peer.#deliver();
    });
  }

  override _final(callback: () => void): void {
    this.#finished = true;
    this.#show();
    const peer = this.#peer;
    setImmediate(() => {
      if (peer !== undefined && !peer.destroyed) {
        peer.#received.push(null);
        peer.#deliver();
      }
      callback();
    });
  }

  override _destroy(error: Error | null, callback: (error: Error | null) => void): void {
    this.#show();
    const peer = this.#peer;
    this.#received = [];
    const blocked = this.#blocked;
    this.#blocked = undefined;
    // Where the connection ended, the other side learns it from there.
    const lost = error instanceof StreamError && error.code === 'connection_lost';
    const reset = !this.#finished && !lost;
    const stopped = !this.#readEnded;
    setImmediate(() => {
      if (stopped) blocked?.(new StreamError(lost ? 'connection_lost' : 'stream_reset'));
      // As on the wire, the reset takes back what the reader has not had, and is seen when it reads.
      if (reset && peer !== undefined && !peer.destroyed) peer.destroy(new StreamError('stream_reset'));
    });
    callback(error);
  }
}
