/** An in-memory QUIC endpoint with the semantics of the native one. */
import type { Address } from '../../src/foundation/address.ts';
import { equalBytes } from '../../src/foundation/bytes.ts';
import { type Clock, systemClock } from '../../src/foundation/clock.ts';
import { SvcError } from '../../src/foundation/errors.ts';
import { awakeClock } from '../../src/foundation/stall.ts';
import { kindByScope, type Path, plainPath, type Way, wayPath } from '../../src/network/transport/path.ts';
import {
  type ConnectionLimits,
  ConnectionTable,
  DEFAULT_CONNECTION_LIMITS,
  MAX_STREAMS_PER_CONNECTION,
  STREAM_WINDOW_BYTES,
} from '../../src/network/transport/quic/connection-table.ts';
import { OPEN_STREAM_TIMEOUT_MS } from '../../src/network/transport/quic/native-connection.ts';
import { StreamError, WatchedStream } from '../../src/network/transport/stream.ts';
import type { Connection, ConnectionStats, DialOptions, Endpoint, Stream } from '../../src/network/transport/types.ts';

/** Size of an acknowledgement for a chunk. */
const RECEIPT_BYTES = 32;
const DIAL_TIMEOUT_MS = 10_000;
const FIRST_PORT = 40_000;

export interface MemoryEndpointOptions {
  readonly publicKey: Uint8Array;
  /** Listening address. Default: 127.0.0.1 and the next free port. */
  readonly host?: string;
  readonly port?: number;
  readonly limits?: Partial<ConnectionLimits>;
  readonly streamsPerConnection?: number;
  /** Default: the clock of the network. */
  readonly clock?: Clock;
}

/** The wire between all endpoints of a test. */
export class MemoryQuicNetwork {
  readonly #endpoints = new Map<string, MemoryQuicEndpoint>();
  readonly #silent = new Set<string>();
  readonly #clock: Clock;
  /** Bytes are acknowledged, so that a long one-way transfer does not look like a dead path to its sender. */
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

  /** An address no longer answers dials, like a cut line. Open connections stay. */
  silence(address: Address): void {
    this.#silent.add(nameOf(address));
  }
}

function nameOf({ host, port }: Address): string {
  return `${host} ${port}`;
}

export class MemoryQuicEndpoint implements Endpoint {
  readonly #network: MemoryQuicNetwork;
  readonly #clock: Clock;
  readonly #options: MemoryEndpointOptions;
  readonly #address: Address;
  readonly #accepted: ConnectionTable<MemoryConnection>;
  readonly #dialled = new Set<MemoryConnection>();
  readonly #stop = new AbortController();
  #running = false;
  #handler: ((connection: Connection) => void) | undefined;

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

  onConnection(handler: (connection: Connection) => void): void {
    this.#handler = handler;
  }

  /** A connection to `caller`, or null if this endpoint accepts none. Here both sides know the path. */
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

  async dial(address: Address, expectedKey: Uint8Array, options: DialOptions = {}): Promise<Connection> {
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
    // As on the wire, the caller's handshake succeeds first. Then a refusal closes it.
    if (accepted === null) setImmediate(() => connection.close());
    return connection;
  }

  #unanswered(options: DialOptions): Promise<never> {
    return new Promise((_, reject) => {
      const signals = [this.#stop.signal, ...(options.signal === undefined ? [] : [options.signal])];
      const cancel = (): void => finish('cancelled');
      const timer = awakeClock(this.#clock).after(options.timeoutMs ?? DIAL_TIMEOUT_MS, () => finish('timeout'));
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
  /** Size of the acknowledgement of each chunk; 0 for none. */
  readonly receiptBytes: number;
}

class MemoryConnection implements Connection {
  readonly closed: Promise<void>;
  #settleClosed: () => void = () => {};
  #peer: MemoryConnection | undefined;
  #handler: ((stream: Stream) => void) | undefined;
  #ended = false;
  /** Streams of the peer that were not accepted yet. */
  readonly #incoming: MemoryStream[] = [];
  readonly #streams = new Set<MemoryStream>();
  /** Open streams of this side, and streams that wait for the peer's limit. */
  #opened = 0;
  readonly #waiting: (() => void)[] = [];
  bytesSent = 0;
  /** Received bytes of acknowledgements. */
  bytesOfReceipts = 0;
  readonly receiptBytes: number;
  readonly remoteKey: Uint8Array;
  readonly path: Path;
  readonly outbound: boolean;
  readonly #clock: Clock;
  /** Stream limit of the peer. */
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

  async openStream(): Promise<Stream> {
    const peer = this.#peer;
    // A refused connection stays open until the refusal arrives.
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

  /** Waits for the peer's stream limit. */
  #turn(): Promise<void> {
    return new Promise((resolve, reject) => {
      const go = (): void => {
        timer.cancel();
        if (this.#ended) reject(new SvcError('connect_failed'));
        else resolve();
      };
      const timer = awakeClock(this.#clock).after(OPEN_STREAM_TIMEOUT_MS, () => {
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

  onStream(handler: (stream: Stream) => void): void {
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

/** The bytes in transit in one direction, limited by flow control. */
class MemoryStream extends WatchedStream implements Stream {
  readonly connection: MemoryConnection;
  readonly isUpgraded = false;
  #peer: MemoryStream | undefined;
  #announce: (() => void) | undefined;
  #received: (Buffer | null)[] = [];
  #receivedBytes = 0;
  #wanted = false;
  #finished = false;
  #readEnded = false;
  /** The peer's write that waits for the reader. */
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

  /** The other side learns about a stream with its first event. */
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
        // The end of the connection is the reason, if it ended.
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
    // The other side learns about the end from the connection.
    const lost = error instanceof StreamError && error.code === 'connection_lost';
    const reset = !this.#finished && !lost;
    const stopped = !this.#readEnded;
    setImmediate(() => {
      if (stopped) blocked?.(new StreamError(lost ? 'connection_lost' : 'stream_reset'));
      // As on the wire, a reset discards unread bytes and is noticed on the next read.
      if (reset && peer !== undefined && !peer.destroyed) peer.destroy(new StreamError('stream_reset'));
    });
    callback(error);
  }
}
