/** The accepting side: TCP ports at the addresses that LAN peers see, open while a peer may connect. */

import { randomBytes } from 'node:crypto';
import { createServer, type Server, type Socket } from 'node:net';
import { toHex } from '../../../foundation/bytes.ts';
import type { Clock } from '../../../foundation/clock.ts';
import { listening } from '../../../foundation/stream-listeners.ts';
import type { Connection, UpgradeCaller } from '../types.ts';
import {
  AGREEMENT_NAME_BYTES,
  type AgreementAnswer,
  type AgreementRequest,
  awaitGreeting,
  type ConnectionSeals,
} from './greeting.ts';
import { LanTcpConnection } from './lan-tcp-connection.ts';
import { MAX_CHANNELS } from './lan-tcp-dialer.ts';

/** Agreements at one time. */
export const MAX_AGREEMENTS = 256;
/**
 * Agreements of one QUIC connection: one, and another if the connections of the first are in use and no new ones
 * arrive.
 */
export const MAX_AGREEMENTS_PER_CONNECTION = 4;
/** Listening addresses. */
const MAX_HOSTS = 16;
/** TCP connections with an unfinished greeting at one address. */
export const MAX_UNMET = 64;

interface Agreement extends UpgradeCaller {
  readonly secret: Uint8Array;
  readonly channels: Set<LanTcpConnection>;
  /** The listening address. */
  readonly host: string;
  readonly port: Port;
  isOver: boolean;
}

interface Port {
  readonly server: Server;
  readonly listening: Promise<void>;
  /** TCP connections with an unfinished greeting. */
  readonly unmet: Set<Socket>;
  users: number;
}

export class LanTcpListener {
  readonly #clock: Clock;
  readonly #most: () => number;
  /** By name. */
  readonly #agreements = new Map<string, Agreement>();
  /** By address. */
  readonly #ports = new Map<string, Port>();
  #accepted = 0;

  /** @param most maximum number of connections of all peers together */
  constructor(most: () => number, { clock }: { readonly clock: Clock }) {
    this.#clock = clock;
    this.#most = most;
  }

  /** Open connections. */
  get channels(): number {
    return this.#accepted;
  }

  /**
   * Lets a LAN peer connect until `dismiss`.
   * @returns null if a limit is reached, or this node cannot listen at that address
   */
  async admit({ secret, host }: AgreementRequest, caller: UpgradeCaller): Promise<AgreementAnswer | null> {
    const port = await this.#listenAt(host);
    if (port === null) return null;
    // A peer that asks again does not use its earlier agreement.
    for (const agreement of this.#of(caller.connection)) if (agreement.channels.size === 0) this.#end(agreement);
    const isFull = this.#agreements.size >= MAX_AGREEMENTS;
    if (isFull || this.#of(caller.connection).length >= MAX_AGREEMENTS_PER_CONNECTION) {
      this.#leave(host, port);
      return null;
    }
    const address = port.server.address();
    const name = randomBytes(AGREEMENT_NAME_BYTES);
    this.#agreements.set(toHex(name), { ...caller, secret, host, port, channels: new Set(), isOver: false });
    return { port: address !== null && typeof address === 'object' ? address.port : 0, name };
  }

  /** Ends the agreements of a QUIC connection, and closes their TCP connections. */
  dismiss(connection: Connection): void {
    for (const agreement of this.#of(connection)) this.#end(agreement);
  }

  #of(connection: Connection): readonly Agreement[] {
    return [...this.#agreements.values()].filter((one) => one.connection === connection);
  }

  #end(agreement: Agreement): void {
    agreement.isOver = true;
    for (const [name, one] of this.#agreements) if (one === agreement) this.#agreements.delete(name);
    for (const channel of agreement.channels) channel.close();
    this.#leave(agreement.host, agreement.port);
  }

  async #listenAt(host: string): Promise<Port | null> {
    let port = this.#ports.get(host);
    if (port === undefined) {
      if (this.#ports.size >= MAX_HOSTS) return null;
      const server = createServer({ noDelay: true, allowHalfOpen: true });
      const unmet = new Set<Socket>();
      server.on('connection', (socket: Socket) => this.#accept(socket, host, unmet));
      server.listen({ host, port: 0 });
      // An error of one incoming connection does not close the server.
      server.on('error', () => {});
      port = { server, listening: listening(server), unmet, users: 0 };
      this.#ports.set(host, port);
    }
    port.users++;
    try {
      await port.listening;
      return port;
    } catch {
      this.#leave(host, port);
      return null;
    }
  }

  #leave(host: string, port: Port): void {
    if (--port.users > 0) return;
    if (this.#ports.get(host) === port) this.#ports.delete(host);
    port.server.close();
    for (const socket of port.unmet) socket.destroy();
  }

  #accept(socket: Socket, host: string, unmet: Set<Socket>): void {
    if (unmet.size >= MAX_UNMET || this.#accepted >= this.#most()) return void socket.destroy();
    unmet.add(socket);
    const met = (): void => void unmet.delete(socket);
    socket.once('close', met);
    let agreement: Agreement | undefined;
    const secretOf = (name: Buffer): Uint8Array | null => {
      agreement = this.#agreements.get(toHex(name));
      return agreement?.secret ?? null;
    };
    awaitGreeting(socket, { host, secretOf }, this.#clock, (seals, rest) => {
      met();
      if (agreement === undefined) return void socket.destroy();
      this.#join(socket, agreement, seals, rest);
    });
  }

  #join(socket: Socket, agreement: Agreement, seals: ConnectionSeals, rest: Buffer): void {
    const { connection, state, onStream, channels, isOver } = agreement;
    const ofConnection = this.#of(connection).reduce((sum, one) => sum + one.channels.size, 0);
    if (isOver || ofConnection >= MAX_CHANNELS || this.#accepted >= this.#most()) return void socket.destroy();
    const channel: LanTcpConnection = new LanTcpConnection({
      clock: this.#clock,
      connection,
      socket,
      seals,
      state,
      onStream,
      onPulse: null,
      onIdle: () => {},
      onClosed: () => {
        if (channels.delete(channel)) this.#accepted--;
      },
    });
    channels.add(channel);
    this.#accepted++;
    if (rest.length > 0) channel.feed(rest);
  }
}
