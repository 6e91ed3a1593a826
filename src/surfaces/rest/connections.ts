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
  readonly #local = new Tally();
  readonly #remote = new Tally();

  /** Open connections. */
  get open(): number {
    return this.#local.total + this.#remote.total;
  }

  /** Counts a new connection until it closes; cuts it where it is one too many. */
  take(socket: Socket): void {
    const { remoteAddress = '' } = socket;
    const tally = isLoopbackPeer(remoteAddress) ? this.#local : this.#remote;
    const key = subscriberOf(remoteAddress);
    if (this.#isFull(tally, key)) {
      socket.destroy();
      return;
    }
    tally.add(key);
    socket.once('close', () => tally.add(key, -1));
  }

  #isFull(tally: Tally, key: string): boolean {
    if (tally === this.#local) return tally.total >= MAX_LOCAL_CONNECTIONS;
    return tally.total >= MAX_REMOTE_CONNECTIONS || tally.of(key) >= MAX_REMOTE_CONNECTIONS_PER_ADDRESS;
  }
}
