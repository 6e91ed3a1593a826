/**
 * Sockets that dial one address at the same time. A symmetric NAT gives each socket a different external port, and with high probability one is a port that the peer has opened (birthday paradox). The sockets are reused,
 * because the engine frees a socket only when its object is garbage-collected.
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

/** Number of sockets. If the peer opens 1,024 of 64,512 ports, a round succeeds with a probability of 98.3 %. */
export const POOLED_CLIENTS = 256;
/** Number of sockets to create before yielding to the event loop: each blocks it for 1 to 2 ms. */
const CLIENTS_PER_TURN = 4;
/** Maximum duration of a round, milliseconds. */
export const BIRTHDAY_TIMEOUT_MS = 5_000;
/**
 * Minimum interval between the starts of rounds: until then the engine still retries the ports of the previous round.
 */
export const BIRTHDAY_SPACING_MS = 20_000;

/** Rounds with one node. The probability that all fail is 1 in 200,000. */
export const BIRTHDAY_ROUNDS = 3;

export class ClientPool {
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

  /** Milliseconds until the next round may begin. */
  get waitMs(): number {
    return Math.max(0, this.#lastRoundAt + BIRTHDAY_SPACING_MS - this.#clock.monotonic());
  }

  /** Starts creating the sockets before they are needed. Their creation is as slow as several round trips. */
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

  /**
   * Dials an address from all sockets and keeps the first connection. The peer learns which one from the stream that
   * the caller opens next.
   * @throws SvcError `rate_limited` if the previous round is too recent, `timeout`, `cancelled`, `connect_failed`
   */
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
