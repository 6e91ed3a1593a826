/** UDP sockets, by default of `udx-native`: bulk lanes send from the same sockets. */
import { EventEmitter } from 'node:events';
import { type Address, HTTPS_PORT } from '../../foundation/address.ts';
import { detach } from '../../foundation/detached.ts';
import { codeOf, SvcError } from '../../foundation/errors.ts';
import { createUdx, missingUdx } from './udx.ts';

/** Emits `message` with each datagram and the address of its sender. */
export interface UdpSocket extends EventEmitter {
  /** @throws Error if the address is in use, or this machine does not have it */
  bind(port: number, host: string): void;
  /** Null before `bind`. */
  address(): Address | null;
  readonly packetsReceived?: number;
  close(): Promise<void>;
  trySend(datagram: Uint8Array, port: number, host: string, ttl?: number): void;
  /** Like `trySend`. Settles with true when the datagram has left, and with false if it cannot. */
  send(datagram: Uint8Array, port: number, host: string, ttl?: number): Promise<boolean>;
  /** The socket of the system, which streams of `udx-native` need; missing if it is this one. */
  readonly system?: UdpSocket;
  /** The borrowed port that it sent from, which `close` then leaves open; null without one. */
  handOver?(): BorrowedPort | null;
}

/** A UDP port of a helper that this node uses as its own (UDP over TLS). */
export interface BorrowedPort {
  /** False after it was closed, also with the connection to the helper. */
  readonly isOpen: boolean;
  /** Sends a datagram, or drops it: false. */
  send(datagram: Uint8Array, to: Address): boolean;
  /** Sets the receiver. It copies datagrams that it keeps. */
  receive(handler: (datagram: Uint8Array, from: Address) => void): void;
  close(): void;
}

/** Lends this node UDP ports of a helper while its own UDP does not work. */
export interface BorrowedPorts {
  /** True if datagrams to an IP address must leave through a borrowed port now. */
  carries(host: string): boolean;
  /** Opens a port with the first datagram. Null without a helper, or if its limit is reached. */
  borrow(): BorrowedPort | null;
}

/**
 * Binds a socket to any port. A socket that cannot be bound is closed.
 * @throws SvcError `connect_failed` if the system has no port, for example without a free descriptor
 */
export function bindAnyPort(socket: Pick<UdpSocket, 'bind' | 'close'>, host: string): void {
  try {
    socket.bind(0, host);
  } catch (cause) {
    detach(socket.close());
    throw bindFailure(cause);
  }
}

/** The error for a UDP port that the system refused. */
export function bindFailure(cause: unknown): SvcError {
  // The QUIC engine reports texts without codes.
  const reason = codeOf(cause, cause instanceof Error ? cause.message : 'for an unknown reason');
  return new SvcError('connect_failed', { message: `This machine cannot open another UDP port (${reason}).`, cause });
}

/** Makes sockets that are not bound yet. */
export type SocketFactory = () => UdpSocket;

export function udxSockets(): SocketFactory {
  if (missingUdx !== null) return () => new NoSocket();
  const udx = createUdx();
  return () => udx.createSocket();
}

/** Sends and receives nothing. */
class NoSocket extends EventEmitter implements UdpSocket {
  #address: Address | null = null;

  bind(port: number, host: string): void {
    this.#address = { host, port };
  }

  address(): Address | null {
    return this.#address;
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  trySend(): void {}

  send(): Promise<boolean> {
    return Promise.resolve(false);
  }
}

/**
 * The addresses of the UDP ports that this node lends. Datagrams between them and its own sockets stay on this machine,
 * so both see an address of an interface. Behind a NAT, others know these ports at another host.
 */
export interface LentPortAddresses {
  /** The address that others see, for a local address of a lent port; other addresses unchanged. */
  outer(address: Address): Address;
  /** The reverse. */
  local(address: Address): Address;
  /** The source of the client that borrows the port at a local or outer address; null for other addresses. */
  borrowerAt(address: Address): string | null;
}

/** Size of the tag of a record network, bytes. Its datagrams start with the tag. */
export const NETWORK_TAG_BYTES = 8;
/** The byte after the tag, of requests and of answers. */
export const REQUEST_BYTE = 0x03;
export const ANSWER_BYTE = 0x13;

/** Minimum size of the first packet of a QUIC handshake (RFC 9000, 14.1), bytes. */
export const QUIC_INITIAL_BYTES = 1200;

/* Ports that other nodes name as destinations. */

/** Lower ports belong to services: NATs do not assign them, and we send nothing to them. */
export const FIRST_MAPPED_PORT = 1024;

/** True if a port that a node claims to listen on can be dialed. */
export function mayDialPort(port: number): boolean {
  return port >= FIRST_MAPPED_PORT || port === HTTPS_PORT;
}
