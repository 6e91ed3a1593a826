/** The end that accepts: TCP ports at the addresses at which neighbours see this node, open while any of them may connect. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { toHex } from '../../foundation/bytes.ts';
import type { Clock } from '../../foundation/clock.ts';
import type { QuicConnection, QuicStream } from '../quic/types.ts';
import { NEAR_NAME_BYTES, type NearAnswer, type NearRequest, type NearSeals } from './agreement.ts';
import { awaitGreeting } from './greeting.ts';
import { type Beside, NearChannel } from './near-channel.ts';
import { MAX_CHANNELS } from './near-dialer.ts';

/** Agreements that stand at one time. */
export const MAX_AGREEMENTS = 256;
/** Addresses that are listened at. */
const MAX_HOSTS = 16;
/** TCP connections that have not shown yet that they belong here, at one address. */
export const MAX_UNMET = 64;

export interface NearCaller {
  readonly connection: QuicConnection;
  readonly beside: Beside;
  /** Told of a stream that the other side begins. */
  readonly onStream: (stream: QuicStream) => void;
}

interface Agreement extends NearCaller {
  readonly secret: Uint8Array;
  readonly host: string;
  /** Of its connection, shared by all agreements of that. */
  readonly channels: Set<NearChannel>;
  isOver: boolean;
}

interface Port {
  readonly server: Server;
  readonly listening: Promise<void>;
  readonly unmet: Set<Socket>;
  users: number;
}

export class NearListener {
  readonly #clock: Clock;
  readonly #most: () => number;
  /** By name. */
  readonly #agreements = new Map<string, Agreement>();
  /** By the connection that they belong to. */
  readonly #channels = new WeakMap<QuicConnection, Set<NearChannel>>();
  /** By address. */
  readonly #ports = new Map<string, Port>();
  #accepted = 0;

  /** @param most channels of all callers together */
  constructor(most: () => number, { clock }: { readonly clock: Clock }) {
    this.#clock = clock;
    this.#most = most;
  }

  /** Channels that stand. */
  get channels(): number {
    return this.#accepted;
  }

  /**
   * Lets a neighbour connect until its QUIC connection has ended, or it is told that it may no longer.
   * @returns null where there is no room, or nobody can listen at that address
   */
  async admit(
    { secret, host }: NearRequest,
    caller: NearCaller,
  ): Promise<{ readonly answer: NearAnswer; readonly end: () => void } | null> {
    if (this.#agreements.size >= MAX_AGREEMENTS) return null;
    const port = await this.#listenAt(host);
    if (port === null) return null;
    const address = port.server.address();
    const name = randomBytes(NEAR_NAME_BYTES);
    const agreement: Agreement = {
      ...caller,
      secret,
      host,
      channels: this.#channelsOf(caller.connection),
      isOver: false,
    };
    this.#agreements.set(toHex(name), agreement);
    const end = (): void => {
      if (agreement.isOver) return;
      agreement.isOver = true;
      this.#agreements.delete(toHex(name));
      for (const channel of agreement.channels) channel.close();
      this.#leave(host, port);
    };
    const number = address !== null && typeof address === 'object' ? address.port : 0;
    return { answer: { port: number, name }, end };
  }

  async #listenAt(host: string): Promise<Port | null> {
    let port = this.#ports.get(host);
    if (port === undefined) {
      if (this.#ports.size >= MAX_HOSTS) return null;
      const server = createServer({ noDelay: true, allowHalfOpen: true });
      const unmet = new Set<Socket>();
      server.on('connection', (socket: Socket) => this.#accept(socket, host, unmet));
      server.listen({ host, port: 0 });
      port = { server, listening: once(server, 'listening').then(() => {}), unmet, users: 0 };
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

  #channelsOf(connection: QuicConnection): Set<NearChannel> {
    const channels = this.#channels.get(connection) ?? new Set();
    this.#channels.set(connection, channels);
    return channels;
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

  #join(socket: Socket, agreement: Agreement, seals: NearSeals, rest: Buffer): void {
    const { connection, beside, onStream, channels, isOver } = agreement;
    if (isOver || channels.size >= MAX_CHANNELS || this.#accepted >= this.#most()) return void socket.destroy();
    const channel: NearChannel = new NearChannel({
      clock: this.#clock,
      connection,
      socket,
      seals,
      beside,
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
