/**
 * Closes a connection while the client is still sending a body that is not read. If the socket were closed immediately,
 * the system would reset it, and the client would lose the error response, because most clients read only after
 * sending. So the response is sent, our side is closed, and incoming data is discarded for a while.
 */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Clock } from '../../foundation/clock.ts';
import { hasUnreadBody } from './response.ts';

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
