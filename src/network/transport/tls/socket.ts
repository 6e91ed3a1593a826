/** A UDP socket that sends through a borrowed port while UDP over TLS is active. It receives from both at any time. */
import { EventEmitter } from 'node:events';
import type { Address } from '../../../foundation/address.ts';
import type { BorrowedPort, SocketFactory, UdpSocket } from '../udp-socket.ts';
import type { UdpOverTls } from './client.ts';

/** Creates sockets that switch. */
export function switchingSockets(create: SocketFactory, overTls: UdpOverTls): SocketFactory {
  return () => new SwitchingSocket(create(), overTls);
}

class SwitchingSocket extends EventEmitter implements UdpSocket {
  readonly system: UdpSocket;
  readonly #overTls: UdpOverTls;
  /** Opened by the first datagram. */
  #borrowed: BorrowedPort | null = null;
  #isClosed = false;

  constructor(system: UdpSocket, overTls: UdpOverTls) {
    super();
    this.system = system;
    this.#overTls = overTls;
    system.on('message', (datagram: Uint8Array, from: Address) => this.emit('message', datagram, from));
  }

  get packetsReceived(): number {
    return this.system.packetsReceived ?? 0;
  }

  bind(port: number, host: string): void {
    this.system.bind(port, host);
  }

  address(): Address | null {
    return this.system.address();
  }

  trySend(datagram: Uint8Array, port: number, host: string, ttl?: number): void {
    if (this.#overTls.carries(host)) this.#port()?.send(datagram, { host, port });
    else this.system.trySend(datagram, port, host, ttl);
  }

  async send(datagram: Uint8Array, port: number, host: string, ttl?: number): Promise<boolean> {
    if (!this.#overTls.carries(host)) return await this.system.send(datagram, port, host, ttl);
    return this.#port()?.send(datagram, { host, port }) ?? false;
  }

  handOver(): BorrowedPort | null {
    const port = this.#borrowed;
    this.#borrowed = null;
    return port?.isOpen === true ? port : null;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#borrowed?.close();
    this.#borrowed = null;
    await this.system.close();
  }

  /** Null if the helper's limit is reached. */
  #port(): BorrowedPort | null {
    if (this.#isClosed) return null;
    if (this.#borrowed?.isOpen === true) return this.#borrowed;
    this.#borrowed = this.#overTls.borrow();
    this.#borrowed?.receive((datagram, from) => this.emit('message', Buffer.from(datagram), from));
    return this.#borrowed;
  }
}
