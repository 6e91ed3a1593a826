/**
 * How a connection ends whose client still sends a body that nobody will read. Closed at once, it
 * would be reset by the system, and the client would lose the answer that says what was wrong: most
 * clients read it only when they have sent everything. So the answer goes out, our side is closed, and
 * what comes is thrown away for a while.
 */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Clock } from '../../foundation/clock.ts';
import { hasUnreadBody } from './answer.ts';

/** What is thrown away of a body that was refused, bytes; then the connection is cut. */
const MAX_DISCARDED_BYTES = 32 * 1024 * 1024;
/** How long the rest of a body that was refused is waited for, milliseconds. */
const LINGER_MS = 30_000;

export class Lingering {
  readonly #clock: Clock;
  readonly #requests = new WeakMap<Duplex, IncomingMessage>();
  readonly #ending = new WeakSet<Duplex>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Has a new connection end this way. */
  watch(socket: Socket): void {
    const close = socket.destroySoon.bind(socket);
    // What Node calls behind an answer that is the last on its connection.
    socket.destroySoon = () => {
      const request = this.#requests.get(socket);
      if (request === undefined || !hasUnreadBody(request)) close();
      else this.#linger(socket, request, close);
    };
  }

  /**
   * Takes note of a request. False where its connection is ending already: what follows a body that
   * was refused must not run, since it could not be answered.
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
