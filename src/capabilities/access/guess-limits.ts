/**
 * Locks out who guesses secrets, not the neighbours. Wrong guesses are counted for the proven
 * caller, for its node and for the source of its connection, each in a table of its own: AIDs and node keys
 * are free to make, addresses less so. The wider a count reaches, the more it takes to lock and the
 * shorter the lock.
 */
import { type Backoff, backoff } from '../../foundation/backoff.ts';
import type { Clock } from '../../foundation/clock.ts';
import { networkOf, subscriberOf } from '../../foundation/ip.ts';
import { LruCache } from '../../foundation/lru-cache.ts';

/** Wrong guesses of one AID until it is locked out. */
const CALLER_GUESSES = 5;
/** Wrong guesses of all AIDs of one node until it is locked out. */
const NODE_GUESSES = 20;
/** Wrong guesses from one source until it has to wait. */
const SOURCE_GUESSES = 60;
/** Wrong guesses from one network (an IPv4 /24 or IPv6 /48) until it has to wait. */
const NETWORK_GUESSES = 240;
/** The first lock of an AID or a node; it doubles with each further wrong guess. */
const LOCK_MS = 30_000;
/** The longest lock of an AID or a node. */
const MAX_LOCK_MS = 3_600_000;
/** The lock of a source or a network, which never grows: others may stand behind the same address. */
const SOURCE_LOCK_MS = 5_000;
/** Guesses are forgotten after this time without another one. */
const FORGET_MS = 2 * 3_600_000;
/** Guessers that are remembered, for each kind of count. */
const MAX_GUESSERS = 10_000;
/** Callers known to hold a secret, whom the guesses of their neighbours do not lock out. */
const MAX_TRUSTED = 10_000;

const GROWING_LOCK: Backoff = { firstMs: LOCK_MS, maxMs: MAX_LOCK_MS };
const STEADY_LOCK: Backoff = { firstMs: SOURCE_LOCK_MS, maxMs: SOURCE_LOCK_MS };

interface LockOptions {
  /** Wrong guesses until the first lock. */
  readonly guesses: number;
  readonly lock: Backoff;
}

interface Guesses {
  readonly wrong: number;
  readonly lastAt: number;
  readonly lockedUntil: number;
}

/** One kind of count. */
class LockTable {
  readonly #options: LockOptions;
  readonly #table = new LruCache<string, Guesses>({ maxEntries: MAX_GUESSERS });

  constructor(options: LockOptions) {
    this.#options = options;
  }

  /** Milliseconds until the next guess is taken; 0 where it is now. */
  wait(key: string, now: number): number {
    return Math.max(0, (this.#table.get(key)?.lockedUntil ?? 0) - now);
  }

  charge(key: string, now: number): void {
    const { guesses, lock } = this.#options;
    const known = this.#table.get(key);
    const wrong = known === undefined || now - known.lastAt > FORGET_MS ? 1 : known.wrong + 1;
    this.#table.set(key, { wrong, lastAt: now, lockedUntil: now + backoff(lock, wrong - guesses + 1) });
  }

  /** Takes one charge back, with the lock that it brought. */
  refund(key: string): void {
    const known = this.#table.get(key);
    if (known === undefined) return;
    if (known.wrong <= 1) this.#table.delete(key);
    else this.#table.set(key, { ...known, wrong: known.wrong - 1, lockedUntil: 0 });
  }

  forget(key: string): void {
    this.#table.delete(key);
  }
}

/** Who presents a secret: the proven caller, its node's key in hex, and whom its connection counts for (see `Path`); null on this daemon. */
export interface Guesser {
  readonly caller: string;
  readonly node: string | null;
  readonly source: string | null;
}

/** Bits of the IPv6 network that one household or server gets. */
const HOUSEHOLD_BITS = 56;

/** Whom the guesses from a source are held against: an IPv4 address or the IPv6 network of one household. */
export function householdOf(source: string): string {
  return subscriberOf(source, HOUSEHOLD_BITS);
}

export class GuessLimits {
  readonly #clock: Clock;
  readonly #callers = new LockTable({ guesses: CALLER_GUESSES, lock: GROWING_LOCK });
  readonly #nodes = new LockTable({ guesses: NODE_GUESSES, lock: GROWING_LOCK });
  readonly #sources = new LockTable({ guesses: SOURCE_GUESSES, lock: STEADY_LOCK });
  readonly #networks = new LockTable({ guesses: NETWORK_GUESSES, lock: STEADY_LOCK });
  readonly #trusted = new LruCache<string, true>({ maxEntries: MAX_TRUSTED });

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The counts that a guesser falls under. A trusted caller answers for itself only. */
  #keys(subject: string, guesser: Guesser): [LockTable, string][] {
    const caller = `${subject} ${guesser.caller}`;
    const keys: [LockTable, string][] = [[this.#callers, caller]];
    if (this.#trusted.get(caller) === true) return keys;
    if (guesser.node !== null) keys.push([this.#nodes, `${subject} ${guesser.node}`]);
    if (guesser.source === null) return keys;
    keys.push([this.#sources, `${subject} ${householdOf(guesser.source)}`]);
    const network = networkOf(guesser.source);
    if (network !== null) keys.push([this.#networks, `${subject} ${network}`]);
    return keys;
  }

  /** Milliseconds until this guesser may try again; 0 where it may now. */
  wait(subject: string, guesser: Guesser): number {
    const now = this.#clock.now();
    return Math.max(...this.#keys(subject, guesser).map(([table, key]) => table.wait(key, now)));
  }

  /**
   * Counts a guess as wrong before it is looked at, so that guesses side by side cannot pass under
   * the limit. Returns how to take that back where it was right, or never looked at.
   */
  charge(subject: string, guesser: Guesser): () => void {
    const now = this.#clock.now();
    const keys = this.#keys(subject, guesser);
    for (const [table, key] of keys) table.charge(key, now);
    return () => {
      for (const [table, key] of keys) table.refund(key);
    };
  }

  /** True for a caller that is known to hold a secret. */
  trusts(subject: string, { caller }: Guesser): boolean {
    return this.#trusted.peek(`${subject} ${caller}`) === true;
  }

  /** Remembers that a caller holds a secret, and forgives its own wrong guesses. */
  trust(subject: string, guesser: Guesser): void {
    const caller = `${subject} ${guesser.caller}`;
    this.#callers.forget(caller);
    this.#trusted.set(caller, true);
  }
}
