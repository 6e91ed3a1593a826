/**
 * How our clock compares with those of other nodes: each answer to a search says its time. Strangers say it, so no
 * clock is set by it. It is shown to the user, and what several nodes would take only later is not signed.
 */
import type { Address } from '../../foundation/address.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import { hostKeyOf } from './node-address.ts';

/** Nodes whose last word is remembered. */
const MAX_PEERS = 64;
/** For how long, milliseconds: a clock that was set right is not blamed for long. */
const REMEMBER_MS = 600_000;
/** Nodes whose median counts as it is: one or two may be wrong themselves. */
const MIN_CLOCKS = 3;
/** By how much our clock must be ahead of each of fewer nodes, milliseconds. */
const FEW_CLOCKS_MS = 600_000;
/** Half of the unit in which nodes say the time: on average it was so much later, milliseconds. */
const HALF_SECOND_MS = 500;

export interface ClockComparison {
  /** By how many milliseconds the median of their clocks is ahead of ours; null where nobody has said. */
  readonly offsetMs: number | null;
  /** How many nodes have said the time. */
  readonly peers: number;
}

interface Word {
  readonly offsetMs: number;
  readonly heardAt: number;
}

export class PeerClocks {
  /** By node. */
  readonly #words = new LruCache<string, Word>({ maxEntries: MAX_PEERS });

  /**
   * What a node said.
   * @param time Unix seconds on its clock
   * @param askedAt when it was asked, on ours, Unix milliseconds
   * @param heardAt when its answer came
   */
  heard(from: Address, time: number, askedAt: number, heardAt: number): void {
    this.#words.set(hostKeyOf(from), { offsetMs: time * 1000 + HALF_SECOND_MS - (askedAt + heardAt) / 2, heardAt });
  }

  /**
   * By how many milliseconds our clock is ahead of the median of several. If only one or two nodes have said the time, all
   * of them must agree that it is far ahead. 0 if it is not known to be ahead.
   */
  aheadMs(now: number): number {
    const offsets = this.#offsets(now);
    if (offsets.length >= MIN_CLOCKS) return Math.max(0, -(medianOf(offsets) ?? 0));
    const least = Math.min(...offsets.map((offsetMs) => -offsetMs));
    return offsets.length > 0 && least > FEW_CLOCKS_MS ? Math.round(least) : 0;
  }

  /**
   * The median: a minority of liars does not move it far.
   * @param now Unix milliseconds; what was heard long before or, since our clock was set, after it does not count
   */
  compare(now: number): ClockComparison {
    const offsets = this.#offsets(now);
    return { offsetMs: medianOf(offsets), peers: offsets.length };
  }

  #offsets(now: number): number[] {
    const fresh = this.#words.values().filter(({ heardAt }) => Math.abs(now - heardAt) <= REMEMBER_MS);
    return fresh.map(({ offsetMs }) => offsetMs);
  }
}

function medianOf(offsets: readonly number[]): number | null {
  const middle = offsets.toSorted((a, b) => a - b)[Math.floor(offsets.length / 2)];
  return middle === undefined ? null : Math.round(middle);
}
