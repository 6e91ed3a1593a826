/**
 * The lent ports of one client (docs/protocol-tls.md, steps 5, 7 and 8). They outlive its TLS connection for a while,
 * so that a lost connection costs no QUIC connection.
 */
import { createSocket, type RemoteInfo, type Socket } from 'node:dgram';
import { type Address, formatAddress } from '../../../foundation/address.ts';
import type { Clock, Timer } from '../../../foundation/clock.ts';
import { canonicalIp } from '../../../foundation/ip.ts';
import { LruCache } from '../../../foundation/lru-cache.ts';
import type { QuotaShare } from '../../../foundation/quota.ts';
import type { Destinations } from './destinations.ts';
import type { PacedSocket } from './pacing.ts';
import { type CarriedDatagram, MAX_CARRIED_BYTES } from './wire.ts';

/** How long the ports are kept after the connection was lost, milliseconds. */
export const RESUME_KEPT_MS = 30_000;
/** Send and receive buffer of a lent port in the kernel, bytes; systems may allow less. */
const SOCKET_BYTES: number = 1024 * 1024;
/** Translated addresses of one client. */
const MAX_TRANSLATED = 64;
/** How long it is remembered whether an address is one of this node, milliseconds. */
const LOCAL_TTL_MS = 10_000;

/** Counts of all clients. Dropped datagrams exceeded a limit, or went to or came from a place that is not permitted. */
export interface LendingCounters {
  datagrams: number;
  bytes: number;
  dropped: number;
}

/** The addresses that lent ports are bound to. */
export interface LendingHosts {
  readonly ipv4: string;
  readonly ipv6: string;
}

interface LeaseDependencies {
  readonly clock: Clock;
  readonly destinations: Destinations;
  readonly hosts: LendingHosts;
  /** Spends bytes of the relay's budgets, at least the price of a short datagram. */
  readonly spend: (bytes: number) => boolean;
  /** Takes one entry that is not permitted of the client's rate; false if there is none. */
  readonly takeRefused: () => boolean;
  /** The units of the client: one for each port. */
  readonly share: QuotaShare;
  readonly counters: LendingCounters;
  /** The source of the client. */
  readonly source: string;
  /** UDP ports that are lent now, to all clients, with the source of each client. */
  readonly lentPorts: Map<number, string>;
  /** The local address of a socket of this node that others reach at an address; null for addresses of others. */
  readonly toLocal: (address: Address) => Address | null;
  /** Called once, when the ports are closed. */
  readonly onEnd: () => void;
}

type Family = 'udp4' | 'udp6';
/** One lent port: a socket for each address family in use; null if the system has none of that family. */
type LentSockets = Map<Family, Socket | null>;

export class Lease {
  readonly #deps: LeaseDependencies;
  readonly #ports = new Map<number, LentSockets>();
  /** The address that the client uses, by the local address that it is translated to. */
  readonly #translated = new LruCache<string, Address>({ maxEntries: MAX_TRANSLATED });
  readonly #bound = new WeakMap<Socket, number>();
  readonly #locals: LruCache<string, Address | null>;
  #connection: PacedSocket | null = null;
  #expiry: Timer | null = null;
  #isEnded = false;

  constructor(dependencies: LeaseDependencies) {
    this.#deps = dependencies;
    this.#locals = new LruCache({ maxEntries: MAX_TRANSLATED, ttlMs: LOCAL_TTL_MS }, dependencies);
  }

  /** Ports in use. */
  get ports(): number {
    return this.#ports.size;
  }

  get isConnected(): boolean {
    return this.#connection !== null;
  }

  /** Replaces the connection, and cuts off an earlier one. */
  attach(connection: PacedSocket): void {
    this.#expiry?.cancel();
    this.#expiry = null;
    this.#connection?.terminate();
    this.#connection = connection;
  }

