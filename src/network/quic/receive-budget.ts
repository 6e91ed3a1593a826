/**
 * Bounds what all connections of the endpoint together keep in memory for readers that have
 * stopped. The windows bound one connection; whoever opens many must not multiply that.
 */
import { toHex } from '../../foundation/bytes.ts';
import type { Clock } from '../../foundation/clock.ts';
import type { Log } from '../../foundation/log.ts';
import { every, type Repeating } from '../../foundation/repeat.ts';
import { wakingClock } from '../../foundation/stall.ts';

/** Bytes that connections with stopped readers may hold together. */
export const MAX_HELD_BACK_BYTES = 256 * 1024 * 1024;

/** The same of the connections with one other node: somewhat more than one of them can hold. */
export const MAX_HELD_BACK_PER_NODE_BYTES = 128 * 1024 * 1024;

/** How often it is looked at; a reader counts as stopped that took nothing between two looks. */
export const HELD_BACK_INTERVAL_MS = 5_000;

/** A connection that may hold bytes for readers that have stopped. */
export interface Holder {
  /** The other node's key. */
  readonly remoteKey: Uint8Array;
  /** The most that it may hold for readers that took nothing since the last call, bytes. */
  heldBackBytes(): number;
  close(): void;
}

interface Held {
  readonly holder: Holder;
  readonly bytes: number;
}

export class ReceiveBudget {
  readonly #holders: () => Iterable<Holder>;
  readonly #clock: Clock;
  readonly #log: Log;
  #looks: Repeating | null = null;

  /** @param holders every connection that stands */
  constructor(holders: () => Iterable<Holder>, dependencies: { readonly clock: Clock; readonly log: Log }) {
    this.#holders = holders;
    // In waking time: while we stalled, no reader could take anything.
    this.#clock = wakingClock(dependencies.clock);
    this.#log = dependencies.log;
  }

  start(): void {
    const onError = (error: unknown): void => this.#log.warn({ error }, 'connections could not be looked at');
    this.#looks = every(this.#clock, { periodMs: HELD_BACK_INTERVAL_MS, onError }, () => this.#look());
  }

  stop(): void {
    this.#looks?.stop();
  }

  #look(): void {
    const held = [...this.#holders()].map((holder) => ({ holder, bytes: holder.heldBackBytes() }));
    const ofNode = Map.groupBy(held, ({ holder }) => toHex(holder.remoteKey));
    const left = [...ofNode.values()].flatMap((some) => this.#trim(some, MAX_HELD_BACK_PER_NODE_BYTES));
    this.#trim(left, MAX_HELD_BACK_BYTES);
  }

  /** Closes those that hold the most until the rest is within a bound; gives the rest. */
  #trim(held: readonly Held[], bound: number): readonly Held[] {
    let total = held.reduce((sum, { bytes }) => sum + bytes, 0);
    return held
      .toSorted((a, b) => b.bytes - a.bytes)
      .filter(({ holder, bytes }) => {
        if (total <= bound) return true;
        this.#log.warn({ bytes }, 'closed a connection that holds too much for readers that have stopped');
        holder.close();
        total -= bytes;
        return false;
      });
  }
}
