/**
 * One QUIC connection per pair of nodes, whoever dialled it: shared by all who need it, checked by
 * a hello, replaced when it breaks, closed when nobody has used it for a while. Beside it there may
 * be some for bulk.
 */
import { randomBytes } from 'node:crypto';
import { formatAddress } from '../../foundation/address.ts';
import { toHex } from '../../foundation/bytes.ts';
import type { Clock } from '../../foundation/clock.ts';
import { deadline } from '../../foundation/deadline.ts';
import { SvcError } from '../../foundation/errors.ts';
import { nativeAid } from '../../foundation/identity/aid.ts';
import type { Component } from '../../foundation/lifecycle.ts';
import type { Log } from '../../foundation/log.ts';
import { every, type Repeating } from '../../foundation/repeat.ts';
import type { QuicConnection, QuicEndpoint, QuicStream } from '../quic/types.ts';
import { dialAny, type NodePlace, SharedAttempt } from './dial.ts';
import { type Kind, StreamGate, type StreamHandler } from './gate.ts';
import {
  acceptHello,
  type Hello,
  INSTANCE_BYTES,
  KIND_HELLO,
  KIND_SIDE_HELLO,
  NONCE_BYTES,
  networkId,
  receiveHello,
  sayHello,
} from './hello.ts';
import { Session } from './session.ts';
import { SideSessions } from './sides.ts';
import type { ConnectionView, LinkStats } from './views.ts';
import { guard, refuse } from './wire.ts';

/** All addresses of a node together have this long to answer, milliseconds. */
export const DIAL_TIMEOUT_MS = 4_000;
/** Time for both hellos after the handshake, milliseconds. */
export const HELLO_TIMEOUT_MS = 5_000;
/** Accepted connections that have not yet said hello. */
export const MAX_UNGREETED = 256;
/** A connection without streams is closed after this long, milliseconds. */
export const IDLE_MS = 5 * 60_000;
/** One that another has replaced, after this long. */
export const SPARE_IDLE_MS = 5_000;
const SWEEP_MS = 5_000;
/** Connections that both nodes dialled within this time of each other were dialled at once, milliseconds. */
export const SIMULTANEOUS_MS = 5_000;
/** Connections of one node: the current one, and earlier ones that still carry streams. */
export const MAX_PER_NODE = 4;
/** Streams that arrive before our side of the hello is through. */
const MAX_EARLY_STREAMS = 64;

interface NodePoolOptions {
  /** Public key of this node. */
  readonly nodeKey: Uint8Array;
  /** Name of the network; nodes of another one are refused. */
  readonly network: string;
}

interface NodePoolDependencies {
  readonly endpoint: Pick<QuicEndpoint, 'dial' | 'onConnection'>;
  readonly clock: Clock;
  readonly log: Log;
}

/** What is known of one other node. */
interface Peer {
  readonly sessions: Set<Session>;
  current: Session | null;
  dialling: Dialling | null;
}

interface Dialling {
  readonly attempt: SharedAttempt<Session>;
  readonly addresses: ReadonlySet<string>;
}

function isUsable(session: Session | null): session is Session {
  return session !== null && !session.closed && !session.draining;
}

export class NodePool implements Component {
  /** Public key of this node. */
  readonly nodeKey: Uint8Array;
  readonly #network: Uint8Array;
  readonly #instance = new Uint8Array(randomBytes(INSTANCE_BYTES));
  readonly #endpoint: NodePoolDependencies['endpoint'];
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #peers = new Map<string, Peer>();
  readonly #sides = new SideSessions();
  readonly #ungreeted = new Set<QuicConnection>();
  readonly #past = { bytesSent: 0, bytesReceived: 0 };
  #sweep: Repeating | null = null;
  #stopped = false;
  /** Receives the streams that other nodes open. */
  readonly gate: StreamGate;

