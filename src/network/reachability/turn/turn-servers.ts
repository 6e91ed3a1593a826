/** The TURN servers of the configuration: the first that has room carries. */
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
import { credentialsOf, TurnAllocation } from './allocation.ts';

/*
 * Carries datagrams between the QUIC engine, which knows sockets only, and a peer by a TURN server: the engine has a
 * UDP port of this machine before it.
 */

const LOOPBACK = '127.0.0.1';
/** The port of TURN over UDP. */
const TURN_PORT = 3478;
/** How many bytes the system keeps for a socket of these. */
const BUFFER_BYTES: number = 1024 * 1024;

/** Where a server of the configuration is; null where it is not reached over UDP in the clear. */
export function placeOf({ url }: TurnServer): Address | null {
  const [, place = '', transport = 'udp'] = /^turn:([^?]+)(?:\?transport=(udp|tcp))?$/.exec(url) ?? [];
  if (transport !== 'udp' || place === '') return null;
  return parseAddress(place) ?? parseAddress(`${place}:${TURN_PORT}`);
}

async function bound(host: string): Promise<Socket> {
  const socket = createSocket({ type: 'udp4', recvBufferSize: BUFFER_BYTES, sendBufferSize: BUFFER_BYTES });
  socket.bind(0, host);
  await listening(socket);
  socket.unref();
  return socket;
}

export interface CarrierOptions {
  /** The peer's IPv4 address: nobody else is let in. */
  readonly peerHost: string;
  /** The port of this machine that the engine listens on; null where it will come by itself, as it dials. */
  readonly enginePort: number | null;
  /** What the peer sends to show that it is there, and is answered with; null where it dials at once. */
  readonly token: Uint8Array | null;
}

export class TurnCarrier {
  /** The server. */
  readonly server: Address;
  readonly #allocation: TurnAllocation;
  readonly #outer: Socket;
  readonly #local: Socket;
  readonly #options: CarrierOptions;
  readonly #here = Promise.withResolvers<void>();
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
   * Has an address at a server that the peer can write to.
   * @throws SvcError `connect_failed`, `timeout`
   */
  static async open(
    server: TurnServer,
    options: CarrierOptions,
    { clock }: { readonly clock: Clock },
  ): Promise<TurnCarrier> {
    const place = placeOf(server);
    if (place === null)
      throw new SvcError('connect_failed', { message: 'TURN is spoken over UDP only: turn:host:port, without tcp.' });
    const credentials = await credentialsOf(server, clock);
    const found = await lookup(place.host, { family: 4 }).catch(() => null);
    if (found?.family !== 4) throw new SvcError('connect_failed', { message: 'The TURN server has no IPv4 address.' });
    const at = { host: found.address, port: place.port };
    const [outer, local] = await Promise.all([bound('0.0.0.0'), bound(LOOPBACK)]);
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

  /** Where the peer writes to. */
  get relayed(): Address {
    return this.#relayed;
  }

  /** Where the engine reaches the peer. */
  get local(): Address {
    return { host: LOOPBACK, port: this.#local.address().port };
  }

  /** Settles when the peer has shown that it is there. */
  get here(): Promise<void> {
    return this.#here.promise;
  }

  /** Settles when the server carries no more, though nobody has closed this. */
  get lost(): Promise<void> {
    return this.#allocation.lost;
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#allocation.close();
    this.#local.close();
    // What gives the address back is still on its way out.
    setImmediate(() => this.#outer.close());
  }

  #onPeer(datagram: Uint8Array, from: Address): void {
    const { peerHost, token } = this.#options;
    if (this.#isClosed || from.host !== peerHost) return;
    if (token !== null && equalBytes(datagram, token)) {
      // Its port is the one that its router has for this way.
      this.#peer ??= from;
      this.#allocation.send(token, from);
      this.#here.resolve();
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

/** Ways by TURN servers that stand at a time. */
const MAX_CARRIERS = 64;

/** Whether one of the servers of a configuration can be used. */
export function isUsable(servers: readonly TurnServer[]): boolean {
  return servers.some((server) => placeOf(server) !== null);
}

/** What those do with them who bring two nodes together. */
export type TurnUse = Pick<TurnServers, 'some' | 'open' | 'close'>;

export class TurnServers {
  readonly #servers: readonly TurnServer[];
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #carriers = new Set<TurnCarrier>();
  /** Ways that are being opened. */
  #opening = 0;
  #isStopped = false;

  constructor(servers: readonly TurnServer[], clock: Clock, log: Log) {
    this.#servers = servers;
    this.#clock = clock;
    this.#log = log;
  }

  /** Whether there are any that are spoken with as this client does. */
  get some(): boolean {
    return isUsable(this.#servers);
  }

  /**
   * Has the first server that does so carry.
   * @throws SvcError `connect_failed`, `timeout` as the last of them; `rate_limited`
   */
  async open(options: CarrierOptions): Promise<TurnCarrier> {
    if (this.#carriers.size + this.#opening >= MAX_CARRIERS) throw new SvcError('rate_limited');
    this.#opening++;
    try {
      const carrier = await this.#first(options);
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

  async #first(options: CarrierOptions): Promise<TurnCarrier> {
    let last: unknown = new SvcError('connect_failed');
    for (const server of this.#servers) {
      try {
        return await TurnCarrier.open(server, options, { clock: this.#clock });
      } catch (error) {
        this.#log.info({ error, url: server.url }, 'a TURN server does not carry');
        last = error;
      }
    }
    throw last;
  }
}

/* A connection by a TURN server of ours, which is given back with it. */

/**
 * Opens a way for the engine to dial over, and gives it back where the connection ends or none comes about.
 * @throws SvcError as `TurnServers.open`, and whatever `dial` fails with
 */
export async function overCarrier(
  turn: TurnUse,
  options: Omit<CarrierOptions, 'enginePort'>,
  dial: (carrier: TurnCarrier) => Promise<Connection>,
): Promise<Connection> {
  const carrier = await turn.open({ ...options, enginePort: null });
  try {
    const connection = await dial(carrier);
    detach(connection.closed.then(() => turn.close(carrier)));
    // Nothing will come any more, and who waits on it dials anew.
    detach(carrier.lost.then(() => connection.close()));
    return connection;
  } catch (error) {
    turn.close(carrier);
    throw error;
  }
}
