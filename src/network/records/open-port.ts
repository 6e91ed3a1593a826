/** A UDP port beside those of the DHT, that its nodes can be asked about: how they see it from outside. */
import { EventEmitter } from 'node:events';
import type DHT from 'dht-rpc';
import { type Address, formatAddress } from '../../foundation/address.ts';
import { ANSWER_BYTE, type SocketPair } from './wire.ts';

export class OpenPort {
  readonly #dht: DHT;
  readonly #sockets: SocketPair;

  constructor(dht: DHT, sockets: SocketPair, family: 4 | 6) {
    this.#dht = dht;
    this.#sockets = sockets;
    const { plain, tagged } = sockets;
    // Requests are not answered here.
    tagged.on('message', (datagram: Uint8Array, from: DHT.Address) => {
      if (datagram[0] === ANSWER_BYTE) dht.onmessage(tagged, datagram, from);
    });
    plain.bind(0, family === 4 ? '0.0.0.0' : '::');
  }

  /** Its own number, before any translation. */
  get port(): number {
    return this.#sockets.plain.address()?.port ?? 0;
  }

  /** How a node of the DHT sees it; null where that node does not answer. */
  async seenBy(node: Address): Promise<Address | null> {
    try {
      const { to } = await this.#dht.ping(node, { socket: this.#sockets.tagged });
      return { host: to.host, port: to.port };
    } catch {
      return null;
    }
  }

  /**
   * Sends a datagram, without the tag of the network; settles when it has left, or was not let out.
   * @param ttl hops that it may take; the system's number where left out
   */
  async send(datagram: Uint8Array, to: Address, ttl?: number): Promise<void> {
    await this.#sockets.plain.send(datagram, to.port, to.host, ttl);
  }

  /** Settles when a datagram with exactly these bytes comes from an address, or never. */
  async received(expected: Uint8Array, from: Address, signal: AbortSignal): Promise<boolean> {
    const { plain } = this.#sockets;
    const done = Promise.withResolvers<boolean>();
    const read = (datagram: Uint8Array, sender: Address): void => {
      if (formatAddress(sender) === formatAddress(from) && Buffer.compare(datagram, expected) === 0) done.resolve(true);
    };
    const give = (): void => done.resolve(false);
    plain.on('message', read);
    signal.addEventListener('abort', give, { once: true });
    if (signal.aborted) give();
    try {
      return await done.promise;
    } finally {
      EventEmitter.prototype.off.call(plain, 'message', read);
      signal.removeEventListener('abort', give);
    }
  }

  /** Frees the port. */
  async close(): Promise<void> {
    await this.#sockets.plain.close();
  }
}
