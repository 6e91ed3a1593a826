/** A UDP socket that sends through one borrowed port only. */
import { EventEmitter } from 'node:events';
import type { Address } from '../../../foundation/address.ts';
import type { BorrowedPort, UdpSocket } from '../udp-socket.ts';

export class TrialSocket extends EventEmitter implements UdpSocket {
  readonly #port: BorrowedPort;

  constructor(port: BorrowedPort) {
    super();
    this.#port = port;
    port.receive((datagram, from) => this.emit('message', Buffer.from(datagram), from));
  }

  /** The helper has bound it. */
  bind(): void {}

  address(): Address | null {
    return null;
  }

  trySend(datagram: Uint8Array, port: number, host: string): void {
    this.#port.send(datagram, { host, port });
  }

  async send(datagram: Uint8Array, port: number, host: string): Promise<boolean> {
    return this.#port.send(datagram, { host, port });
  }

  async close(): Promise<void> {
    this.#port.close();
  }
}
