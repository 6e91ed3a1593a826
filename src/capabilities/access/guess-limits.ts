/**
 * Locks out callers that guess secrets without locking out others at their address. Wrong guesses are counted per
 * authenticated caller, per node and per source, in separate tables, because AIDs and node keys are free to create and
 * addresses are not. The wider a count, the more guesses lock it, and the shorter the lock.
 */
import { type Backoff, backoff } from '../../foundation/backoff.ts';
import type { Clock } from '../../foundation/clock.ts';
import { subscriberOf } from '../../foundation/ip.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import { sourceGroupOf } from '../../foundation/quota.ts';

/** Wrong guesses of one AID before it is locked. */
const CALLER_GUESSES = 5;
/** Wrong guesses of all AIDs of one node before the node is locked. */
const NODE_GUESSES = 20;
/** Wrong guesses from one source before it is locked. */
const SOURCE_GUESSES = 60;
/** Wrong guesses from one network (see `sourceGroupOf`) before it is locked. */
const NETWORK_GUESSES = 240;
/** First lock of an AID or a node, in milliseconds. It doubles with each further wrong guess. */
const LOCK_MS = 30_000;
/** Longest lock of an AID or a node, in milliseconds. */
const MAX_LOCK_MS = 3_600_000;
/** Lock of a source or a network, in milliseconds. It never grows, because other callers may share the address. */
const SOURCE_LOCK_MS = 5_000;
/** Milliseconds without a wrong guess after which a count expires. */
const GUESS_TTL_MS = 2 * 3_600_000;
/** Entries of each table. */
const MAX_GUESSERS = 10_000;
/** Callers that presented a valid secret. Wrong guesses of other callers do not lock them out. */
const MAX_TRUSTED = 10_000;

const GROWING_LOCK: Backoff = { firstMs: LOCK_MS, maxMs: MAX_LOCK_MS };
const CONSTANT_LOCK: Backoff = { firstMs: SOURCE_LOCK_MS, maxMs: SOURCE_LOCK_MS };

interface LockOptions {
  /** Wrong guesses before the first lock. */
  readonly guesses: number;
  readonly lock: Backoff;
}

interface Guesses {
  readonly wrong: number;
  readonly lastAt: number;
  readonly lockedUntil: number;
}

class LockTable {
  readonly #options: LockOptions;
  readonly #table = new LruCache<string, Guesses>({ maxEntries: MAX_GUESSERS });

  constructor(options: LockOptions) {
    this.#options = options;
  }

  /** Milliseconds until the next guess is allowed; 0 if it is allowed now. */
  lockedForMs(key: string, now: number): number {
    return Math.max(0, (this.#table.get(key)?.lockedUntil ?? 0) - now);
  }

  charge(key: string, now: number): void {
    const { guesses, lock } = this.#options;
    const known = this.#table.get(key);
    const wrong = known === undefined || now - known.lastAt > GUESS_TTL_MS ? 1 : known.wrong + 1;
    this.#table.set(key, { wrong, lastAt: now, lockedUntil: now + backoff(lock, wrong - guesses + 1) });
  }

  /** Removes one charge, and the lock that it caused. */
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

/**
 * The party that presents a secret: the authenticated caller, its node key in hex, and the source of its connection
 * (see `Path`). Node and source are null for local callers.
 */
export interface Guesser {
  readonly caller: string;
  readonly node: string | null;
  readonly source: string | null;
}

/** Prefix length of the IPv6 network of one household or server. */
const HOUSEHOLD_BITS = 56;

/** The address that guesses are counted for: an IPv4 address, or the IPv6 prefix of one household. */
export function householdPrefix(source: string): string {
  return subscriberOf(source, HOUSEHOLD_BITS);
}

export class GuessLimits {
  readonly #clock: Clock;
  readonly #callers = new LockTable({ guesses: CALLER_GUESSES, lock: GROWING_LOCK });
  readonly #nodes = new LockTable({ guesses: NODE_GUESSES, lock: GROWING_LOCK });
  readonly #sources = new LockTable({ guesses: SOURCE_GUESSES, lock: CONSTANT_LOCK });
  readonly #networks = new LockTable({ guesses: NETWORK_GUESSES, lock: CONSTANT_LOCK });
  readonly #trusted = new LruCache<string, true>({ maxEntries: MAX_TRUSTED });

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The counts of a guesser. A trusted caller has only its own count. */
  #keys(subject: string, guesser: Guesser): [LockTable, string][] {
    const caller = `${subject} ${guesser.caller}`;
    const keys: [LockTable, string][] = [[this.#callers, caller]];
    if (this.#trusted.get(caller) === true) return keys;
    if (guesser.node !== null) keys.push([this.#nodes, `${subject} ${guesser.node}`]);
    if (guesser.source === null) return keys;
    keys.push([this.#sources, `${subject} ${householdPrefix(guesser.source)}`]);
    keys.push([this.#networks, `${subject} ${sourceGroupOf(guesser.source).network}`]);
    return keys;
  }

  /** Milliseconds until this guesser may try again; 0 if it may try now. */
  wait(subject: string, guesser: Guesser): number {
    const now = this.#clock.monotonic();
    return Math.max(...this.#keys(subject, guesser).map(([table, key]) => table.lockedForMs(key, now)));
  }

  /**
   * Counts a guess as wrong before it is checked, so concurrent guesses cannot exceed the limit. Returns a function
   * that refunds the charge if the secret was valid or was never checked.
   */
  charge(subject: string, guesser: Guesser): () => void {
    const now = this.#clock.monotonic();
    const keys = this.#keys(subject, guesser);
    for (const [table, key] of keys) table.charge(key, now);
    return () => {
      for (const [table, key] of keys) table.refund(key);
    };
  }

  /** True if the caller presented a valid secret before. */
  isTrusted(subject: string, { caller }: Guesser): boolean {
    return this.#trusted.peek(`${subject} ${caller}`) === true;
  }

  /** Marks a caller as trusted and clears its own wrong guesses. */
  trust(subject: string, guesser: Guesser): void {
    const caller = `${subject} ${guesser.caller}`;
    this.#callers.forget(caller);
    this.#trusted.set(caller, true);
  }
}
