/**
 * How peers have answered lately: the usual answer time, and which peers failed. Searches do not wait for a peer that
 * failed once, and avoid a peer that failed twice for a while.
 */
import { type Address, formatAddress } from '../../foundation/address.ts';
import { backoff } from '../../foundation/backoff.ts';
import type { Clock } from '../../foundation/clock.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import { hostKeyOf } from './node-address.ts';

/** A peer is slow if its answer takes this multiple of its last one, or of the usual time if it never answered … */
const SLOW_FACTOR = 2;
const SLOW_FACTOR_OF_STRANGERS = 3;
/** … but never before this time … */
const MIN_SLOW_MS = 25;
/** … and always after this time. */
const MAX_SLOW_MS = 500;
/** Assumed answer time before the first answer. */
const FIRST_RTT_MS = 50;
/** Weight of one answer in the usual time. */
const RTT_WEIGHT = 0.1;
/** How long a peer that failed once is suspected; doubled by each further failure. */
const SUSPICION_MS = 30_000;
const MAX_SUSPICION_MS = 600_000;
/** Peers that are remembered. */
const MAX_PEERS = 2000;
/** Consecutive failures after which requests to a peer stop. */
export const FAILURES_TO_DROP = 2;

interface Failing {
  readonly failures: number;
  readonly until: number;
}

export class PeerHealth {
  readonly #clock: Clock;
  readonly #failing = new LruCache<string, Failing>({ maxEntries: MAX_PEERS });
  /** Time of the last answer of each peer, in ms. */
  readonly #rtts = new LruCache<string, number>({ maxEntries: MAX_PEERS });
  #rttMs = FIRST_RTT_MS;

  constructor(dependencies: { readonly clock: Clock }) {
    this.#clock = dependencies.clock;
  }

  /** How long a search waits for an answer of a peer, in ms. */
  slowAfterMs(peer: Address): number {
    const own = this.rttMsOf(peer);
    const expected = own === null ? SLOW_FACTOR_OF_STRANGERS * this.#rttMs : SLOW_FACTOR * Math.max(own, this.#rttMs);
    return Math.min(MAX_SLOW_MS, Math.max(MIN_SLOW_MS, expected));
  }

  /** Usual time of an answer, in ms. */
  get usualRttMs(): number {
    return this.#rttMs;
  }

  answered(peer: Address, rttMs: number): void {
    this.#failing.delete(formatAddress(peer));
    this.#rtts.set(formatAddress(peer), rttMs);
    this.#rttMs += RTT_WEIGHT * (Math.min(rttMs, MAX_SLOW_MS) - this.#rttMs);
  }

  /** Time of the last answer of a peer, in ms; null if unknown. */
  rttMsOf(peer: Address): number | null {
    return this.#rtts.peek(formatAddress(peer)) ?? null;
  }

  /** Counts an unanswered request. Returns the number of consecutive failures. */
  failed(peer: Address): number {
    const key = formatAddress(peer);
    const failures = (this.#failing.get(key)?.failures ?? 0) + 1;
    const suspicion = backoff({ firstMs: SUSPICION_MS, maxMs: MAX_SUSPICION_MS }, failures);
    this.#failing.set(key, { failures, until: this.#clock.monotonic() + suspicion });
    return failures;
  }

  /** A peer sent a datagram, so it is alive. */
  heard(peer: Address): void {
    if (this.#failing.size > 0) this.#failing.delete(formatAddress(peer));
  }

  /** Consecutive failures of a suspected peer; 0 for others. */
  failures(peer: Address): number {
    if (this.#failing.size === 0) return 0;
    const failing = this.#failing.peek(formatAddress(peer));
    return failing !== undefined && this.#clock.monotonic() < failing.until ? failing.failures : 0;
  }
}

/** Nodes whose last time is remembered. */
const MAX_CLOCKS = 64;
/** How long a time counts, in ms, so that a corrected clock is soon no longer blamed. */
const REMEMBER_MS = 600_000;
/** Number of nodes whose median counts. One or two nodes may be wrong. */
const MIN_CLOCKS = 3;
/** With fewer nodes, our clock must be this far ahead of each clock, in ms. */
const FEW_CLOCKS_MS = 600_000;
/** Half of the unit in which nodes state the time: their clocks show this much more on average, in ms. */
const HALF_SECOND_MS = 500;

export interface ClockComparison {
  /** How far the median of their clocks is ahead of our clock, in ms; null without answers. */
  readonly offsetMs: number | null;
  /** Number of nodes that stated their time. */
  readonly peers: number;
}

interface Word {
  readonly offsetMs: number;
  readonly heardAt: number;
}

/**
 * How our clock compares with the clocks of other nodes. Each answer to a search contains the node's time. It is
 * untrusted, so it sets no clock. The user sees the comparison, and records that other nodes would reject as from the
 * future are not signed.
 */
export class PeerClocks {
  /** By node. */
  readonly #words = new LruCache<string, Word>({ maxEntries: MAX_CLOCKS });

  /**
   * Notes the time that a node stated.
   * @param time Unix seconds on its clock
   * @param askedAt when the request left, on our clock, Unix milliseconds
   * @param heardAt when its answer came
   */
  heard(from: Address, time: number, askedAt: number, heardAt: number): void {
    this.#words.set(hostKeyOf(from), { offsetMs: time * 1000 + HALF_SECOND_MS - (askedAt + heardAt) / 2, heardAt });
  }

  /**
   * How far our clock is ahead of the median of several nodes, in ms. With one or two nodes, all must agree that it is
   * far ahead. Otherwise 0.
   */
  aheadMs(now: number): number {
    const offsets = this.#offsets(now);
    if (offsets.length >= MIN_CLOCKS) return Math.max(0, -(medianOf(offsets) ?? 0));
    const least = Math.min(...offsets.map((offsetMs) => -offsetMs));
    return offsets.length > 0 && least > FEW_CLOCKS_MS ? Math.round(least) : 0;
  }

  /**
   * The median, which few liars cannot move far.
   * @param now Unix milliseconds; times from long before it, or after it because our clock was set, do not count
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
