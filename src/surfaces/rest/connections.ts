/** How many connections the API holds, so that strangers cannot use up those of this machine. */
import type { Socket } from 'node:net';
import { subscriberOf } from '../../foundation/ip.ts';
import { isLoopbackPeer } from './host.ts';

/** Connections from this machine. */
export const MAX_LOCAL_CONNECTIONS = 2048;
/** Connections from elsewhere, all together. */
export const MAX_REMOTE_CONNECTIONS = 256;
/** Connections from one address elsewhere. */
export const MAX_REMOTE_CONNECTIONS_PER_ADDRESS = 32;

export class ConnectionLimit {
  readonly #perAddress = new Map<string, number>();
  #local = 0;
  #remote = 0;

  /** Open connections. */
  get open(): number {
    return this.#local + this.#remote;
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
    const held = this.#perAddress.get(key) ?? 0;
    if (this.#remote >= MAX_REMOTE_CONNECTIONS || held >= MAX_REMOTE_CONNECTIONS_PER_ADDRESS) {
      socket.destroy();
      return;
    }
    this.#remote++;
    this.#perAddress.set(key, held + 1);
    socket.once('close', () => {
      this.#remote--;
      const left = (this.#perAddress.get(key) ?? 1) - 1;
      if (left === 0) this.#perAddress.delete(key);
      else this.#perAddress.set(key, left);
    });
  }
}
