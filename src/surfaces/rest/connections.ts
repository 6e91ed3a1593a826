/**
 * How many connections the API holds. Where there is no place left, the one gives way to the newcomer on which for the
 * longest time nothing was asked, or not in whole: who holds connections and says nothing, or says it slowly, keeps
 * nobody out. Those that are served stay.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { subscriberOf } from '../../foundation/ip.ts';
import { Tally } from '../../foundation/tally.ts';
import { hasUnreadBody, SWITCHED } from './answer.ts';
import { isLoopbackPeer } from './host.ts';

/** Connections from this machine. */
export const MAX_LOCAL_CONNECTIONS = 2048;
/** Connections from elsewhere, all together. */
export const MAX_REMOTE_CONNECTIONS = 256;
/** Connections from one address elsewhere. */
export const MAX_REMOTE_CONNECTIONS_PER_ADDRESS = 32;

/** Requests of one connection that are not answered: clients wait for each answer, and those who do not take the event loop. */
export const MAX_PIPELINED = 16;

interface Held {
  readonly socket: Socket;
  readonly source: string;
  readonly tally: Tally;
  /** Requests that have been asked and not been answered. */
  asked: number;
}

export class ConnectionLimit {
  readonly #local = new Tally();
  readonly #remote = new Tally();
  readonly #held = new Map<Socket, Held>();
  /** On which nothing is asked, or not in whole; since the longest time first. */
  readonly #waiting = new Set<Held>();

  /** Open connections. */
  get open(): number {
    return this.#held.size;
  }

  /** Counts a new connection until it closes; cuts it where it is one too many and none gives way. */
  take(socket: Socket): void {
    const { remoteAddress = '' } = socket;
    const tally = isLoopbackPeer(remoteAddress) ? this.#local : this.#remote;
    const held = { socket, source: subscriberOf(remoteAddress), tally, asked: 0 };
    if (!this.#makeRoom(held)) {
      socket.destroy();
      return;
    }
    tally.add(held.source);
    this.#held.set(socket, held);
    this.#waiting.add(held);
    socket.once('close', () => this.#leave(held));
  }

  /** Takes note of a request on a connection until it is answered; false for one too many, which is not to be answered. */
  asked(request: IncomingMessage, response: ServerResponse): boolean {
    const held = this.#held.get(request.socket);
    if (held === undefined) return true;
    if (held.asked >= MAX_PIPELINED) return false;
    held.asked++;
    this.#waiting.delete(held);
    if (hasUnreadBody(request)) {
      this.#waiting.add(held);
      request.once('end', () => this.#waiting.delete(held));
    }
    response.once('close', () => {
      // What speaks another protocol now is asked and answered without us.
      if (response.statusCode === SWITCHED) return;
      held.asked--;
      if (held.asked > 0 || !this.#held.has(held.socket)) return;
      this.#waiting.delete(held);
      this.#waiting.add(held);
    });
    return true;
  }

  #leave(held: Held): void {
    if (!this.#held.delete(held.socket)) return;
    held.tally.add(held.source, -1);
    this.#waiting.delete(held);
  }

  #makeRoom({ tally, source }: Held): boolean {
    const isRemote = tally === this.#remote;
    if (isRemote && tally.of(source) >= MAX_REMOTE_CONNECTIONS_PER_ADDRESS)
      return this.#giveWay((held) => held.tally === tally && held.source === source);
    if (tally.total < (isRemote ? MAX_REMOTE_CONNECTIONS : MAX_LOCAL_CONNECTIONS)) return true;
    return this.#giveWay((held) => held.tally === tally);
  }

  #giveWay(may: (held: Held) => boolean): boolean {
    for (const held of this.#waiting)
      if (may(held)) {
        this.#leave(held);
        held.socket.destroy();
        return true;
      }
    return false;
  }
}
