/**
 * Endpoints in one process, for tests. Every event is a task of the injected clock or `defer`, in a fixed
 * order: the network adds no timers and no randomness. Lines between endpoints can be slow, cut or one-way, and
 * endpoints can refuse dials, not answer them, or crash.
 */
import type { Address } from '../../src/foundation/address.ts';
import { equalBytes } from '../../src/foundation/bytes.ts';
import type { Clock, Timer } from '../../src/foundation/clock.ts';
import { detach } from '../../src/foundation/detached.ts';
import { SvcError } from '../../src/foundation/errors.ts';
import { awakeClock } from '../../src/foundation/stall.ts';
import {
  type ConnectionLimits,
  ConnectionTable,
  DEFAULT_CONNECTION_LIMITS,
  DIAL_TIMEOUT_MS,
  MAX_STREAMS_PER_CONNECTION,
  OPEN_STREAM_TIMEOUT_MS,
  STREAM_WINDOW_BYTES,
} from '../../src/network/transport/connection-limits.ts';
import { kindByScope, type Path, plainPath, type Way, wayPath } from '../../src/network/transport/path.ts';
import { StreamError, WatchedStream } from '../../src/network/transport/stream.ts';
import type { Connection, ConnectionStats, DialOptions, Endpoint, Stream } from '../../src/network/transport/types.ts';

/** Size of an acknowledgement for a chunk, bytes. */
const RECEIPT_BYTES = 32;
const FIRST_PORT = 40_000;

export interface MemoryNetworkOptions {
  readonly clock: Clock;
  /** Runs a task after the current one, in order. Default: `setImmediate`. */
  readonly defer?: (task: () => void) => void;
  /** A connection on which nothing can arrive is lost after this time. Default: never. */
  readonly idleTimeoutMs?: number;
}

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

function afterThisTurn(task: () => void): void {
  setImmediate(task);
}

function nameOf({ host, port }: Address): string {
  return `${host} ${port}`;
}

function lineName(from: Address, to: Address): string {
  return `${nameOf(from)} → ${nameOf(to)}`;
}

/** All endpoints of a process, and the lines between them. */
export class MemoryNetwork {
  readonly clock: Clock;
  readonly defer: (task: () => void) => void;
  readonly idleTimeoutMs: number;
  readonly lines = new Set<Line>();
  /** Bytes are acknowledged, so that a long one-way transfer does not look like a dead path to its sender. */
  acknowledges = false;
  /** One-way delay between two listening addresses, milliseconds. */
  delayMs: (from: Address, to: Address) => number = () => 0;
  readonly #endpoints = new Map<string, MemoryEndpoint>();
  readonly #silent = new Set<string>();
  readonly #refusing = new Set<string>();
  readonly #cut = new Set<string>();
  #nextPort = FIRST_PORT;

  constructor({ clock, defer = afterThisTurn, idleTimeoutMs }: MemoryNetworkOptions) {
    this.clock = clock;
    this.defer = defer;
    this.idleTimeoutMs = idleTimeoutMs ?? Number.POSITIVE_INFINITY;
  }

  endpoint(options: MemoryEndpointOptions): MemoryEndpoint {
    return new MemoryEndpoint(this, options);
  }

  freePort(): number {
    return this.#nextPort++;
  }

  /** @throws SvcError `address_in_use` */
  add(endpoint: MemoryEndpoint): void {
    const name = nameOf(endpoint.address);
    if (this.#endpoints.has(name)) throw new SvcError('address_in_use');
    this.#endpoints.set(name, endpoint);
  }

  remove(endpoint: MemoryEndpoint): void {
    this.#endpoints.delete(nameOf(endpoint.address));
  }

  /** The endpoint that answers dials from an address. */
  answering(from: Address, to: Address): MemoryEndpoint | undefined {
    const isReachable = !this.#silent.has(nameOf(to)) && !this.isCut(from, to) && !this.isCut(to, from);
    return isReachable ? this.#endpoints.get(nameOf(to)) : undefined;
  }

  refuses(address: Address): boolean {
    return this.#refusing.has(nameOf(address));
  }

  isCut(from: Address, to: Address): boolean {
    return this.#cut.has(lineName(from, to));
  }

  /** An address no longer answers dials. Open connections stay. */
  silence(address: Address): void {
    this.#silent.add(nameOf(address));
  }

  /** An address refuses dials immediately. Open connections stay. */
  refuse(address: Address): void {
    this.#refusing.add(nameOf(address));
  }

  /** Nothing arrives in this direction until `heal`. Connections then receive what was sent, unless they were lost. */
  cut(from: Address, to: Address): void {
    this.#cut.add(lineName(from, to));
    for (const line of this.lines) if (line.name === lineName(from, to)) line.onSilence();
  }

  heal(from: Address, to: Address): void {
    this.#cut.delete(lineName(from, to));
    for (const line of this.lines) if (line.name === lineName(from, to)) line.heal();
  }

  schedule(ms: number, task: () => void): void {
    if (ms > 0) this.clock.after(ms, task);
    else this.defer(task);
  }
}

/** One direction of a connection. Events arrive in order, even if the delay changes. */
class Line {
  readonly name: string;
  readonly #network: MemoryNetwork;
  readonly #from: Address;
  readonly #to: Address;
  readonly #receiver: () => MemoryConnection | undefined;
  readonly #events: (() => void)[] = [];
  /** When the last event arrives: a later one does not overtake it. */
  #lastAt = 0;
  #sentAt = 0;
  /** Events that arrived while the line was cut. */
  #held = 0;
  #idle: Timer | null = null;
  #isDead = false;

