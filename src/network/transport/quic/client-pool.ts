/** Sockets for `ClientPool`. They are reused, because the engine frees a socket only when its object is garbage-collected. */

import { setImmediate } from 'node:timers/promises';
import type { Address } from '../../../foundation/address.ts';
import { equalBytes } from '../../../foundation/bytes.ts';
import type { Clock } from '../../../foundation/clock.ts';
import { abortable } from '../../../foundation/deadline.ts';
import { SvcError } from '../../../foundation/errors.ts';
import { awakeTimeout } from '../../../foundation/stall.ts';
import {
  BIRTHDAY_SPACING_MS,
  BIRTHDAY_TIMEOUT_MS,
  type ClientPool,
  type EngineConnection,
} from '../engine-connection.ts';
import { type EngineClient, parsePeer } from './engine.ts';
import type { EndpointParts } from './native-endpoint.ts';

/** Number of sockets. If the peer opens 1,024 of 64,512 ports, a round succeeds with a probability of 98.3 %. */
export const POOLED_CLIENTS = 256;
/** Number of sockets to create before yielding to the event loop: each blocks it for 1 to 2 ms. */
const CLIENTS_PER_TURN = 4;

export class EngineClientPool implements ClientPool {
  readonly #parts: () => EndpointParts;
  readonly #clock: Clock;
  readonly #clients: EngineClient[] = [];
  readonly #stop = new AbortController();
  #lastRoundAt = Number.NEGATIVE_INFINITY;
  #creation: Promise<void> | null = null;

  /** @param parts of the endpoint, which may not have started yet */
  constructor(parts: () => EndpointParts, dependencies: { readonly clock: Clock }) {
    this.#parts = parts;
    this.#clock = dependencies.clock;
  }

  get waitMs(): number {
    return Math.max(0, this.#lastRoundAt + BIRTHDAY_SPACING_MS - this.#clock.monotonic());
  }

  prepare(): void {
    // `dial` reports the error.
    this.#ensureClients().catch(() => {});
  }

  /** Settles when all sockets exist. */
  #ensureClients(): Promise<void> {
    this.#creation ??= this.#createClients().finally(() => {
      this.#creation = null;
    });
    return this.#creation;
  }

  async #createClients(): Promise<void> {
    const { engine, config } = this.#parts();
    while (this.#clients.length < POOLED_CLIENTS && !this.#stop.signal.aborted) {
      for (let i = 0; i < CLIENTS_PER_TURN; i++) this.#clients.push(new engine.Client(config, 0));
      await setImmediate();
    }
  }

  async dial({ host, port }: Address, expectedKey: Uint8Array, signal?: AbortSignal): Promise<EngineConnection> {
    if (this.waitMs > 0) throw new SvcError('rate_limited');
    this.#lastRoundAt = this.#clock.monotonic();
    using limit = awakeTimeout(this.#clock, BIRTHDAY_TIMEOUT_MS, signal);
    await abortable(abortable(this.#ensureClients(), limit.signal), this.#stop.signal);
    const round: { winner: EngineConnection | null; isOver: boolean } = { winner: null, isOver: false };
    const dials = this.#clients.map(async (client) => {
      const connection = await client.outboundConnection(host, port);
      const peer = parsePeer(connection.remoteMultiaddr());
      const isWanted = round.winner === null && !round.isOver && peer !== null && equalBytes(peer.key, expectedKey);
      if (!isWanted) {
        connection.abort();
        throw new SvcError('connect_failed');
      }
      round.winner = connection;
      return connection;
    });
    try {
      return await abortable(abortable(Promise.any(dials), limit.signal), this.#stop.signal);
    } catch (cause) {
      round.winner?.abort();
      throw cause instanceof SvcError ? cause : new SvcError('connect_failed', { cause });
    } finally {
      round.isOver = true;
    }
  }

  stop(): void {
    this.#stop.abort();
    for (const client of this.#clients.splice(0)) client.abort();
  }
}
