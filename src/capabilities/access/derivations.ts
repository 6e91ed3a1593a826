/** scrypt of presented secrets, one at a time, behind a small queue that no single source can fill. */
import { SvcError } from '../../foundation/errors.ts';
import { type ScryptCost, scryptHash } from '../../foundation/keys/scrypt.ts';
import { Semaphore } from '../../foundation/semaphore.ts';
import { Tally } from '../../foundation/tally.ts';

/** What the stored hashes were made with: changing it makes them all useless. 32 MiB and about 0.1 s of one core. */
export const SECRET_COST: ScryptCost = { N: 2 ** 15, r: 8, p: 1 };
/** Guesses that wait for their turn, over all subjects. */
const MAX_WAITING = 32;
/** Guesses from one source that wait or run. */
const MAX_PER_SOURCE = 4;
/** What a refused caller is told to wait, seconds. */
const BUSY_RETRY_S = 1;

/** Makes the hash of a secret as it is stored. */
export type DeriveSecret = (secret: string, salt: Uint8Array) => Promise<Uint8Array>;

/** Derivation at a cost: the same for what is stored and for what is presented. */
export function secretDerivation(cost: ScryptCost): DeriveSecret {
  return async (secret, salt) => new Uint8Array(await scryptHash(secret.normalize('NFC'), salt, cost));
}

export class DerivationQueue {
  readonly #derive: DeriveSecret;
  readonly #ofSource = new Tally();
  readonly #turn = new Semaphore(1);

  constructor(derive: DeriveSecret) {
    this.#derive = derive;
  }

  /**
   * Derives a presented secret when its turn comes.
   * @param source who is served fairly against whom: an address or a node key
   * @throws SvcError `rate_limited` at once where the queue is full or the source has its share in it
   */
  run(source: string, secret: string, salt: Uint8Array): Promise<Uint8Array> {
    if (this.#ofSource.total >= MAX_WAITING || this.#ofSource.of(source) >= MAX_PER_SOURCE)
      throw new SvcError('rate_limited', { details: { retry_after_s: BUSY_RETRY_S } });
    this.#ofSource.add(source);
    return this.#turn.run(() => this.#derive(secret, salt)).finally(() => this.#ofSource.add(source, -1));
  }
}
