/**
 * Turns presented secrets into hashes that the rules can compare. Hashes are remembered, so that a
 * warm call costs an HMAC and a guess that is known to be wrong costs and counts nothing more.
 */
import { createHmac, randomBytes } from 'node:crypto';
import type { Clock } from '../../foundation/clock.ts';
import { MAX_SECRET_CHARS } from '../../foundation/domain/access.ts';
import { SvcError } from '../../foundation/errors.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import { SingleFlight } from '../../foundation/single-flight.ts';
import { DerivationQueue, type DeriveSecret } from './derivations.ts';
import { type Guesser, GuessLimits } from './guess-limits.ts';

/** Remembered hashes of right secrets, and as many of wrong ones. */
const MAX_REMEMBERED = 4096;

/** Asks the rules of this moment whether a hash opens. */
type Opens = (hash: Uint8Array) => boolean;

export class SecretCheck {
  readonly #limits: GuessLimits;
  readonly #queue: DerivationQueue;
  /** Keys the memory of hashes: it never leaves this process, so neither do guesses tell about secrets. */
  readonly #processKey = randomBytes(32);
  readonly #right = new LruCache<string, Uint8Array>({ maxEntries: MAX_REMEMBERED });
  readonly #wrong = new LruCache<string, Uint8Array>({ maxEntries: MAX_REMEMBERED });
  readonly #guesses = new SingleFlight<Uint8Array>();

  constructor(clock: Clock, derive: DeriveSecret) {
    this.#limits = new GuessLimits(clock);
    this.#queue = new DerivationQueue(derive);
  }

  /**
   * True where the presented secret opens; `opens` is asked again after every wait.
   * @throws SvcError `rate_limited` with `retry_after_s` for who guessed too often
   */
  async check(subject: string, salt: Uint8Array, secret: string, guesser: Guesser, opens: Opens): Promise<boolean> {
    if (secret.length > MAX_SECRET_CHARS) return false;
    // An agent that was deleted and is back has another salt: what was derived with the old one opens nothing.
    const id = createHmac('sha256', this.#processKey).update(salt).update(`${subject}\0${secret}`).digest('base64');
    const known = this.#right.get(id) ?? this.#wrong.get(id);
    if (known !== undefined && !opens(known)) return false;
    // Asked before a right secret is let in: else who is locked out could go on guessing those in memory.
    const waitMs = this.#limits.wait(subject, guesser);
    if (waitMs > 0) throw new SvcError('rate_limited', { details: { retry_after_s: Math.ceil(waitMs / 1000) } });
    if (known !== undefined) {
      this.#limits.trust(subject, guesser);
      return true;
    }
    // One derivation, and one guess counted, for all who present the same secret at once.
    return opens(await this.#guesses.run(id, () => this.#guess(subject, salt, secret, id, guesser, opens)));
  }

  async #guess(
    subject: string,
    salt: Uint8Array,
    secret: string,
    id: string,
    guesser: Guesser,
    opens: Opens,
  ): Promise<Uint8Array> {
    const refund = this.#limits.charge(subject, guesser);
    let hash: Uint8Array;
    const { source, node, caller } = guesser;
    try {
      const named = source === null || this.#limits.trusts(subject, guesser);
      hash = await this.#queue.run({ key: caller, node: node ?? caller, source, named }, secret, salt);
    } catch (error) {
      refund();
      throw error;
    }
    if (opens(hash)) {
      refund();
      this.#limits.trust(subject, guesser);
      this.#right.set(id, hash);
    } else this.#wrong.set(id, hash);
    return hash;
  }
}
