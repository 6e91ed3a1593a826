/**
 * How many connections the API holds. Where there is no place left, one on which nothing is asked gives way to the
 * newcomer, and then one whose request has not come in whole: who holds connections and says nothing, or says it slowly,
 * keeps nobody out. Those that are served stay.
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
  /** On which nothing is asked, and whose request has not come in whole; since the longest time first. */
  readonly #silent = new Set<Held>();
  readonly #sending = new Set<Held>();

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
    this.#silent.add(held);
    socket.once('close', () => this.#leave(held));
  }

  /** Takes note of a request on a connection until it is answered. */
  asked(request: IncomingMessage, response: ServerResponse): void {
    const held = this.#held.get(request.socket);
    if (held === undefined) return;
    held.asked++;
    this.#silent.delete(held);
    if (hasUnreadBody(request)) {
      this.#sending.add(held);
      request.once('end', () => this.#sending.delete(held));
    }
    response.once('close', () => {
      // What speaks another protocol now is asked and answered without us.
      if (response.statusCode === SWITCHED) return;
      held.asked--;
      if (held.asked > 0 || !this.#held.has(held.socket)) return;
      this.#sending.delete(held);
      this.#silent.add(held);
    });
  }

  #leave(held: Held): void {
    if (!this.#held.delete(held.socket)) return;
    held.tally.add(held.source, -1);
    this.#silent.delete(held);
    this.#sending.delete(held);
  }

  #makeRoom({ tally, source }: Held): boolean {
    const isRemote = tally === this.#remote;
    if (isRemote && tally.of(source) >= MAX_REMOTE_CONNECTIONS_PER_ADDRESS)
      return this.#giveWay((held) => held.tally === tally && held.source === source);
    if (tally.total < (isRemote ? MAX_REMOTE_CONNECTIONS : MAX_LOCAL_CONNECTIONS)) return true;
    return this.#giveWay((held) => held.tally === tally);
  }

  #giveWay(may: (held: Held) => boolean): boolean {
    for (const group of [this.#silent, this.#sending])
      for (const held of group)
        if (may(held)) {
          this.#leave(held);
          held.socket.destroy();
          return true;
        }
    return false;
  }
}
