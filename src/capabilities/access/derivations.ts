/** Runs scrypt for presented secrets, one at a time, behind a small queue that no single source or network can fill. */

import { Semaphore } from '../../foundation/concurrency.ts';
import { detach } from '../../foundation/detached.ts';
import { SvcError } from '../../foundation/errors.ts';
import { type ScryptCost, scryptHash } from '../../foundation/keys/passphrase.ts';
import { Quota, type QuotaHolder } from '../../foundation/quota.ts';

/** Cost of the stored hashes: 32 MiB and about 0.1 s of one core. A change makes all stored hashes useless. */
export const SECRET_COST: ScryptCost = { N: 2 ** 15, r: 8, p: 1 };
/** Running and queued guesses: in total, per caller, per source and per network. */
const MAX_QUEUED = 32;
const MAX_PER_CALLER = 4;
const MAX_PER_SOURCE = 4;
const MAX_PER_NETWORK = 12;
/** Queue places reserved for callers that presented a valid secret before. */
const RESERVED_FOR_TRUSTED = 8;
/** Seconds that a rejected caller should wait. */
const BUSY_RETRY_S = 1;

/** Derives the hash of a secret, as it is stored. */
export type DeriveSecret = (secret: string, salt: Uint8Array) => Promise<Uint8Array>;

/** Creates a derivation with the given cost, for stored and for presented secrets. */
export function secretDerivation(cost: ScryptCost): DeriveSecret {
  return async (secret, salt) => new Uint8Array(await scryptHash(secret.normalize('NFC'), salt, cost));
}

function busy(): SvcError {
  return new SvcError('rate_limited', { details: { retry_after_s: BUSY_RETRY_S } });
}

export class DerivationQueue {
  readonly #derive: DeriveSecret;
  readonly #places = new Quota({
    perKey: MAX_PER_CALLER,
    perSource: MAX_PER_SOURCE,
    perNetwork: MAX_PER_NETWORK,
    total: MAX_QUEUED,
    reserved: RESERVED_FOR_TRUSTED,
  });
  readonly #turn = new Semaphore(1);

  constructor(derive: DeriveSecret) {
    this.#derive = derive;
  }

  /**
   * Queues the derivation of a presented secret.
   * @throws SvcError `rate_limited` immediately if the queue is full or the caller's share is used up; rejects with it
   *   if the guess is evicted while queued
   */
  run(holder: QuotaHolder, secret: string, salt: Uint8Array): Promise<Uint8Array> {
    const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>();
    let state: 'waiting' | 'running' | 'evicted' = 'waiting';
    const onEvict = (): void => {
      if (state !== 'waiting') return;
      state = 'evicted';
      reject(busy());
    };
    const share = this.#places.take(holder, { onEvict });
    if (share === null) throw busy();
    const turn = async (): Promise<void> => {
      if (state === 'evicted') return;
      state = 'running';
      await this.#derive(secret, salt).then(resolve, reject);
    };
    detach(this.#turn.run(turn).finally(() => share.release()));
    return promise;
  }
}
