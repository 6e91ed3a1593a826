/**
 * Sockets that dial one address all at once, for the side whose router gives each destination another outer port: one
 * of them comes out of a port that the other side has opened. They are kept for the next time, since the engine frees
 * a socket only when its object is collected.
 */

import { setImmediate } from 'node:timers/promises';
import type { Address } from '../../foundation/address.ts';
import { equalBytes } from '../../foundation/bytes.ts';
import type { Clock } from '../../foundation/clock.ts';
import { abortable } from '../../foundation/deadline.ts';
import { SvcError } from '../../foundation/errors.ts';
import { awakeTimeout } from '../../foundation/stall.ts';
import { type EngineClient, type EngineConnection, parsePeer } from '../transport/quic/engine.ts';
import type { EndpointParts } from '../transport/quic/native-endpoint.ts';

/** Sockets: with 1,024 open ports of 64,512 one of them meets a port in 98.3 % of rounds. */
export const POOLED_CLIENTS = 256;
/** Sockets that are made at one go: each takes a millisecond or two, in which nothing else is done. */
const MADE_AT_ONCE = 4;
/** How long a round takes at most, milliseconds. */
export const BIRTHDAY_TIMEOUT_MS = 5_000;
/** From the beginning of one round to that of the next: until then the engine still tries the ports of the last one. */
export const BIRTHDAY_SPACING_MS = 20_000;

/** Rounds with one node: one in 200,000 meets in none of them. */
export const BIRTHDAY_ROUNDS = 3;

export class ClientPool {
  readonly #parts: () => EndpointParts;
  readonly #clock: Clock;
  readonly #clients: EngineClient[] = [];
  readonly #stop = new AbortController();
  #lastAt = Number.NEGATIVE_INFINITY;
  #making: Promise<void> | null = null;

  /** @param parts of the endpoint, which need not be started yet */
  constructor(parts: () => EndpointParts, dependencies: { readonly clock: Clock }) {
    this.#parts = parts;
    this.#clock = dependencies.clock;
  }

  /** Milliseconds until the next round may begin. */
  get waitMs(): number {
    return Math.max(0, this.#lastAt + BIRTHDAY_SPACING_MS - this.#clock.now());
  }

  /** Begins to make the sockets, which takes the time of some round trips: it may be done before anybody is dialled. */
  prepare(): void {
    // Whoever dials hears what it failed with.
    this.#made().catch(() => {});
  }

  /** Settles when all sockets are there. */
  #made(): Promise<void> {
    this.#making ??= this.#make().finally(() => {
      this.#making = null;
    });
    return this.#making;
  }

  async #make(): Promise<void> {
    const { engine, config } = this.#parts();
    while (this.#clients.length < POOLED_CLIENTS && !this.#stop.signal.aborted) {
      for (let i = 0; i < MADE_AT_ONCE; i++) this.#clients.push(new engine.Client(config, 0));
      await setImmediate();
    }
  }

  /**
   * Dials an address from all sockets; the first that gets through is kept, and names itself to the other side by the
   * stream that the caller opens next.
   * @throws SvcError `rate_limited` where the last round was too short ago, `timeout`, `cancelled`, `connect_failed`
   */
  async dial({ host, port }: Address, expectedKey: Uint8Array, signal?: AbortSignal): Promise<EngineConnection> {
    if (this.waitMs > 0) throw new SvcError('rate_limited');
    this.#lastAt = this.#clock.now();
    using limit = awakeTimeout(this.#clock, BIRTHDAY_TIMEOUT_MS, signal);
    await abortable(abortable(this.#made(), limit.signal), this.#stop.signal);
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