  constructor(network: MemoryNetwork, from: Address, to: Address, receiver: () => MemoryConnection | undefined) {
    this.#network = network;
    this.#from = from;
    this.#to = to;
    this.name = lineName(from, to);
    this.#receiver = receiver;
    network.lines.add(this);
  }

  get delayMs(): number {
    return this.#network.delayMs(this.#from, this.#to);
  }

  carry(event: () => void): void {
    if (this.#isDead) return;
    this.#events.push(event);
    const now = this.#network.clock.now();
    // A clock that was set back would delay all later events.
    const earliest = now < this.#sentAt ? now : this.#lastAt;
    this.#sentAt = now;
    this.#lastAt = Math.max(now + this.delayMs, earliest);
    this.#network.schedule(this.#lastAt - now, () => this.#arrive());
  }

  /** Runs a task of the sender after the current one. */
  soon(task: () => void): void {
    this.#network.defer(task);
  }

  #arrive(): void {
    if (this.#network.isCut(this.#from, this.#to)) this.#held++;
    else this.#events.shift()?.();
  }

  heal(): void {
    this.#idle?.cancel();
    this.#idle = null;
    for (; this.#held > 0; this.#held--) this.#network.defer(() => this.#arrive());
  }

  /** Nothing arrives at the receiver any longer. */
  onSilence(): void {
    const { clock, idleTimeoutMs } = this.#network;
    if (idleTimeoutMs < Number.POSITIVE_INFINITY)
      this.#idle ??= clock.after(idleTimeoutMs, () => this.#receiver()?.close());
  }

  /** Discards all events, also later ones: the sender has crashed. */
  die(): void {
    this.#isDead = true;
    this.#events.splice(0);
    this.onSilence();
  }

  end(): void {
    this.#idle?.cancel();
    this.#network.lines.delete(this);
  }
}

export class MemoryEndpoint implements Endpoint {
  readonly #network: MemoryNetwork;
  readonly #clock: Clock;
  readonly #options: MemoryEndpointOptions;
  readonly #address: Address;
  readonly #accepted: ConnectionTable<MemoryConnection>;
  readonly #dialled = new Set<MemoryConnection>();
  readonly #stop = new AbortController();
  #running = false;
  #handler: ((connection: Connection) => void) | undefined;

  constructor(network: MemoryNetwork, options: MemoryEndpointOptions) {
    this.#network = network;
    this.#clock = awakeClock(options.clock ?? network.clock);
    this.#options = options;
    const port = options.port === undefined || options.port === 0 ? network.freePort() : options.port;
    this.#address = { host: options.host ?? '127.0.0.1', port };
    this.#accepted = new ConnectionTable({ ...DEFAULT_CONNECTION_LIMITS, ...options.limits });
  }

  get address(): Address {
    return this.#address;
  }

  get publicKey(): Uint8Array {
    return this.#options.publicKey;
  }

  async start(): Promise<void> {
    this.#network.add(this);
    this.#running = true;
  }

  async stop(): Promise<void> {
    this.#leave();
    for (const connection of [...this.#accepted, ...this.#dialled]) connection.close();
  }

  /** Stops without telling its peers: their connections are half-open. */
  crash(): void {
    this.#leave();
    for (const connection of [...this.#accepted, ...this.#dialled]) connection.crash();
  }

  #leave(): void {
    this.#running = false;
    this.#network.remove(this);
    this.#stop.abort();
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
    detach(connection.closed.then(() => this.#accepted.remove(connection)));
    const handler = this.#handler;
    queueMicrotask(() => handler(connection));
    return connection;
  }

  #connection(key: Uint8Array, address: Address, outbound: boolean, way?: Way): MemoryConnection {
    const path = way === undefined ? plainPath(kindByScope(address), address) : wayPath(way, { address, key });
    return new MemoryConnection(key, path, outbound, {
      network: this.#network,
      clock: this.#clock,
      streams: this.#options.streamsPerConnection ?? MAX_STREAMS_PER_CONNECTION,
      ends: [this.#address, address],
    });
  }

  async dial(address: Address, expectedKey: Uint8Array, options: DialOptions = {}): Promise<Connection> {
    if (!this.#running) throw new SvcError('connect_failed');
    if (options.signal?.aborted) throw new SvcError('cancelled');
    const target = await this.#answer(address, options);
    if (this.#network.refuses(address)) throw new SvcError('connect_failed');
    const connection = this.#connection(target.publicKey, address, true, options.way);
    const accepted = target.accept(connection, { key: this.publicKey, address: this.#address, way: options.way });
    if (accepted !== null) connection.join(accepted);
    this.#dialled.add(connection);
    detach(connection.closed.then(() => this.#dialled.delete(connection)));
    if (!equalBytes(target.publicKey, expectedKey)) {
      connection.close();
      throw new SvcError('connect_failed');
    }
    // As on the wire, the caller's handshake succeeds first. Then a refusal closes it.
    if (accepted === null) this.#network.defer(() => connection.close());
    return connection;
  }

  /** The endpoint that answers a dial, after one round trip. */
  #answer(address: Address, { signal, timeoutMs = DIAL_TIMEOUT_MS }: DialOptions): Promise<MemoryEndpoint> {
    const network = this.#network;
    return new Promise((resolve, reject) => {
      const signals = [this.#stop.signal, ...(signal === undefined ? [] : [signal])];
      const done = (): void => {
        timer.cancel();
        for (const one of signals) one.removeEventListener('abort', cancel);
      };
      const fail = (code: 'cancelled' | 'timeout'): void => {
        done();
        reject(new SvcError(code));
      };
      const cancel = (): void => fail('cancelled');
      const timer = this.#clock.after(timeoutMs, () => fail('timeout'));
      for (const one of signals) one.addEventListener('abort', cancel);
      const roundTripMs = network.delayMs(this.#address, address) + network.delayMs(address, this.#address);
      network.schedule(roundTripMs, () => {
        const target = network.answering(this.#address, address);
        if (target === undefined || signals.some(({ aborted }) => aborted)) return;
        done();
        resolve(target);
      });
    });
  }
}

interface ConnectionParts {
  readonly network: MemoryNetwork;
  readonly clock: Clock;
  /** Streams that the peer can have open. */
  readonly streams: number;
  /** The listening addresses of this end and the other one. */
  readonly ends: readonly [Address, Address];
}

class MemoryConnection implements Connection {
  readonly remoteKey: Uint8Array;
  readonly path: Path;
  readonly outbound: boolean;
  readonly closed: Promise<void>;
  /** Events on their way to the peer. */
  readonly line: Line;
  bytesSent = 0;
  bytesReceived = 0;
  readonly receiptBytes: number;
  readonly #clock: Clock;
  readonly #maxStreams: number;
  readonly #settleClosed: () => void;
  #peer: MemoryConnection | undefined;
  #handler: ((stream: Stream) => void) | undefined;
  #ended = false;
  /** Streams of the peer that were not accepted yet. */
  readonly #incoming: MemoryStream[] = [];
  readonly #streams = new Set<MemoryStream>();
  /** Open streams of this side, and openers that wait for the peer's limit. */
  #opened = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(
    remoteKey: Uint8Array,
    path: Path,
    outbound: boolean,
    { network, clock, streams, ends }: ConnectionParts,
  ) {
    this.remoteKey = remoteKey;
    this.path = path;
    this.outbound = outbound;
    this.line = new Line(network, ...ends, () => this.#peer);
    this.receiptBytes = network.acknowledges ? RECEIPT_BYTES : 0;
    this.#clock = clock;
    this.#maxStreams = streams;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.closed = promise;
    this.#settleClosed = resolve;
  }

  join(peer: MemoryConnection): void {
    this.#peer = peer;
  }

  rtt(): number {
    return this.line.delayMs + (this.#peer?.line.delayMs ?? 0);
  }

  stats(): ConnectionStats {
    return { bytesSent: this.bytesSent, bytesReceived: this.bytesReceived, packetsSent: 0, packetsLost: 0 };
  }

  async openStream(): Promise<Stream> {
    const peer = this.#peer;
    // A refused connection stays open until the refusal arrives.
    if (this.#ended || peer === undefined) throw new SvcError('connect_failed');
    if (this.#opened >= peer.#maxStreams) await this.#turn();
    this.#opened++;
    const ours = new MemoryStream(this, () => peer.#announce(theirs));
    const theirs: MemoryStream = new MemoryStream(peer, () => {});
    ours.join(theirs);
    theirs.join(ours);
    this.#streams.add(ours);
    peer.#streams.add(theirs);
    let halves = 2;
    const closed = (connection: MemoryConnection, stream: MemoryStream): void => {
      connection.#streams.delete(stream);
      halves--;
      if (halves > 0) return;
      this.#opened--;
      this.#waiting.shift()?.();
    };
    ours.once('close', () => closed(this, ours));
    theirs.once('close', () => closed(peer, theirs));
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
      const timer = this.#clock.after(OPEN_STREAM_TIMEOUT_MS, () => {
        this.#waiting.splice(this.#waiting.indexOf(go), 1);
        reject(new SvcError('timeout'));
      });
      this.#waiting.push(go);
    });
  }

  #announce(stream: MemoryStream): void {
    if (this.#ended) return;
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
    this.line.carry(() => {
      this.line.end();
      this.#peer?.close();
    });
    this.#end();
  }

  /** Ends this side only. */
  crash(): void {
    this.line.die();
    this.#end();
  }

  #end(): void {
    this.#ended = true;
    this.#peer?.line.end();
    for (const stream of this.#streams) stream.destroy(new StreamError('connection_lost'));
    for (const go of this.#waiting.splice(0)) go();
    this.#settleClosed();
  }
}

/** One end of a stream. A writer stops when the bytes that its reader has not read fill the window. */
class MemoryStream extends WatchedStream implements Stream {
  readonly connection: MemoryConnection;
  readonly isUpgraded = false;
  #peer: MemoryStream | undefined;
  #announce: (() => void) | undefined;
  #received: (Buffer | null)[] = [];
  #wanted = false;
  #finished = false;
  #readEnded = false;
  /** Sent bytes that the reader has not read. */
  #unread = 0;
  /** A write that waits for the reader. */
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

  /** Sends an event to the other end, which learns about the stream with the first one. */
  #send(event: (peer: MemoryStream) => void): void {
    const { line } = this.connection;
    const announce = this.#announce;
    this.#announce = undefined;
    if (announce !== undefined) line.carry(announce);
    line.carry(() => {
      if (this.#peer !== undefined) event(this.#peer);
    });
  }

  override _read(): void {
    this.#wanted = true;
    this.#deliver();
  }

  #deliver(): void {
    let read = 0;
    while (this.#wanted && this.#received.length > 0) {
      const chunk = this.#received.shift() ?? null;
      read += chunk?.length ?? 0;
      if (chunk === null) this.#readEnded = true;
      this.#wanted = this.push(chunk);
    }
    if (read > 0) this.#send((peer) => peer.#onRead(read));
  }

  #onRead(bytes: number): void {
    this.#unread -= bytes;
    if (this.#unread >= STREAM_WINDOW_BYTES) return;
    const resume = this.#blocked;
    this.#blocked = undefined;
    resume?.();
  }

  /** The reader has stopped. */
  #onStopped(): void {
    if (!this.destroyed && !this.writableFinished) this.destroy(new StreamError('stream_reset'));
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, callback: (error?: Error) => void): void {
    // `node:http` ends each message with an empty write.
    if (chunk.length === 0) return callback();
    const copy = Buffer.from(chunk);
    this.connection.bytesSent += copy.length;
    this.#unread += copy.length;
    this.#send((peer) => {
      peer.connection.bytesReceived += copy.length;
      this.connection.bytesReceived += this.connection.receiptBytes;
      if (peer.destroyed) peer.#send((writer) => writer.#onStopped());
      else {
        peer.#received.push(copy);
        peer.#deliver();
      }
    });
    if (this.#unread < STREAM_WINDOW_BYTES) this.connection.line.soon(callback);
    else this.#blocked = callback;
  }

  override _final(callback: () => void): void {
    this.#finished = true;
    this.#send((peer) => {
      if (peer.destroyed) return;
      peer.#received.push(null);
      peer.#deliver();
    });
    this.connection.line.soon(callback);
  }

  override _destroy(error: Error | null, callback: (error: Error | null) => void): void {
    this.#received = [];
    const blocked = this.#blocked;
    this.#blocked = undefined;
    if (blocked !== undefined) this.connection.line.soon(() => blocked(error ?? new StreamError('stream_reset')));
    // The other end learns about a lost connection from the connection.
    const isLost = error instanceof StreamError && error.code === 'connection_lost';
    const [isReset, isStopped] = [!this.#finished && !isLost, !this.#readEnded && !isLost];
    this.#send((peer) => {
      // As on the wire, a reset discards unread bytes and is noticed on the next read.
      if (isReset) peer.destroy(new StreamError('stream_reset'));
      else if (isStopped && peer.#blocked !== undefined) peer.#onStopped();
    });
    callback(error);
  }
}
