/** The order of tries: each as soon as the limits that nodes have towards each other allow it, so that none is hit. */

import { BIRTHDAY_SPACING_MS } from '../../src/network/reach/client-pool.ts';
import { PUNCHES_PER_PEER } from '../../src/network/reach/punch-guard.ts';
import { changesPorts, isBirthday, type Pair, pairName } from './places.ts';

/** From one try of a pair to the next: two openings each, where the first is tried again with more hops. */
const PAIR_SPACING_MS = (2 * 60_000) / PUNCHES_PER_PEER;

export class Schedule {
  readonly #left: Map<Pair, number>;
  /** When a pair, or a node that dials from all its sockets, may be used again. */
  readonly #free = new Map<string, number>();

  constructor(pairs: readonly Pair[], tries: number) {
    this.#left = new Map(pairs.map((pair) => [pair, tries]));
  }

  /** The pair to try now; otherwise how long to wait, milliseconds; null when all is done. */
  next(now: number): Pair | number | null {
    const waiting = [...this.#left].filter(([, left]) => left > 0);
    // Those with the most tries before them come first, so that all go on alike.
    waiting.sort(([, a], [, b]) => b - a);
    let waitMs = Number.POSITIVE_INFINITY;
    for (const [pair, left] of waiting) {
      const freeAt = Math.max(...namesOf(pair).map((name) => this.#free.get(name) ?? 0));
      if (freeAt <= now) {
        this.#left.set(pair, left - 1);
        return pair;
      }
      waitMs = Math.min(waitMs, freeAt - now);
    }
    return waiting.length === 0 ? null : waitMs;
  }

  /** To be called when a try has ended. */
  ended(pair: Pair, now: number): void {
    this.#free.set(pairName(pair), now + PAIR_SPACING_MS);
    for (const name of namesOf(pair).slice(1)) this.#free.set(name, now + BIRTHDAY_SPACING_MS);
  }
}

/** What a try needs for itself: the pair, and the sockets of the side whose port changes. */
function namesOf(pair: Pair): string[] {
  const dialling = changesPorts(pair.caller) ? `caller ${pair.caller}` : `called ${pair.called}`;
  return isBirthday(pair) ? [pairName(pair), dialling] : [pairName(pair)];
}
