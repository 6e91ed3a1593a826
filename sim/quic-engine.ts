/**
 * The QUIC engine over simulated UDP: the same interface as the native one, so that everything above it is the real
 * code. A machine has one.
 */

import { type Address, formatAddress } from '../src/foundation/address.ts';
import type { Clock, Timer } from '../src/foundation/clock.ts';
import { codeOf } from '../src/foundation/errors.ts';
import type { EngineConnection } from '../src/network/transport/engine-connection.ts';
import type { EngineClient, EngineServer, QuicEngine } from '../src/network/transport/quic/engine.ts';
import type { SocketFactory, UdpSocket } from '../src/network/transport/udp-socket.ts';
import { type ConnectionConfig, SimulatedConnection } from './quic-connection.ts';
import { decodePacket, encodePacket, ID_BYTES } from './quic-wire.ts';

/** Offset of the public key in the private key of a configuration. */
const PUBLIC_KEY_AT = 36;
const FIRST_RETRY_MS = 1000;
const ANY_HOST = '0.0.0.0';
/** Texts of the native engine, by error code of the system. */
const BIND_ERRORS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'Address already in use',
  EMFILE: 'Too many open files',
};

interface EngineConfig extends ConnectionConfig {
  readonly privateKeyProto: Uint8Array;
  readonly handshakeTimeout: number;
}

interface EngineParts {
  readonly clock: Clock;
  readonly createSocket: SocketFactory;
  readonly randomBytes: (length: number) => Uint8Array;
}

/** A QUIC engine for one machine. */
export function simulatedEngine(parts: EngineParts): QuicEngine {
  class Config {
    readonly value: EngineConfig;

    constructor(value: EngineConfig) {
      this.value = value;
    }
  }
  const configOf = (config: object): EngineConfig => {
    if (config instanceof Config) return config.value;
    throw new TypeError('not a configuration of this engine');
  };
  return {
    QuinnConfig: Config,
    Server: class extends Server {
      constructor(config: object, host: string, port: number) {
        super(parts, configOf(config), { host, port });
      }
    },
    Client: class extends Client {
      constructor(config: object, family: 0 | 1) {
        super(parts, configOf(config), family);
      }
    },
  };
}

type Settle = { readonly resolve: (connection: EngineConnection) => void; readonly reject: (error: Error) => void };

/** A handshake that was begun by the other side and is not finished. */
interface Unfinished {
  readonly connection: SimulatedConnection;
  readonly settle: Settle;
  readonly timer: Timer;
}

class Server implements EngineServer {
  readonly #parts: EngineParts;
  readonly #config: EngineConfig;
  readonly #socket: UdpSocket;
  readonly #connections = new Map<string, SimulatedConnection>();
  readonly #unfinished = new Map<string, Unfinished>();
  readonly #pending: Settle[] = [];
  #handshakes = 0;
  #isAborted = false;

  constructor(parts: EngineParts, config: EngineConfig, address: Address) {
    this.#parts = parts;
    this.#config = config;
    this.#socket = parts.createSocket();
    try {
      this.#socket.bind(address.port, address.host);
    } catch (cause) {
      throw new Error(BIND_ERRORS[codeOf(cause)] ?? 'Cannot assign requested address', { cause });
    }
    this.#socket.on('message', (datagram: Uint8Array, from: Address) => this.#receive(datagram, from));
  }

