/** The configured TURN servers. The first one with capacity is used. */
import { createSocket, type Socket } from 'node:dgram';
import { lookup } from 'node:dns/promises';
import { type Address, parseAddress } from '../../../foundation/address.ts';
import { equalBytes } from '../../../foundation/bytes.ts';
import type { Clock } from '../../../foundation/clock.ts';
import type { TurnServer } from '../../../foundation/config/schema.ts';
import { detach } from '../../../foundation/detached.ts';
import { SvcError } from '../../../foundation/errors.ts';
import type { Log } from '../../../foundation/log.ts';
import { listening } from '../../../foundation/stream-listeners.ts';
import type { Connection } from '../../transport/types.ts';
import { bindFailure } from '../../transport/udp-socket.ts';
import { getCredentials, TurnAllocation } from './allocation.ts';

/*
 * Forwards datagrams between the QUIC engine and a peer through a TURN server. The engine can only use sockets, so it
 * communicates with a UDP port on loopback.
 */

const LOOPBACK = '127.0.0.1';
/** Default port of TURN over UDP. */
const TURN_PORT = 3478;
/** Socket buffer size, bytes. */
const BUFFER_BYTES: number = 1024 * 1024;

/** The address of a configured server; null if it does not use plain UDP. */
export function turnServerAddress({ url }: TurnServer): Address | null {
  const [, place = '', transport = 'udp'] = /^turn:([^?]+)(?:\?transport=(udp|tcp))?$/.exec(url) ?? [];
  if (transport !== 'udp' || place === '') return null;
  return parseAddress(place) ?? parseAddress(`${place}:${TURN_PORT}`);
}

async function bindSocket(host: string): Promise<Socket> {
  const socket = createSocket({ type: 'udp4', recvBufferSize: BUFFER_BYTES, sendBufferSize: BUFFER_BYTES });
  socket.bind(0, host);
  try {
    await listening(socket);
  } catch (cause) {
    socket.close();
    throw bindFailure(cause);
  }
  socket.unref();
  return socket;
}

export interface CarrierOptions {
  /** IPv4 address of the peer. Datagrams from other hosts are dropped. */
  readonly peerHost: string;
  /**
   * The local port that the engine listens on; null if the engine dials, so that its port is learned from its first
   * datagram.
   */
  readonly enginePort: number | null;
  /** The token that the peer sends first and that is echoed to it; null if the peer dials without one. */
  readonly token: Uint8Array | null;
}

export class TurnCarrier {
  readonly server: Address;
  readonly #allocation: TurnAllocation;
  readonly #outer: Socket;
  readonly #local: Socket;
  readonly #options: CarrierOptions;
  readonly #peerArrived = Promise.withResolvers<void>();
  #peer: Address | null = null;
  #enginePort: number | null;
  #relayed: Address = { host: '0.0.0.0', port: 0 };
  #isClosed = false;

  private constructor(
    server: Address,
    sockets: { outer: Socket; local: Socket },
    options: CarrierOptions,
    make: (received: (datagram: Uint8Array, from: Address) => void, socket: Socket) => TurnAllocation,
  ) {
    this.server = server;
    this.#outer = sockets.outer;
    this.#local = sockets.local;
    this.#options = options;
    this.#enginePort = options.enginePort;
    this.#allocation = make((datagram, from) => this.#onPeer(datagram, from), sockets.outer);
    this.#local.on('message', (datagram, from) => this.#onEngine(datagram, from.address, from.port));
    this.#local.on('error', () => this.close());
  }

  /**
   * Allocates an address at a server, to which the peer can send.
   * @throws SvcError `connect_failed`, `timeout`
   */
  static async open(
    server: TurnServer,
    options: CarrierOptions,
    { clock }: { readonly clock: Clock },
  ): Promise<TurnCarrier> {
    const place = turnServerAddress(server);
    if (place === null)
      throw new SvcError('connect_failed', {
        message: 'TURN works over UDP only. Configure turn:host:port, without transport=tcp.',
      });
    const credentials = await getCredentials(server, clock);
    const found = await lookup(place.host, { family: 4 }).catch(() => null);
    if (found?.family !== 4) throw new SvcError('connect_failed', { message: 'The TURN server has no IPv4 address.' });
    const at = { host: found.address, port: place.port };
    const outer = await bindSocket('0.0.0.0');
    const local = await bindSocket(LOOPBACK).catch((error: unknown) => {
      outer.close();
      throw error;
    });
    const carrier = new TurnCarrier(
      at,
      { outer, local },
      options,
      (received, socket) => new TurnAllocation({ clock, socket, server: at, credentials, received }),
    );
    try {
      carrier.#relayed = await carrier.#allocation.open();
      await carrier.#allocation.permit(options.peerHost);
      return carrier;
    } catch (error) {
      carrier.close();
      throw error;
    }
  }

