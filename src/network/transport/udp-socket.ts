/** UDP sockets, by default of `udx-native`: bulk lanes send from the same sockets. */
import type { EventEmitter } from 'node:events';
import Udx from 'udx-native';
import type { Address } from '../../foundation/address.ts';

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
}

/** Makes sockets that are not bound yet. */
export type SocketFactory = () => UdpSocket;

export function udxSockets(): SocketFactory {
  const udx = new Udx();
  return () => udx.createSocket();
}

/** Size of the tag of a record network, bytes. Its datagrams start with the tag. */
export const NETWORK_TAG_BYTES = 8;

/** Ports that other nodes name as destinations. */

/** Lower ports belong to services: NATs do not assign them, and we send nothing to them. */
export const FIRST_MAPPED_PORT = 1024;
/** The port of HTTP/3. Firewalls allow UDP to it. */
const HTTPS_PORT = 443;

/** True if a port that a node claims to listen on can be dialed. */
export function mayDialPort(port: number): boolean {
  return port >= FIRST_MAPPED_PORT || port === HTTPS_PORT;
}
