/** The order of the attempts: each starts as soon as the limits between nodes allow it. */

import { PUNCHES_PER_PEER } from '../../src/network/reachability/punch-guard.ts';
import { BIRTHDAY_SPACING_MS } from '../../src/network/transport/engine-connection.ts';
import { changesPorts, isBirthday, type Pair, pairName } from './places.ts';

/** Interval between two attempts of the same nodes. Each may punch twice, the second time with a higher hop limit. */
const PAIR_SPACING_MS = (2 * 60_000) / PUNCHES_PER_PEER;

/** An attempt: a pair, and the copy of its nodes. */
export interface Slot {
  readonly pair: Pair;
  readonly copy: number;
}

export class Schedule {
  readonly #left: Map<Pair, number>;
  readonly #copies: number;
  /** When a pair of nodes, a node with exhausted sockets, or a busy node becomes available. */
  readonly #free = new Map<string, number>();

  constructor(pairs: readonly Pair[], { tries, copies }: { readonly tries: number; readonly copies: number }) {
    this.#left = new Map(pairs.map((pair) => [pair, tries]));
    this.#copies = copies;
  }

  /**
   * The next attempt, or the time to wait in milliseconds (infinite for the end of an attempt), or null if all were
   * started.
   */
  next(now: number): Slot | number | null {
    const waiting = [...this.#left].filter(([, left]) => left > 0);
    // Pairs with the most remaining attempts go first.
    waiting.sort(([, a], [, b]) => b - a);
    let waitMs = Number.POSITIVE_INFINITY;
    for (const [pair, left] of waiting) {
      for (let copy = 0; copy < this.#copies; copy++) {
        const slot = { pair, copy };
        const names = [...nodesOf(slot), ...limitedOf(slot)];
        const freeAt = Math.max(...names.map((name) => this.#free.get(name) ?? 0));
        if (freeAt <= now) {
          this.#left.set(pair, left - 1);
          for (const name of nodesOf(slot)) this.#free.set(name, Number.POSITIVE_INFINITY);
          return slot;
        }
        waitMs = Math.min(waitMs, freeAt - now);
      }
    }
    return waiting.length === 0 ? null : waitMs;
  }

  /** Reports the end of an attempt. */
  ended(slot: Slot, now: number): void {
    for (const name of nodesOf(slot)) this.#free.set(name, now);
    const [pair = '', ...dialling] = limitedOf(slot);
    this.#free.set(pair, now + PAIR_SPACING_MS);
    for (const name of dialling) this.#free.set(name, now + BIRTHDAY_SPACING_MS);
  }
}

function nodesOf({ pair, copy }: Slot): string[] {
  return [`caller ${pair.caller} ${copy}`, `called ${pair.called} ${copy}`];
}

/** Resources with a rate limit: the two nodes together, and the sockets of the side that changes its port. */
function limitedOf({ pair, copy }: Slot): string[] {
  const both = `${pairName(pair)} ${copy}`;
  const side = changesPorts(pair.caller) ? `caller ${pair.caller}` : `called ${pair.called}`;
  return isBirthday(pair) ? [both, `sockets of ${side} ${copy}`] : [both];
}
