/**
 * Limits on API connections. When full, the connection that has been idle longest is evicted, or that has been sending
 * an incomplete request longest. Connections that were never served go first, so idle and slow clients cannot keep
 * others out. Connections with a request in progress stay.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Clock } from '../../foundation/clock.ts';
import { subscriberOf } from '../../foundation/ip.ts';
import { Tally } from '../../foundation/tally.ts';
import { isLoopbackPeer } from './host.ts';
import { hasUnreadBody, SWITCHING_PROTOCOLS } from './response.ts';

// Closes a connection while the client is still sending a body that is not read. If the socket were closed
// immediately, the system would reset it, and the client would lose the error response, because most clients read
// only after sending. So the response is sent, our side is closed, and incoming data is discarded for a while.

/** Bytes of a rejected body that are discarded before the connection is destroyed. */
const MAX_DISCARDED_BYTES = 32 * 1024 * 1024;
/** How long the rest of a rejected body is awaited, in milliseconds. */
const LINGER_MS = 30_000;

export class Lingering {
  readonly #clock: Clock;
  readonly #requests = new WeakMap<Duplex, IncomingMessage>();
  readonly #ending = new WeakSet<Duplex>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Applies this to a new connection. */
  watch(socket: Socket): void {
    const close = socket.destroySoon.bind(socket);
    // Node calls this after the last response on a connection.
    socket.destroySoon = () => {
      const request = this.#requests.get(socket);
      if (request === undefined || !hasUnreadBody(request)) close();
      else this.#linger(socket, request, close);
    };
  }

  /**
   * Registers a request. Returns false if its connection is already closing. A request after a rejected body must not
   * run, because it cannot get a response.
   */
  take(request: IncomingMessage): boolean {
    if (this.#ending.has(request.socket)) return false;
    this.#requests.set(request.socket, request);
    return true;
  }

  #linger(socket: Socket, request: IncomingMessage, close: () => void): void {
    this.#ending.add(socket);
    const timer = this.#clock.after(LINGER_MS, () => socket.destroy());
    socket.once('close', () => timer.cancel());
    let left = MAX_DISCARDED_BYTES;
    socket.on('data', ({ length }: Buffer) => {
      left -= length;
      if (left < 0) socket.destroy();
    });
    request.once('end', close);
    request.resume();
    socket.end();
  }
}

/** Connections from this machine. */
export const MAX_LOCAL_CONNECTIONS = 2048;
/** Connections from this machine without a complete request. Each uses about 50 KB. */
export const MAX_LOCAL_WAITING = 512;
/** Connections from other machines in total. */
export const MAX_REMOTE_CONNECTIONS = 256;
/** Connections from one remote address. */
export const MAX_REMOTE_CONNECTIONS_PER_ADDRESS = 32;

/**
 * Pipelined requests on one connection. Clients usually wait for each response, and long pipelines block the event
 * loop.
 */
export const MAX_PIPELINED = 16;

/** Local or remote connections. */
class ConnectionPool {
  readonly most: number;
  readonly mostOfSource: number;
  readonly mostWaiting: number;
  readonly open = new Tally();
  /** Connections without a complete request, longest waiting first. */
  readonly waiting = new Set<HeldConnection>();

  constructor(most: number, mostOfSource: number, mostWaiting: number) {
    this.most = most;
    this.mostOfSource = mostOfSource;
    this.mostWaiting = mostWaiting;
  }
}

interface HeldConnection {
  readonly socket: Socket;
  readonly source: string;
  readonly side: ConnectionPool;
  /** Requests without a response. */
  asked: number;
  /** A request was served, so the client uses keep-alive and does not merely hold a connection. */
  served: boolean;
}

export class ConnectionLimit {
  readonly #local = new ConnectionPool(MAX_LOCAL_CONNECTIONS, MAX_LOCAL_CONNECTIONS, MAX_LOCAL_WAITING);
  readonly #remote = new ConnectionPool(
    MAX_REMOTE_CONNECTIONS,
    MAX_REMOTE_CONNECTIONS_PER_ADDRESS,
    MAX_REMOTE_CONNECTIONS,
  );
  readonly #held = new Map<Socket, HeldConnection>();

  /** Open connections. */
  get open(): number {
    return this.#held.size;
  }

  /** Counts a new connection until it closes. Destroys it if the limit is reached and no connection can be evicted. */
  take(socket: Socket): void {
    const { remoteAddress = '' } = socket;
    const side = isLoopbackPeer(remoteAddress) ? this.#local : this.#remote;
    const held = { socket, source: subscriberOf(remoteAddress), side, asked: 0, served: false };
    if (!this.#makeRoom(held)) {
      socket.destroy();
      return;
    }
    side.open.add(held.source);
    this.#held.set(socket, held);
    side.waiting.add(held);
    socket.once('close', () => this.#leave(held));
  }

  /**
   * Counts a request until its response is complete. Returns false if it exceeds the pipeline limit and must not be
   * served.
   */
  asked(request: IncomingMessage, response: ServerResponse): boolean {
    const held = this.#held.get(request.socket);
    if (held === undefined) return true;
    if (held.asked >= MAX_PIPELINED) return false;
    held.asked++;
    held.side.waiting.delete(held);
    if (hasUnreadBody(request)) {
      held.side.waiting.add(held);
      request.once('end', () => held.side.waiting.delete(held));
    }
    response.once('close', () => {
      // After a protocol switch, requests on this connection are not counted.
      if (response.statusCode === SWITCHING_PROTOCOLS) return;
      held.asked--;
      held.served = true;
      if (held.asked > 0 || !this.#held.has(held.socket)) return;
      held.side.waiting.delete(held);
      held.side.waiting.add(held);
    });
    return true;
  }

  #leave(held: HeldConnection): void {
    if (!this.#held.delete(held.socket)) return;
    held.side.open.add(held.source, -1);
    held.side.waiting.delete(held);
  }

  #makeRoom({ side, source }: HeldConnection): boolean {
    if (side.open.of(source) >= side.mostOfSource) return this.#evictOldest(side, (held) => held.source === source);
    if (side.open.total < side.most && side.waiting.size < side.mostWaiting) return true;
    return this.#evictOldest(side, () => true);
  }

  #evictOldest(side: ConnectionPool, may: (held: HeldConnection) => boolean): boolean {
    for (const served of [false, true])
      for (const held of side.waiting)
        if (held.served === served && may(held)) {
          this.#leave(held);
          held.socket.destroy();
          return true;
        }
    return false;
  }
}
