/** Dials through one client socket of the engine per address family, opened when first needed. */
import { isIP } from 'node:net';
import type { Address } from '../../foundation/address.ts';
import { equalBytes } from '../../foundation/bytes.ts';
import type { Clock } from '../../foundation/clock.ts';
import { abortable } from '../../foundation/deadline.ts';
import { MAX_PORT } from '../../foundation/domain/tunnels.ts';
import { SvcError } from '../../foundation/errors.ts';
import { patience } from '../../foundation/stall.ts';
import { clientPort } from './client-port.ts';
import type { EngineClient, EngineConnection, QuicEngine } from './engine.ts';
import { type Peer, parsePeer } from './peer.ts';
import type { DialOptions } from './types.ts';

/** How long a dial takes at most where the caller does not say. */
export const DIAL_TIMEOUT_MS = 10_000;

interface Dialled {
  readonly native: EngineConnection;
  readonly peer: Peer;
}

export class Dialer {
  readonly #engine: QuicEngine;
  readonly #config: object;
  readonly #clock: Clock;
  readonly #clients = new Map<0 | 1, EngineClient>();
  /** That of the client for IPv6, once it was found out. */
  #ipv6Port: number | null = null;
  /** Ends every dial under way. */
  readonly #stop = new AbortController();

  constructor(
    options: { readonly engine: QuicEngine; readonly config: object },
    dependencies: { readonly clock: Clock },
  ) {
    this.#engine = options.engine;
    this.#config = options.config;
    this.#clock = dependencies.clock;
  }

  /** @throws SvcError `connect_failed`, `timeout`, `cancelled` */
  async dial(address: Address, expectedKey: Uint8Array, options: DialOptions): Promise<Dialled> {
    const native = await this.#connect(address, options);
    const peer = parsePeer(native.remoteMultiaddr());
    if (peer !== null && equalBytes(peer.key, expectedKey)) return { native, peer };
    native.abort();
    throw new SvcError('connect_failed', { message: 'Another node than the expected one answers at this address.' });
  }

  async #connect({ host, port }: Address, { timeoutMs, signal }: DialOptions): Promise<EngineConnection> {
    const family = isIP(host);
    if (family === 0 || !Number.isInteger(port) || port < 1 || port > MAX_PORT)
      throw new SvcError('connect_failed', { message: 'This is not an IP address and port.' });
    if (signal?.aborted === true || this.#stop.signal.aborted) throw new SvcError('cancelled');
    using limit = patience(this.#clock, timeoutMs ?? DIAL_TIMEOUT_MS, signal);
    const dialled = this.#clientOf(family === 4 ? 0 : 1).outboundConnection(host, port);
    try {
      return await abortable(abortable(dialled, limit.signal), this.#stop.signal);
    } catch (cause) {
      // One that comes after all is not wanted any more.
      dialled.then(
        (connection) => connection.abort(),
        () => {},
      );
      throw cause instanceof SvcError ? cause : new SvcError('connect_failed', { cause });
    }
  }

  /**
   * The local port that dials over IPv6 come from.
   * @throws SvcError as `clientPort`; `cancelled`
   */
  async ipv6Port(): Promise<number> {
    if (this.#stop.signal.aborted) throw new SvcError('cancelled');
    const parts = { engine: this.#engine, config: this.#config };
    this.#ipv6Port ??= await clientPort(this.#clientOf(1), parts, this.#clock);
    return this.#ipv6Port;
  }

  #clientOf(family: 0 | 1): EngineClient {
    const client = this.#clients.get(family) ?? new this.#engine.Client(this.#config, family);
    this.#clients.set(family, client);
    return client;
  }

  stop(): void {
    this.#stop.abort();
    for (const client of this.#clients.values()) client.abort();
    this.#clients.clear();
  }
}