  /** The address at the server that the peer sends to. */
  get relayed(): Address {
    return this.#relayed;
  }

  /** The loopback address through which the engine reaches the peer. */
  get local(): Address {
    return { host: LOOPBACK, port: this.#local.address().port };
  }

  /** Settles when the peer's token has been received. */
  get peerArrived(): Promise<void> {
    return this.#peerArrived.promise;
  }

  /** Settles when the allocation is lost, but not because of `close`. */
  get lost(): Promise<void> {
    return this.#allocation.lost;
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#allocation.close();
    this.#local.close();
    // The request that ends the allocation is still being sent.
    setImmediate(() => this.#outer.close());
  }

  #onPeer(datagram: Uint8Array, from: Address): void {
    const { peerHost, token } = this.#options;
    if (this.#isClosed || from.host !== peerHost) return;
    if (token !== null && equalBytes(datagram, token)) {
      // The port that the peer's NAT uses towards the TURN server.
      this.#peer ??= from;
      this.#allocation.send(token, from);
      this.#peerArrived.resolve();
      return;
    }
    if (token === null) this.#peer = from;
    else if (this.#peer?.port !== from.port) return;
    if (this.#enginePort !== null) this.#local.send(datagram, this.#enginePort, LOOPBACK, () => {});
  }

  #onEngine(datagram: Uint8Array, host: string, port: number): void {
    if (this.#isClosed || host !== LOOPBACK) return;
    this.#enginePort ??= port;
    if (port === this.#enginePort && this.#peer !== null) this.#allocation.send(datagram, this.#peer);
  }
}

/** Maximum number of allocations at the same time. */
const MAX_CARRIERS = 64;

/** Whether any configured server can be used. */
export function hasUsableTurnServer(servers: readonly TurnServer[]): boolean {
  return servers.some((server) => turnServerAddress(server) !== null);
}

export class TurnServers {
  readonly #servers: readonly TurnServer[];
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #carriers = new Set<TurnCarrier>();
  /** Allocations in progress. */
  #opening = 0;
  #isStopped = false;

  constructor(servers: readonly TurnServer[], clock: Clock, log: Log) {
    this.#servers = servers;
    this.#clock = clock;
    this.#log = log;
  }

  /** Whether any configured server can be used. */
  get isAvailable(): boolean {
    return hasUsableTurnServer(this.#servers);
  }

  /**
   * Allocates an address at the first server that accepts the request.
   * @throws SvcError `connect_failed`, `timeout` of the last server; `rate_limited`
   */
  async open(options: CarrierOptions): Promise<TurnCarrier> {
    if (this.#carriers.size + this.#opening >= MAX_CARRIERS) throw new SvcError('rate_limited');
    this.#opening++;
    try {
      const carrier = await this.#openFirst(options);
      this.#carriers.add(carrier);
      if (this.#isStopped) this.close(carrier);
      return carrier;
    } finally {
      this.#opening--;
    }
  }

  close(carrier: TurnCarrier): void {
    this.#carriers.delete(carrier);
    carrier.close();
  }

  stop(): void {
    this.#isStopped = true;
    for (const carrier of this.#carriers) this.close(carrier);
  }

  async #openFirst(options: CarrierOptions): Promise<TurnCarrier> {
    let last: unknown = new SvcError('connect_failed');
    for (const server of this.#servers) {
      try {
        return await TurnCarrier.open(server, options, { clock: this.#clock });
      } catch (error) {
        this.#log.info({ error, url: server.url }, 'cannot use a TURN server');
        last = error;
      }
    }
    throw last;
  }
}

/* A connection through this node's TURN server. */

/**
 * Allocates an address for the engine to dial through, and releases it when the connection closes or cannot be opened.
 * @throws SvcError as `TurnServers.open`, and the errors of `dial`
 */
export async function dialOverTurn(
  turn: TurnServers,
  options: Omit<CarrierOptions, 'enginePort'>,
  dial: (carrier: TurnCarrier) => Promise<Connection>,
): Promise<Connection> {
  const carrier = await turn.open({ ...options, enginePort: null });
  try {
    const connection = await dial(carrier);
    detach(connection.closed.then(() => turn.close(carrier)));
    // Without the allocation the connection is dead. Closing it makes its users dial again.
    detach(carrier.lost.then(() => connection.close()));
    return connection;
  } catch (error) {
    turn.close(carrier);
    throw error;
  }
}
