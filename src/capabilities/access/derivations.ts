/** scrypt of presented secrets, one at a time, behind a small queue that no single source or network can fill. */
import { detach } from '../../foundation/detached.ts';
import { SvcError } from '../../foundation/errors.ts';
import { type ScryptCost, scryptHash } from '../../foundation/keys/scrypt.ts';
import { Quota, type QuotaHolder } from '../../foundation/quota.ts';
import { Semaphore } from '../../foundation/semaphore.ts';

/** What the stored hashes were made with: changing it makes them all useless. 32 MiB and about 0.1 s of one core. */
export const SECRET_COST: ScryptCost = { N: 2 ** 15, r: 8, p: 1 };
/** Guesses that wait or run: over all subjects, of one caller, of the strangers of one source, and of one network. */
const MAX_WAITING = 32;
const MAX_PER_CALLER = 4;
const MAX_PER_SOURCE = 4;
const MAX_PER_NETWORK = 12;
/** Places among them that are left to callers known to hold a secret. */
const RESERVED = 8;
/** What a refused caller is told to wait, seconds. */
const BUSY_RETRY_S = 1;

/** Makes the hash of a secret as it is stored. */
export type DeriveSecret = (secret: string, salt: Uint8Array) => Promise<Uint8Array>;

/** Derivation at a cost: the same for what is stored and for what is presented. */
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
    total: MAX_WAITING,
    reserved: RESERVED,
  });
  readonly #turn = new Semaphore(1);

  constructor(derive: DeriveSecret) {
    this.#derive = derive;
  }

  /**
   * Derives a presented secret when its turn comes.
   * @throws SvcError `rate_limited` at once if the queue is full or the holder has its share in it; rejects with it if the
   *   guess has to make room for another before its turn
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
