/** How many connections the API holds, so that strangers cannot use up those of this machine. */
import type { Socket } from 'node:net';
import { subscriberOf } from '../../foundation/ip.ts';
import { Tally } from '../../foundation/tally.ts';
import { isLoopbackPeer } from './host.ts';

/** Connections from this machine. */
export const MAX_LOCAL_CONNECTIONS = 2048;
/** Connections from elsewhere, all together. */
export const MAX_REMOTE_CONNECTIONS = 256;
/** Connections from one address elsewhere. */
export const MAX_REMOTE_CONNECTIONS_PER_ADDRESS = 32;

export class ConnectionLimit {
  readonly #ofStranger = new Tally();
  #local = 0;

  /** Open connections. */
  get open(): number {
    return this.#local + this.#ofStranger.total;
  }

  /** Counts a new connection until it closes; cuts it where it is one too many. */
  take(socket: Socket): void {
    if (isLoopbackPeer(socket.remoteAddress)) this.#takeLocal(socket);
    else this.#takeRemote(socket, subscriberOf(socket.remoteAddress ?? ''));
  }

  #takeLocal(socket: Socket): void {
    if (this.#local >= MAX_LOCAL_CONNECTIONS) {
      socket.destroy();
      return;
    }
    this.#local++;
    socket.once('close', () => {
      this.#local--;
    });
  }

  #takeRemote(socket: Socket, key: string): void {
    if (
      this.#ofStranger.total >= MAX_REMOTE_CONNECTIONS ||
      this.#ofStranger.of(key) >= MAX_REMOTE_CONNECTIONS_PER_ADDRESS
    ) {
      socket.destroy();
      return;
    }
    this.#ofStranger.add(key);
    socket.once('close', () => this.#ofStranger.add(key, -1));
  }
}
