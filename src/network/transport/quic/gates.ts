/**
 * Carries the packets of one socket of the QUIC engine over a borrowed port. The engine sends and receives only UDP of
 * this machine, so each remote address gets a loopback port, its gate. Connections report the remote address.
 */
import { createSocket, type Socket } from 'node:dgram';
import { type Address, formatAddress } from '../../../foundation/address.ts';
import type { Clock } from '../../../foundation/clock.ts';
import { every, type RepeatingTask } from '../../../foundation/repeat.ts';
import { guard, listening } from '../../../foundation/stream-listeners.ts';
import type { EngineConnection, EngineConnectionStats, EngineStream } from '../engine-connection.ts';
import type { BorrowedPort } from '../udp-socket.ts';

/** Remote addresses that a socket dials at one time. Each uses a file descriptor. */
export const MAX_DIAL_GATES = 256;
/** Remote addresses that send to a lent port at one time. Strangers can. */
export const MAX_LENT_GATES = 64;
/** A gate without packets for this time is closed, milliseconds. Connections send keepalives far more often. */
export const GATE_IDLE_MS = 20_000;
/** If there are too many, one without packets for this time is evicted first, milliseconds. */
export const GATE_SPARE_MS = 5_000;
/** How often idle gates are closed, milliseconds. */
const LOOK_MS = 5_000;
/** Requested size of socket buffers, bytes. The system may allow less. */
const BUFFER_BYTES: number = 4 * 1024 * 1024;
const LOOPBACK = '127.0.0.1';

/** One remote address. */
class Gate {
  readonly remote: Address;
  readonly ready: Promise<void>;
  #isReady = false;
  #isClosed = false;
  usedAt: number;
  readonly #clock: Clock;
  readonly #socket: Socket;
  /** The engine's port; null until it has sent. */
  #engine: number | null;

  constructor(remote: Address, port: BorrowedPort, engine: number | null, clock: Clock) {
    this.remote = remote;
    this.#clock = clock;
    this.#engine = engine;
    this.usedAt = clock.monotonic();
    this.#socket = createSocket({
      type: 'udp4',
      recvBufferSize: BUFFER_BYTES,
      sendBufferSize: BUFFER_BYTES,
      // Node would ask its resolver for each datagram.
      lookup: (host, _options, callback) => callback(null, host, 4),
    });
    guard(this.#socket);
    this.#socket.on('message', (datagram, from) => {
      this.#engine ??= from.port;
      // Other programs of this machine cannot join a connection.
      if (from.port !== this.#engine || from.address !== LOOPBACK) return;
      this.usedAt = this.#clock.monotonic();
      port.send(datagram, remote);
    });
    this.ready = listening(this.#socket).then(() => {
      this.#isReady = true;
    });
    this.#socket.bind(0, LOOPBACK);
    this.#socket.unref();
  }

  /** Its port; 0 before `ready`. */
  get port(): number {
    return this.#isReady && !this.#isClosed ? this.#socket.address().port : 0;
  }

  /** A datagram before the port exists waits for it. */
  deliver(datagram: Uint8Array): void {
    this.usedAt = this.#clock.monotonic();
    if (this.#isReady) this.#send(datagram);
    else
      this.ready.then(
        () => this.#send(datagram),
        () => {},
      );
  }

  #send(datagram: Uint8Array): void {
    if (this.#engine !== null && !this.#isClosed) this.#socket.send(datagram, this.#engine, LOOPBACK, () => {});
  }

  close(): void {
    this.#isClosed = true;
    this.#socket.close();
  }
}

export class Gates {
  readonly #port: BorrowedPort;
  readonly #engine: number | null;
  readonly #clock: Clock;
  readonly #gates = new Map<string, Gate>();
  readonly #looks: RepeatingTask;

