/**
 * Bounds what all connections of the endpoint together keep in memory for readers that have
 * stopped. The windows bound one connection; whoever opens many must not multiply that.
 */
import { toHex } from '../../../foundation/bytes.ts';
import type { Clock } from '../../../foundation/clock.ts';
import type { Log } from '../../../foundation/log.ts';
import { Quota } from '../../../foundation/quota.ts';
import { every, type RepeatingTask } from '../../../foundation/repeat.ts';
import { awakeClock } from '../../../foundation/stall.ts';

/** Bytes that connections with stopped readers may hold together. */
export const MAX_HELD_BACK_BYTES = 256 * 1024 * 1024;

/** The same of the connections with one other node: somewhat more than one of them can hold. */
export const MAX_HELD_BACK_PER_NODE_BYTES = 128 * 1024 * 1024;

/** The same of the strangers on one IPv4 address or IPv6 /64. */
export const MAX_HELD_BACK_PER_SOURCE_BYTES = 160 * 1024 * 1024;

/** The same of those in one IPv4 /24 or IPv6 /48. */
export const MAX_HELD_BACK_PER_NETWORK_BYTES = 192 * 1024 * 1024;

/** How often it is looked at; a reader counts as stopped that took nothing between two looks. */
export const HELD_BACK_INTERVAL_MS = 5_000;

/** A connection that may hold bytes for readers that have stopped. */
export interface Holder {
  /** The other node's key. */
  readonly remoteKey: Uint8Array;
  readonly path: { readonly source: string };
  /** The most that it may hold for readers that took nothing since the last call, bytes. */
  heldBackBytes(): number;
  close(): void;
}

interface ReceiveBudgetDependencies {
  readonly clock: Clock;
  readonly log: Log;
  /** True for nodes that give way after strangers. */
  readonly isKnown?: ((nodeKey: Uint8Array) => boolean) | undefined;
}

export class ReceiveBudget {
  readonly #holders: () => Iterable<Holder>;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #isKnown: (nodeKey: Uint8Array) => boolean;
  #looks: RepeatingTask | null = null;

  /** @param holders every connection that stands */
  constructor(holders: () => Iterable<Holder>, dependencies: ReceiveBudgetDependencies) {
    this.#holders = holders;
    // In waking time: while we stalled, no reader could take anything.
    this.#clock = awakeClock(dependencies.clock);
    this.#log = dependencies.log;
    this.#isKnown = dependencies.isKnown ?? (() => false);
  }

  start(): void {
    const onError = (error: unknown): void => this.#log.warn({ error }, 'connections could not be looked at');
    this.#looks = every(this.#clock, { periodMs: HELD_BACK_INTERVAL_MS, onError }, () => this.#look());
  }

  stop(): void {
    this.#looks?.stop();
  }

  /** Lets in what fits, known nodes first and then those that hold the least; closes the rest. */
  #look(): void {
    const budget = new Quota({
      perNode: MAX_HELD_BACK_PER_NODE_BYTES,
      perSource: MAX_HELD_BACK_PER_SOURCE_BYTES,
      perNetwork: MAX_HELD_BACK_PER_NETWORK_BYTES,
      total: MAX_HELD_BACK_BYTES,
    });
    const held = [...this.#holders()].map((connection) => {
      const { remoteKey, path } = connection;
      const holder = { node: toHex(remoteKey), source: path.source, named: this.#isKnown(remoteKey) };
      return { connection, holder, bytes: connection.heldBackBytes() };
    });
    // Of two alike, the newer one stays.
    held.reverse().sort((a, b) => Number(b.holder.named) - Number(a.holder.named) || a.bytes - b.bytes);
    for (const { connection, holder, bytes } of held) {
      if (bytes === 0 || budget.take(holder, { amount: bytes }) !== null) continue;
      this.#log.warn({ bytes }, 'closed a connection that holds too much for readers that have stopped');
      connection.close();
    }
  }
}
