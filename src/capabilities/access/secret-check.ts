/**
 * Hashes presented secrets and compares them with the rules. Hashes are cached: a repeated call costs one HMAC, and a
 * secret that is known to be wrong is not derived or counted again.
 */
import { createHmac, randomBytes } from 'node:crypto';
import type { Clock } from '../../foundation/clock.ts';
import { SingleFlight } from '../../foundation/concurrency.ts';
import { MAX_SECRET_CHARS } from '../../foundation/domain/access.ts';
import { SvcError } from '../../foundation/errors.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import { DerivationQueue, type DeriveSecret } from './derivations.ts';
import { type Guesser, GuessLimits } from './guess-limits.ts';

/** Cached hashes of valid secrets, and as many of wrong ones. */
const MAX_CACHED = 4096;

/** Checks a hash against the current rules. */
type SecretMatcher = (hash: Uint8Array) => boolean;

export class SecretCheck {
  readonly #limits: GuessLimits;
  readonly #queue: DerivationQueue;
  /** Key of the cached hashes. It never leaves this process, so the cache does not help to guess secrets. */
  readonly #processKey = randomBytes(32);
  readonly #right = new LruCache<string, Uint8Array>({ maxEntries: MAX_CACHED });
  readonly #wrong = new LruCache<string, Uint8Array>({ maxEntries: MAX_CACHED });
  readonly #guesses = new SingleFlight<Uint8Array>();

  constructor(clock: Clock, derive: DeriveSecret) {
    this.#limits = new GuessLimits(clock);
    this.#queue = new DerivationQueue(derive);
  }

  /**
   * True if the secret is valid. `matches` is called again after every wait.
   * @throws SvcError `rate_limited` with `retry_after_s` after too many wrong guesses
   */
  async check(
    subject: string,
    salt: Uint8Array,
    secret: string,
    guesser: Guesser,
    matches: SecretMatcher,
  ): Promise<boolean> {
    if (secret.length > MAX_SECRET_CHARS) return false;
    // An agent that is deleted and registered again gets another salt, which invalidates old hashes.
    const id = createHmac('sha256', this.#processKey).update(salt).update(`${subject}\0${secret}`).digest('base64');
    const known = this.#right.get(id) ?? this.#wrong.get(id);
    if (known !== undefined && !matches(known)) return false;
    // Checked before a valid secret is accepted. Otherwise a locked caller could keep guessing the cached secrets.
    const waitMs = this.#limits.wait(subject, guesser);
    if (waitMs > 0) throw new SvcError('rate_limited', { details: { retry_after_s: Math.ceil(waitMs / 1000) } });
    if (known !== undefined) {
      this.#limits.trust(subject, guesser);
      return true;
    }
    // Concurrent requests with the same secret share one derivation and count as one guess.
    return matches(await this.#guesses.run(id, () => this.#guess(subject, salt, secret, id, guesser, matches)));
  }

  async #guess(
    subject: string,
    salt: Uint8Array,
    secret: string,
    id: string,
    guesser: Guesser,
    matches: SecretMatcher,
  ): Promise<Uint8Array> {
    const refund = this.#limits.charge(subject, guesser);
    let hash: Uint8Array;
    const { source, node, caller } = guesser;
    try {
      const named = source === null || this.#limits.isTrusted(subject, guesser);
      hash = await this.#queue.run({ key: caller, node: node ?? caller, source, named }, secret, salt);
    } catch (error) {
      refund();
      throw error;
    }
    if (matches(hash)) {
      refund();
      this.#limits.trust(subject, guesser);
      this.#right.set(id, hash);
    } else this.#wrong.set(id, hash);
    return hash;
  }
}