  /** @param engine the port that the engine listens on; null if it dials from a port that it does not report */
  constructor(port: BorrowedPort, engine: number | null, clock: Clock) {
    this.#port = port;
    this.#engine = engine;
    this.#clock = clock;
    port.receive((datagram, from) => this.#receive(datagram, from));
    this.#looks = every(clock, { periodMs: LOOK_MS, onError: () => {} }, () => this.#closeIdle());
  }

  /** False after the borrowed port was closed. */
  get isOpen(): boolean {
    return this.#port.isOpen;
  }

  /** The loopback address at which the engine dials a remote address. @throws Error if there are too many */
  async gateTo(remote: Address): Promise<Address> {
    const gate = this.#gateOf(remote);
    if (gate === null) throw new Error('too many remote addresses');
    gate.usedAt = this.#clock.monotonic();
    await gate.ready;
    return { host: LOOPBACK, port: gate.port };
  }

  /** The remote address behind a loopback port; null if it is not a gate. */
  remoteAt({ host, port }: Address): Address | null {
    if (host !== LOOPBACK) return null;
    for (const gate of this.#gates.values()) if (gate.port === port) return gate.remote;
    return null;
  }

  /** Closes all gates and the borrowed port. */
  close(): void {
    this.#looks.stop();
    for (const gate of this.#gates.values()) gate.close();
    this.#gates.clear();
    this.#port.close();
  }

  #gateOf(remote: Address): Gate | null {
    const key = formatAddress(remote);
    const known = this.#gates.get(key);
    if (known !== undefined) return known;
    if (this.#gates.size >= (this.#engine === null ? MAX_DIAL_GATES : MAX_LENT_GATES) && !this.#evict()) return null;
    const gate = new Gate(remote, this.#port, this.#engine, this.#clock);
    this.#gates.set(key, gate);
    // Without a free descriptor there is no port. The next datagram tries again.
    gate.ready.catch(() => {
      if (this.#gates.get(key) !== gate) return;
      this.#gates.delete(key);
      gate.close();
    });
    return gate;
  }

  /** Closes the gate that was idle longest. False if all are in use. */
  #evict(): boolean {
    const [oldest] = [...this.#gates].sort(([, a], [, b]) => a.usedAt - b.usedAt);
    if (oldest === undefined || this.#clock.monotonic() - oldest[1].usedAt < GATE_SPARE_MS) return false;
    oldest[1].close();
    this.#gates.delete(oldest[0]);
    return true;
  }

  #receive(datagram: Uint8Array, from: Address): void {
    // Only a listening engine can answer strangers.
    const gate = this.#engine === null ? (this.#gates.get(formatAddress(from)) ?? null) : this.#gateOf(from);
    gate?.deliver(datagram);
  }

  #closeIdle(): void {
    const now = this.#clock.monotonic();
    for (const [key, gate] of this.#gates) {
      if (now - gate.usedAt < GATE_IDLE_MS) continue;
      gate.close();
      this.#gates.delete(key);
    }
  }
}

interface Changes {
  /** The address behind the gate that carries it. */
  readonly remote?: Address;
  /** Its first stream, which was already accepted. */
  readonly first?: EngineStream;
}

/** A connection of the engine that reports the remote address instead of a gate's, or returns its first stream again. */
export class WrappedConnection implements EngineConnection {
  readonly isBorrowed: boolean;
  readonly #inner: EngineConnection;
  readonly #remote: Address | undefined;
  #first: EngineStream | undefined;

  constructor(inner: EngineConnection, { remote, first }: Changes) {
    this.isBorrowed = remote !== undefined || inner.isBorrowed === true;
    this.#inner = inner;
    this.#remote = remote;
    this.#first = first;
  }

  async inboundStream(): Promise<EngineStream> {
    const first = this.#first;
    this.#first = undefined;
    return first ?? (await this.#inner.inboundStream());
  }

  outboundStream(): Promise<EngineStream> {
    return this.#inner.outboundStream();
  }

  remoteMultiaddr(): string {
    const inner = this.#inner.remoteMultiaddr();
    if (this.#remote === undefined) return inner;
    const { host, port } = this.#remote;
    const rest = inner.replace(/^\/ip[46]\/[^/]+\/udp\/\d+\//, '');
    return `/ip${host.includes(':') ? 6 : 4}/${host}/udp/${port}/${rest}`;
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