  /** The connection was lost. The ports are kept for `RESUME_KEPT_MS`. */
  detach(connection: PacedSocket): void {
    if (this.#connection !== connection || this.#isEnded) return;
    this.#connection = null;
    if (this.#ports.size === 0) this.end();
    else this.#expiry = this.#deps.clock.after(RESUME_KEPT_MS, () => this.end());
  }

  /** Forwards the datagrams of one message of the client. */
  onEntries(entries: readonly CarriedDatagram[]): void {
    this.#deps.share.touch();
    for (const { number, remote, datagram } of entries) {
      const isPermitted = remote === null ? this.#closePort(number) : this.#send(number, remote, datagram);
      if (!isPermitted && !this.#deps.takeRefused()) return this.end();
    }
  }

  /** The answer to a ping costs as much as a short datagram. */
  onPing(): void {
    const { spend, takeRefused } = this.#deps;
    if (!spend(0) && !takeRefused()) this.end();
  }

  /** Closes the ports and the connection. */
  end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#expiry?.cancel();
    for (const number of this.#ports.keys()) this.#closePort(number);
    this.#connection?.terminate();
    this.#connection = null;
    this.#deps.share.release();
    this.#deps.onEnd();
  }

  /** False if it is not open. */
  #closePort(number: number): boolean {
    const sockets = this.#ports.get(number);
    if (sockets === undefined) return false;
    this.#ports.delete(number);
    for (const socket of sockets.values()) this.#closeSocket(socket);
    this.#deps.share.shrink(1);
    return true;
  }

  /** False if the datagram is not permitted. One that exceeds a budget is permitted and dropped. */
  #send(number: number, remote: Address, datagram: Uint8Array): boolean {
    const { destinations, spend, counters } = this.#deps;
    const socket = destinations.maySend(number, remote, datagram)
      ? this.#socket(number, remote.host.includes(':'))
      : null;
    if (socket === null || !spend(datagram.length)) {
      counters.dropped++;
      return socket !== null;
    }
    counters.datagrams++;
    counters.bytes += datagram.length;
    const { host, port } = this.#localOf(remote) ?? remote;
    // A datagram that the system rejects is lost, like one on the way.
    socket.send(datagram, port, host, () => {});
    return true;
  }

  #localOf(remote: Address): Address | null {
    const name = formatAddress(remote);
    const known = this.#locals.get(name);
    if (known !== undefined) return known;
    const local = this.#deps.toLocal(remote);
    this.#locals.set(name, local);
    if (local !== null) this.#translated.set(formatAddress(local), remote);
    return local;
  }

  /** The socket of a port, opened if necessary; null if there is no room for another port. */
  #socket(number: number, isIpv6: boolean): Socket | null {
    const type = isIpv6 ? 'udp6' : 'udp4';
    const known = this.#ports.get(number);
    const open = known?.get(type);
    if (open !== undefined) return open;
    if (known === undefined && !this.#deps.share.grow(1)) return null;
    const sockets: LentSockets = known ?? new Map();
    const socket = this.#open(number, type);
    sockets.set(type, socket);
    this.#ports.set(number, sockets);
    return socket;
  }

  /** The other family of the port keeps working. */
  #onError(number: number, type: Family, socket: Socket): void {
    const sockets = this.#ports.get(number);
    if (sockets?.get(type) !== socket) return;
    sockets.set(type, null);
    this.#closeSocket(socket);
  }

  #closeSocket(socket: Socket | null): void {
    if (socket === null) return;
    const port = this.#bound.get(socket);
    if (port !== undefined) this.#deps.lentPorts.delete(port);
    socket.close();
  }

  #open(number: number, type: Family): Socket {
    const { hosts } = this.#deps;
    const socket = createSocket({
      type,
      ipv6Only: type === 'udp6',
      recvBufferSize: SOCKET_BYTES,
      sendBufferSize: SOCKET_BYTES,
      // Only IP addresses are sent to. Node would ask its resolver for each datagram.
      lookup: (host, _options, callback) => callback(null, host, type === 'udp6' ? 6 : 4),
    });
    socket.on('message', (datagram, from) => this.#receive(number, datagram, from));
    socket.on('error', () => this.#onError(number, type, socket));
    socket.once('listening', () => {
      const { port } = socket.address();
      this.#bound.set(socket, port);
      this.#deps.lentPorts.set(port, this.#deps.source);
    });
    socket.bind({ port: 0, address: type === 'udp6' ? hosts.ipv6 : hosts.ipv4, exclusive: true });
    return socket;
  }

  #receive(number: number, datagram: Buffer, { address, port }: RemoteInfo): void {
    const { destinations, spend, counters } = this.#deps;
    const host = canonicalIp(address);
    if (host === null || port === 0 || datagram.length > MAX_CARRIED_BYTES) {
      counters.dropped++;
      return;
    }
    const remote = this.#translated.get(formatAddress({ host, port })) ?? { host, port };
    const connection = this.#connection;
    const mayPass = destinations.mayReceive(remote, datagram) && connection?.maySend === true && spend(datagram.length);
    if (!mayPass) {
      counters.dropped++;
      return;
    }
    counters.datagrams++;
    counters.bytes += datagram.length;
    connection.send({ number, remote, datagram });
  }
}
