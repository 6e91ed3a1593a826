/**
 * How many connections the API holds. Where there is no place left, the one gives way to the newcomer on which for the
 * longest time nothing was asked, or not in whole, one that was never served first: who holds connections and says nothing, or says it slowly, keeps
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
/** Connections from this machine on which nothing is asked, or not in whole: some 50 KB each. */
export const MAX_LOCAL_WAITING = 512;
/** Connections from elsewhere, all together. */
export const MAX_REMOTE_CONNECTIONS = 256;
/** Connections from one address elsewhere. */
export const MAX_REMOTE_CONNECTIONS_PER_ADDRESS = 32;

/** Requests of one connection that are not answered: clients wait for each answer, and those who do not take the event loop. */
export const MAX_PIPELINED = 16;

/** The connections from this machine, or those from elsewhere. */
class Side {
  readonly most: number;
  readonly mostOfSource: number;
  readonly mostWaiting: number;
  readonly open = new Tally();
  /** On which nothing is asked, or not in whole; since the longest time first. */
  readonly waiting = new Set<Held>();

  constructor(most: number, mostOfSource: number, mostWaiting: number) {
    this.most = most;
    this.mostOfSource = mostOfSource;
    this.mostWaiting = mostWaiting;
  }
}

interface Held {
  readonly socket: Socket;
  readonly source: string;
  readonly side: Side;
  /** Requests that have been asked and not been answered. */
  asked: number;
  /** One was answered: a program that keeps its connection, and not one who only holds it. */
  served: boolean;
}

export class ConnectionLimit {
  readonly #local = new Side(MAX_LOCAL_CONNECTIONS, MAX_LOCAL_CONNECTIONS, MAX_LOCAL_WAITING);
  readonly #remote = new Side(MAX_REMOTE_CONNECTIONS, MAX_REMOTE_CONNECTIONS_PER_ADDRESS, MAX_REMOTE_CONNECTIONS);
  readonly #held = new Map<Socket, Held>();

  /** Open connections. */
  get open(): number {
    return this.#held.size;
  }

  /** Counts a new connection until it closes; cuts it where it is one too many and none gives way. */
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

  /** Takes note of a request on a connection until it is answered; false for one too many, which is not to be answered. */
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
      // What speaks another protocol now is asked and answered without us.
      if (response.statusCode === SWITCHED) return;
      held.asked--;
      held.served = true;
      if (held.asked > 0 || !this.#held.has(held.socket)) return;
      held.side.waiting.delete(held);
      held.side.waiting.add(held);
    });
    return true;
  }

  #leave(held: Held): void {
    if (!this.#held.delete(held.socket)) return;
    held.side.open.add(held.source, -1);
    held.side.waiting.delete(held);
  }

  #makeRoom({ side, source }: Held): boolean {
    if (side.open.of(source) >= side.mostOfSource) return this.#giveWay(side, (held) => held.source === source);
    if (side.open.total < side.most && side.waiting.size < side.mostWaiting) return true;
    return this.#giveWay(side, () => true);
  }

  #giveWay(side: Side, may: (held: Held) => boolean): boolean {
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
