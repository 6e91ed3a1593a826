/**
 * A network path in front of a local UDP socket that delays and drops packets. Each client gets its own socket behind
 * it, like behind a NAT.
 */
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import type { Address } from '../../src/foundation/address.ts';
import { Random } from './random.ts';

const HOST = '127.0.0.1';

interface LossyPathOptions {
  readonly target: Address;
  readonly oneWayMs: number;
  /** Share of dropped packets, 0 to 1. */
  readonly loss: number;
  /** Longer packets are dropped, in bytes of UDP payload. */
  readonly maxBytes?: number | undefined;
}

export class LossyPath {
  readonly address: Address;
  readonly #front: Socket;
  readonly #behind = new Map<number, Socket>();
  readonly #random = new Random(1);
  readonly #options: LossyPathOptions;
  #closed = false;

  private constructor(front: Socket, options: LossyPathOptions) {
    this.#front = front;
    this.#options = options;
    this.address = { host: HOST, port: front.address().port };
    front.on('message', (packet, { port }) =>
      this.#pass(packet, () => this.#socketOf(port).send(packet, options.target.port)),
    );
  }

  static async open(options: LossyPathOptions): Promise<LossyPath> {
    const front = createSocket('udp4').bind(0, HOST);
    await once(front, 'listening');
    return new LossyPath(front, options);
  }

  #socketOf(client: number): Socket {
    const known = this.#behind.get(client);
    if (known !== undefined) return known;
    const socket = createSocket('udp4').bind(0, HOST);
    socket.on('message', (packet) => this.#pass(packet, () => this.#front.send(packet, client, HOST)));
    this.#behind.set(client, socket);
    return socket;
  }

  #pass({ length }: Buffer, send: () => void): void {
    const { loss, maxBytes = Number.POSITIVE_INFINITY } = this.#options;
    if (length > maxBytes || this.#random.chance(loss)) return;
    setTimeout(() => {
      if (!this.#closed) send();
    }, this.#options.oneWayMs);
  }

  [Symbol.dispose](): void {
    this.#closed = true;
    for (const socket of [this.#front, ...this.#behind.values()]) socket.close();
  }
}