  inboundConnection(): Promise<EngineConnection> {
    if (this.#isAborted) return Promise.reject(new Error('aborted'));
    return new Promise((resolve, reject) => this.#pending.push({ resolve, reject }));
  }

  port(): number {
    return this.#socket.address()?.port ?? 0;
  }

  stats(): { readonly acceptedHandshakes: number } {
    return { acceptedHandshakes: this.#handshakes };
  }

  async abort(): Promise<void> {
    if (this.#isAborted) return;
    this.#isAborted = true;
    for (const connection of this.#connections.values()) connection.abort();
    for (const { timer, settle } of this.#unfinished.values()) {
      timer.cancel();
      settle.reject(new Error('aborted'));
    }
    this.#unfinished.clear();
    for (const { reject } of this.#pending.splice(0)) reject(new Error('aborted'));
    await this.#socket.close();
  }

  #receive(datagram: Uint8Array, from: Address): void {
    const packet = decodePacket(datagram);
    if (packet === null) return;
    const name = `${formatAddress(from)} ${packet.id}`;
    const connection = this.#connections.get(name);
    if (packet.type === 'initial') {
      const begun = connection ?? this.#begin(name, packet.id, packet.key, packet.streams, from);
      if (begun !== null) this.#accept(packet.id, from);
      return;
    }
    if (connection === undefined) return;
    connection.receive(packet, datagram.length);
    const unfinished = this.#unfinished.get(name);
    if (unfinished === undefined) return;
    this.#unfinished.delete(name);
    unfinished.timer.cancel();
    unfinished.settle.resolve(connection);
  }

  #accept(id: string, to: Address): void {
    const { privateKeyProto, maxConcurrentStreamLimit: streams } = this.#config;
    const key = privateKeyProto.subarray(PUBLIC_KEY_AT);
    this.#socket.trySend(encodePacket({ type: 'accept', id, key, streams }), to.port, to.host);
  }

  /** Null if no call waits: the other side tries again. */
  #begin(
    name: string,
    id: string,
    peerKey: Uint8Array,
    peerStreams: number,
    peer: Address,
  ): SimulatedConnection | null {
    const settle = this.#pending.shift();
    if (settle === undefined) return null;
    this.#handshakes++;
    const { clock } = this.#parts;
    const connection = new SimulatedConnection({
      ...{ id, clock, config: this.#config, peer, peerKey, peerStreams, isDialer: false },
      send: (datagram) => this.#send(datagram, peer),
      onEnd: () => void this.#connections.delete(name),
    });
    this.#connections.set(name, connection);
    const timer = clock.after(this.#config.handshakeTimeout, () => {
      this.#unfinished.delete(name);
      connection.abort();
      settle.reject(new Error('timed out'));
    });
    this.#unfinished.set(name, { connection, settle, timer });
    return connection;
  }

  #send(datagram: Uint8Array, { host, port }: Address): void {
    if (this.#socket.address() !== null) this.#socket.trySend(datagram, port, host);
  }
}

class Client implements EngineClient {
  readonly #parts: EngineParts;
  readonly #config: EngineConfig;
  readonly #family: 0 | 1;
  #socket: UdpSocket | null = null;
  readonly #connections = new Map<string, SimulatedConnection>();
  readonly #dials = new Map<string, Settle & { readonly to: Address }>();
  #isAborted = false;

  constructor(parts: EngineParts, config: EngineConfig, family: 0 | 1) {
    this.#parts = parts;
    this.#config = config;
    this.#family = family;
  }

  /** Bound when it is needed: a client may never dial. */
  #open(): UdpSocket {
    if (this.#socket !== null) return this.#socket;
    const socket = this.#parts.createSocket();
    socket.bind(0, ANY_HOST);
    socket.on('message', (datagram: Uint8Array, from: Address) => this.#receive(datagram, from));
    this.#socket = socket;
    return socket;
  }

  outboundConnection(host: string, port: number): Promise<EngineConnection> {
    if (this.#isAborted || this.#family === 1) return Promise.reject(new Error('Network is unreachable'));
    let socket: UdpSocket;
    try {
      socket = this.#open();
    } catch (cause) {
      return Promise.reject(new Error('Endpoint creation failed', { cause }));
    }
    const { clock, randomBytes } = this.#parts;
    const { privateKeyProto, maxConcurrentStreamLimit: streams, handshakeTimeout } = this.#config;
    const id = Buffer.from(randomBytes(ID_BYTES)).toString('latin1');
    const key = privateKeyProto.subarray(PUBLIC_KEY_AT);
    const initial = encodePacket({ type: 'initial', id, key, streams });
    return new Promise((resolve, reject) => {
      let retry: Timer | null = null;
      const finish = (): void => {
        retry?.cancel();
        limit.cancel();
        this.#dials.delete(id);
      };
      const limit = clock.after(handshakeTimeout, () => {
        finish();
        reject(new Error('timed out'));
      });
      const send = (retryMs: number): void => {
        socket.trySend(initial, port, host);
        retry = clock.after(retryMs, () => send(retryMs * 2));
      };
      this.#dials.set(id, {
        to: { host, port },
        resolve: (connection) => {
          finish();
          resolve(connection);
        },
        reject: (error) => {
          finish();
          reject(error);
        },
      });
      send(FIRST_RETRY_MS);
    });
  }

  #receive(datagram: Uint8Array, from: Address): void {
    const packet = decodePacket(datagram);
    if (packet === null) return;
    const { id } = packet;
    const connection = this.#connections.get(id);
    if (connection !== undefined) {
      // Connections do not migrate to another address.
      if (formatAddress(connection.peer) === formatAddress(from)) connection.receive(packet, datagram.length);
      return;
    }
    const dial = this.#dials.get(id);
    if (packet.type !== 'accept' || dial === undefined || formatAddress(dial.to) !== formatAddress(from)) return;
    const socket = this.#open();
    const made = new SimulatedConnection({
      ...{ id, clock: this.#parts.clock, config: this.#config, peer: from, isDialer: true },
      peerKey: packet.key,
      peerStreams: packet.streams,
      send: (bytes) => {
        if (socket.address() !== null) socket.trySend(bytes, from.port, from.host);
      },
      onEnd: () => void this.#connections.delete(id),
    });
    this.#connections.set(id, made);
    // The rest of the handshake: the other side knows now that its answer has arrived.
    made.confirm();
    dial.resolve(made);
  }

  abort(): void {
    this.#isAborted = true;
    for (const connection of this.#connections.values()) connection.abort();
    for (const dial of this.#dials.values()) dial.reject(new Error('aborted'));
    const socket = this.#socket;
    this.#socket = null;
    // Closed after the packets that end its connections.
    if (socket !== null) this.#parts.clock.after(0, () => void socket.close());
  }
}
