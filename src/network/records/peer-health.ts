/**
 * How peers have answered lately: how long a usual answer takes, and who has not answered. A peer
 * that did not answer is not waited for again; one that failed twice is not asked for a while.
 */
import { type Address, formatAddress } from '../../foundation/address.ts';
import { backoff } from '../../foundation/backoff.ts';
import type { Clock } from '../../foundation/clock.ts';
import { LruCache } from '../../foundation/lru-cache.ts';

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
