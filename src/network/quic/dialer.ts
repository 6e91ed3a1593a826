/** Dials through one client socket of the engine per address family, opened when first needed. */
import { isIP } from 'node:net';
import type { Address } from '../../foundation/address.ts';
import { equalBytes } from '../../foundation/bytes.ts';
import type { Clock } from '../../foundation/clock.ts';
import { MAX_PORT } from '../../foundation/domain/tunnels.ts';
import { SvcError } from '../../foundation/errors.ts';
import { wakingClock } from '../../foundation/stall.ts';
import type { EngineClient, EngineConnection, QuicEngine } from './engine.ts';
import { type Peer, parsePeer } from './peer.ts';
import type { DialOptions } from './types.ts';

/** How long a dial takes at most where the caller does not say. */
export const DIAL_TIMEOUT_MS = 10_000;

export interface Dialled {
  readonly native: EngineConnection;
  readonly peer: Peer;
}

export class Dialer {
  readonly #engine: QuicEngine;
  readonly #config: object;
  readonly #clock: Clock;
  readonly #clients = new Map<0 | 1, EngineClient>();
  /** Ends every dial under way. */
  readonly #stop = new AbortController();

  constructor(
    options: { readonly engine: QuicEngine; readonly config: object },
    dependencies: { readonly clock: Clock },
  ) {
    this.#engine = options.engine;
    this.#config = options.config;
    this.#clock = wakingClock(dependencies.clock);
  }

  /** @throws SvcError `connect_failed`, `timeout`, `cancelled` */
  async dial(address: Address, expectedKey: Uint8Array, options: DialOptions): Promise<Dialled> {
    const native = await this.#connect(address, options);
    const peer = parsePeer(native.remoteMultiaddr());
    if (peer !== null && equalBytes(peer.key, expectedKey)) return { native, peer };
    native.abort();
    throw new SvcError('connect_failed', { message: 'Another node than the expected one answers at this address.' });
  }

  #connect({ host, port }: Address, options: DialOptions): Promise<EngineConnection> {
    const signals = [this.#stop.signal, ...(options.signal === undefined ? [] : [options.signal])];
    return new Promise((resolve, reject) => {
      const family = isIP(host);
      if (family === 0 || !Number.isInteger(port) || port < 1 || port > MAX_PORT) {
        reject(new SvcError('connect_failed', { message: 'This is not an IP address and port.' }));
        return;
      }
      if (signals.some(({ aborted }) => aborted)) {
        reject(new SvcError('cancelled'));
        return;
      }
      let waiting = true;
      const cancel = (): void => settle(() => reject(new SvcError('cancelled')));
      const timer = this.#clock.after(options.timeoutMs ?? DIAL_TIMEOUT_MS, () =>
        settle(() => reject(new SvcError('timeout', { message: 'The remote node did not answer in time.' }))),
      );
      function settle(outcome: () => void): void {
        waiting = false;
        timer.cancel();
        for (const signal of signals) signal.removeEventListener('abort', cancel);
        outcome();
      }
      for (const signal of signals) signal.addEventListener('abort', cancel);
      this.#outbound(family === 4 ? 0 : 1, host, port).then(
        (connection) => {
          if (waiting) settle(() => resolve(connection));
          else connection.abort();
        },
        (cause: unknown) => {
          if (waiting) settle(() => reject(new SvcError('connect_failed', { cause })));
        },
      );
    });
  }

  async #outbound(family: 0 | 1, host: string, port: number): Promise<EngineConnection> {
    let client = this.#clients.get(family);
    if (client === undefined) {
      client = new this.#engine.Client(this.#config, family);
      this.#clients.set(family, client);
    }
    return await client.outboundConnection(host, port);
  }

  stop(): void {
    this.#stop.abort();
    for (const client of this.#clients.values()) client.abort();
    this.#clients.clear();
  }
}
