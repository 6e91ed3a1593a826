/** The order of tries: each as soon as the limits that nodes have towards each other allow it, so that none is hit. */

import { BIRTHDAY_SPACING_MS } from '../../src/network/reach/client-pool.ts';
import { PUNCHES_PER_PEER } from '../../src/network/reach/punch-guard.ts';
import { changesPorts, isBirthday, type Pair, pairName } from './places.ts';

/** From one try of two nodes to the next: two openings each, where the first is tried again with more hops. */
const PAIR_SPACING_MS = (2 * 60_000) / PUNCHES_PER_PEER;

/** A try that is due: a pair, and which of the nodes at each of its places. */
export interface Slot {
  readonly pair: Pair;
  readonly copy: number;
}

export class Schedule {
  readonly #left: Map<Pair, number>;
  readonly #copies: number;
  /** When two nodes, a node that dials from all its sockets, or a node in use may be used again. */
  readonly #free = new Map<string, number>();

  constructor(pairs: readonly Pair[], { tries, copies }: { readonly tries: number; readonly copies: number }) {
    this.#left = new Map(pairs.map((pair) => [pair, tries]));
    this.#copies = copies;
  }

  /** What to try now; otherwise how long to wait, milliseconds, infinite for the end of a try; null when all has begun. */
  next(now: number): Slot | number | null {
    const waiting = [...this.#left].filter(([, left]) => left > 0);
    // Those with the most tries before them come first, so that all go on alike.
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

  /** To be called when a try has ended. */
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

/** What may be used only so often: the two nodes together, and the sockets of the side whose port changes. */
function limitedOf({ pair, copy }: Slot): string[] {
  const both = `${pairName(pair)} ${copy}`;
  const side = changesPorts(pair.caller) ? `caller ${pair.caller}` : `called ${pair.called}`;
  return isBirthday(pair) ? [both, `sockets of ${side} ${copy}`] : [both];
}