  /** Takes the endpoint's connections, so it is made before the endpoint starts. */
  constructor(options: NodePoolOptions, dependencies: NodePoolDependencies) {
    this.nodeKey = options.nodeKey;
    this.#network = networkId(options.network);
    this.#endpoint = dependencies.endpoint;
    this.#clock = dependencies.clock;
    this.#log = dependencies.log.child('links');
    this.gate = new StreamGate({ clock: this.#clock, log: this.#log });
    this.#endpoint.onConnection((connection) => this.#greet(connection));
  }

  async start(): Promise<void> {
    const onError = (error: unknown): void => this.#log.warn({ error }, 'idle connections could not be closed');
    this.#sweep = every(this.#clock, { periodMs: SWEEP_MS, onError }, () => this.#closeIdle());
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#sweep?.stop();
    for (const connection of this.#ungreeted) connection.close();
    for (const peer of this.#peers.values()) {
      peer.dialling?.attempt.cancel();
    }
    this.#sides.cancel();
    for (const session of this.#sessions()) session.close();
  }

  /** Names who takes the streams of a kind that other nodes open; once each. */
  handle(kind: Kind, handler: StreamHandler): void {
    this.gate.handle(kind, handler);
  }

  /**
   * A connection to a node: the one that stands, or a new one.
   * @param insteadOf a connection that seems dead: it is not returned, and gets no new streams once another stands
   * @throws SvcError `connect_failed`, `protocol_error`, or the signal's reason
   */
  async connect(place: NodePlace, signal: AbortSignal, insteadOf?: Session): Promise<Session> {
    const id = toHex(place.nodeKey);
    for (;;) {
      const peer = this.#peer(id);
      if (isUsable(peer.current) && peer.current !== insteadOf) return peer.current;
      const { attempt, addresses } = (peer.dialling ??= this.#dial(id, peer, place));
      try {
        const session = await attempt.join(signal);
        insteadOf?.drain();
        if (!isUsable(peer.current)) peer.current = session;
        return session;
      } catch (error) {
        // Another caller's attempt may not have known all of our addresses.
        const tried = place.addresses.every((address) => addresses.has(formatAddress(address)));
        if (tried || signal.aborted || this.#stopped) throw error;
      }
    }
  }

  /**
   * A connection for bulk beside the current one.
   * @param index which of them, 0 to `MAX_SIDES` − 1
   * @throws SvcError as `connect`
   */
  side(place: NodePlace, index: number, signal: AbortSignal): Promise<Session> {
    return this.#sides.connect(toHex(place.nodeKey), index, signal, () => this.#attempt(place, KIND_SIDE_HELLO));
  }

  /** The connection to a node that stands now, if any. */
  current(nodeKey: Uint8Array): Session | null {
    const session = this.#peers.get(toHex(nodeKey))?.current ?? null;
    return isUsable(session) ? session : null;
  }

  /** Uses the connections to a node for no new streams; those that stand go on. */
  reset(nodeKey: Uint8Array): void {
    const node = toHex(nodeKey);
    const peer = this.#peers.get(node);
    for (const session of [...this.#sides.of(node), ...(peer?.sessions ?? [])]) session.drain();
    if (peer !== undefined) peer.current = null;
  }

  stats(): LinkStats {
    const total = { connections: 0, streams: 0, ...this.#past };
    for (const session of this.#sessions()) {
      const { bytesSent, bytesReceived } = session.stats();
      total.connections++;
      total.streams += session.streams;
      total.bytesSent += bytesSent;
      total.bytesReceived += bytesReceived;
    }
    return total;
  }

  /** Every connection, for the debug page. */
  connections(): readonly ConnectionView[] {
    return [...this.#sessions()].map((session) => ({
      node: nativeAid(session.there.nodeKey),
      address: session.connection.remoteAddress,
      outbound: session.connection.outbound,
      current: this.#peers.get(session.nodeId)?.current === session,
      streams: session.streams,
      rttMs: session.connection.rtt(),
      openedAt: session.openedAt,
      ...session.stats(),
    }));
  }

  #peer(id: string): Peer {
    const known = this.#peers.get(id);
    if (known !== undefined) return known;
    const peer: Peer = { sessions: new Set(), current: null, dialling: null };
    this.#peers.set(id, peer);
    return peer;
  }

  *#sessions(): Generator<Session> {
    for (const peer of this.#peers.values()) yield* peer.sessions;
    yield* this.#sides;
  }

  #dial(id: string, peer: Peer, place: NodePlace): Dialling {
    const attempt = this.#attempt(place, KIND_HELLO, () => {
      if (peer.dialling?.attempt === attempt) peer.dialling = null;
      this.#forgetIfIdle(id, peer);
    });
    return { attempt, addresses: new Set(place.addresses.map(formatAddress)) };
  }

  /** @param kind of the hello: what the connection is for */
  #attempt(place: NodePlace, kind: number, settled: () => void = () => {}): SharedAttempt<Session> {
    return new SharedAttempt(async (cancelled) => {
      try {
        using limit = deadline(this.#clock, DIAL_TIMEOUT_MS, cancelled);
        return await this.#connectAny(place, kind, limit.signal);
      } catch (error) {
        // A node that does not answer in time cannot be reached; how long the caller waits is his own affair.
        if (error instanceof SvcError && error.code === 'timeout')
          throw new SvcError('connect_failed', { cause: error });
        throw error;
      } finally {
        settled();
      }
    });
  }

  async #connectAny(place: NodePlace, kind: number, signal: AbortSignal): Promise<Session> {
    if (this.#stopped) throw new SvcError('cancelled');
    const dependencies = { endpoint: this.#endpoint, clock: this.#clock };
    const connection = await dialAny(place.addresses, place.nodeKey, signal, dependencies);
    const early: QuicStream[] = [];
    let deliver = (stream: QuicStream): void => {
      if (early.length < MAX_EARLY_STREAMS) early.push(stream);
      else stream.destroy();
    };
    connection.onStream((stream) => {
      guard(stream);
      deliver(stream);
    });
    try {
      const ours = this.#ourHello();
      const theirs = await sayHello(connection, ours, this.#network, signal, kind);
      const session =
        kind === KIND_HELLO ? this.#adopt(connection, ours, theirs) : this.#beside(connection, ours, theirs);
      deliver = (stream) => this.gate.admit(stream, session);
      for (const stream of early) deliver(stream);
      return session;
    } catch (error) {
      connection.close();
      throw error;
    }
  }

  #ourHello(): Hello {
    return { nonce: new Uint8Array(randomBytes(NONCE_BYTES)), instance: this.#instance };
  }

  /** Waits for the hello of a connection that another node dialled. */
  #greet(connection: QuicConnection): void {
    if (this.#stopped || this.#ungreeted.size >= MAX_UNGREETED) return connection.close();
    this.#ungreeted.add(connection);
    const limit = deadline(this.#clock, HELLO_TIMEOUT_MS);
    limit.signal.addEventListener('abort', () => connection.close());
    void connection.closed.then(() => this.#greeted(connection, limit));
    // Until its hello is answered the other node has nothing else to say.
    let deliver = (first: QuicStream): void => {
      deliver = () => connection.close();
      this.#answerHello(connection, first, limit.signal, (session) => {
        this.#greeted(connection, limit);
        deliver = (stream) => this.gate.admit(stream, session);
      }).catch(() => connection.close());
    };
    connection.onStream((stream) => {
      guard(stream);
      deliver(stream);
    });
  }

  #greeted(connection: QuicConnection, limit: Disposable): void {
    this.#ungreeted.delete(connection);
    limit[Symbol.dispose]();
  }

  async #answerHello(
    connection: QuicConnection,
    stream: QuicStream,
    signal: AbortSignal,
    greeted: (session: Session) => void,
  ): Promise<void> {
    const { status, hello, isSide } = await receiveHello(stream, this.#network, signal);
    if (hello === null) {
      // The refusal must reach the other node before the connection ends; it hangs up when it has read it.
      stream.once('close', () => connection.close());
      return refuse(stream, status, this.#clock);
    }
    const ours = this.#ourHello();
    const session = isSide ? this.#beside(connection, ours, hello) : this.#adopt(connection, ours, hello);
    if (isSide && !this.#sides.accept(session)) return session.close();
    greeted(session);
    acceptHello(stream, ours);
  }

  #session(connection: QuicConnection, ours: Hello, theirs: Hello): Session {
    const session = new Session({ connection, localKey: this.nodeKey, ours, theirs }, { clock: this.#clock });
    if (this.#stopped) session.close();
    const known = [...(this.#peers.get(session.nodeId)?.sessions ?? []), ...this.#sides.of(session.nodeId)];
    // The node has restarted: whatever its former life has left is dead.
    for (const other of known) if (other.instance !== session.instance) other.close();
    return session;
  }

  /** Makes a greeted connection one for bulk. */
  #beside(connection: QuicConnection, ours: Hello, theirs: Hello): Session {
    const session = this.#session(connection, ours, theirs);
    void connection.closed.then(() => {
      this.#count(session);
      this.#sides.forget(session);
    });
    return session;
  }

  /** Takes a greeted connection into the pool and decides which one of its node counts. */
  #adopt(connection: QuicConnection, ours: Hello, theirs: Hello): Session {
    const session = this.#session(connection, ours, theirs);
    const peer = this.#peer(session.nodeId);
    peer.sessions.add(session);
    const { current } = peer;
    if (!isUsable(current) || !this.#wins(current, session)) peer.current = session;
    this.#log.debug(
      { node: session.nodeId, outbound: connection.outbound, address: connection.remoteAddress },
      'connected',
    );
    peer.dialling?.attempt.settle(session);
    // Who comes when this connection is gone dials anew.
    peer.dialling = null;
    this.#trim(peer);
    void connection.closed.then(() => this.#forget(session, peer));
    return session;
  }

  /**
   * Whether a connection stays the current one beside a newer one. The newer one counts, since a
   * node dials anew only where the older one has failed it; but where both nodes dialled at once,
   * both must choose the same: the one that the node with the smaller key dialled.
   */
  #wins(current: Session, newer: Session): boolean {
    if (current.connection.outbound === newer.connection.outbound) return false;
    if (newer.openedAt - current.openedAt > SIMULTANEOUS_MS) return false;
    const weAreSmaller = Buffer.compare(this.nodeKey, current.there.nodeKey) < 0;
    return current.connection.outbound === weAreSmaller;
  }

  /** Closes the oldest spare connections of a node that has too many. */
  #trim(peer: Peer): void {
    for (const session of peer.sessions) {
      if (peer.sessions.size <= MAX_PER_NODE) return;
      if (session === peer.current) continue;
      peer.sessions.delete(session);
      session.close();
    }
  }

  #count(session: Session): void {
    const { bytesSent, bytesReceived } = session.stats();
    this.#past.bytesSent += bytesSent;
    this.#past.bytesReceived += bytesReceived;
  }

  #forget(session: Session, peer: Peer): void {
    this.#count(session);
    peer.sessions.delete(session);
    if (peer.current === session) peer.current = [...peer.sessions].findLast(isUsable) ?? null;
    this.#forgetIfIdle(session.nodeId, peer);
    this.#log.debug({ node: session.nodeId }, 'disconnected');
  }

  #forgetIfIdle(id: string, peer: Peer): void {
    if (peer.sessions.size === 0 && peer.dialling === null && this.#peers.get(id) === peer) this.#peers.delete(id);
  }

  #closeIdle(): void {
    for (const session of [...this.#sessions()]) {
      const isCurrent = this.#peers.get(session.nodeId)?.current === session;
      if (session.idleMs >= (isCurrent ? IDLE_MS : SPARE_IDLE_MS)) session.close();
    }
  }
}
