/**
 * How peers have answered lately: how long a usual answer takes, and who has not answered. A peer
 * that did not answer is not waited for again; one that failed twice is not asked for a while.
 */
import { type Address, formatAddress } from '../../foundation/address.ts';
import { backoff } from '../../foundation/backoff.ts';
import type { Clock } from '../../foundation/clock.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import { hostKeyOf } from './node-address.ts';

/** A peer is slow when its answer takes so many times the usual time … */
const SLOW_FACTOR = 3;
/** … but never sooner than this … */
const MIN_SLOW_MS = 25;
/** … and always after this. */
const MAX_SLOW_MS = 500;
/** What is assumed of the network before the first answer. */
const FIRST_RTT_MS = 50;
/** How much one answer moves the usual time. */
const RTT_WEIGHT = 0.1;
/** For how long a peer that failed once is not relied on; doubled by each further failure. */
const SUSPICION_MS = 30_000;
const MAX_SUSPICION_MS = 600_000;
/** Peers that are remembered. */
const MAX_PEERS = 2000;
/** Failures in a row after which a peer is no longer asked. */
export const FAILURES_TO_DROP = 2;

interface Failing {
  readonly failures: number;
  readonly until: number;
}

export class PeerHealth {
  readonly #clock: Clock;
  readonly #failing = new LruCache<string, Failing>({ maxEntries: MAX_PEERS });
  /** How long the last answer of each peer took, milliseconds. */
  readonly #rtts = new LruCache<string, number>({ maxEntries: MAX_PEERS });
  #rttMs = FIRST_RTT_MS;

  constructor(dependencies: { readonly clock: Clock }) {
    this.#clock = dependencies.clock;
  }

  /** After how many milliseconds an unanswered request is no longer waited for. */
  get slowAfterMs(): number {
    return Math.min(MAX_SLOW_MS, Math.max(MIN_SLOW_MS, SLOW_FACTOR * this.#rttMs));
  }

  answered(peer: Address, rttMs: number): void {
    this.#failing.delete(formatAddress(peer));
    this.#rtts.set(formatAddress(peer), rttMs);
    this.#rttMs += RTT_WEIGHT * (Math.min(rttMs, MAX_SLOW_MS) - this.#rttMs);
  }

  /** How long the last answer of a peer took, milliseconds; null where none is remembered. */
  rttMsOf(peer: Address): number | null {
    return this.#rtts.peek(formatAddress(peer)) ?? null;
  }

  /** Counts an unanswered request; returns how many there were in a row. */
  failed(peer: Address): number {
    const key = formatAddress(peer);
    const failures = (this.#failing.get(key)?.failures ?? 0) + 1;
    const suspicion = backoff({ firstMs: SUSPICION_MS, maxMs: MAX_SUSPICION_MS }, failures);
    this.#failing.set(key, { failures, until: this.#clock.now() + suspicion });
    return failures;
  }

  /** A peer was heard of its own accord: it is alive after all. */
  heard(peer: Address): void {
    if (this.#failing.size > 0) this.#failing.delete(formatAddress(peer));
  }

  /** Failures in a row of a peer that is under suspicion now; 0 for one that is not. */
  failures(peer: Address): number {
    if (this.#failing.size === 0) return 0;
    const failing = this.#failing.peek(formatAddress(peer));
    return failing !== undefined && this.#clock.now() < failing.until ? failing.failures : 0;
  }
}

/**
 * How our clock compares with those of other nodes: each answer to a search says its time. Strangers say it, so no
 * clock is set by it. It is shown to the user, and what several nodes would take only later is not signed.
 */

/** Nodes whose last word is remembered. */
const MAX_CLOCKS = 64;
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
  readonly #words = new LruCache<string, Word>({ maxEntries: MAX_CLOCKS });

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
