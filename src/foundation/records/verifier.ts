/** Verifies signed records and caches valid signatures, because the same record arrives from many nodes. */
import { hash } from 'node:crypto';
import { SingleFlight, TurnBudget } from '../concurrency.ts';
import { SvcError } from '../errors.ts';
import type { DelegationVerifier } from '../identity/delegation-verifier.ts';
import { MAX_VERIFICATIONS_PER_TURN, VerifierKeys } from '../identity/keys.ts';
import { LruCache } from '../lru-cache.ts';
import { badRecordSignature, checkRecord, isSignedLocally, recordSigningInput, type SignedRecord } from './record.ts';

/** Maximum number of cached valid records, about 150 bytes each. */
const MAX_REMEMBERED = 20_000;

export class RecordVerifier {
  readonly #delegations: DelegationVerifier;
  /** Publishers of one record usually publish others. */
  readonly #keys = new VerifierKeys();
  /** Contains only valid signatures, so that invalid ones of strangers cannot evict them. */
  readonly #good: LruCache<string, true>;
  /** Records that another thread is verifying; the same record often arrives from several nodes at the same time. */
  readonly #checks = new SingleFlight<void>();
  readonly #here = new TurnBudget(MAX_VERIFICATIONS_PER_TURN);

  constructor(
    { maxEntries = MAX_REMEMBERED }: { readonly maxEntries?: number },
    { delegations }: { readonly delegations: DelegationVerifier },
  ) {
    this.#good = new LruCache({ maxEntries });
    this.#delegations = delegations;
  }

  /**
   * Verifies a record at a given time: sizes, time window, delegation, signature. Sizes and time windows are checked on
   * every call.
   * @param now Unix seconds
   * @throws SvcError `bad_record` or `bad_delegation` with the reason
   */
  verify(record: SignedRecord, now: number): void {
    // protocol.md, steps 3 to 6
    checkRecord(record, now);
    this.#delegations.verify(record.delegation, now);
    if (isSignedLocally(record)) return;
    const key = keyOf(record);
    if (this.#good.get(key) === true) return;
    if (!this.#keys.verifySync(record.delegation.operationalKey, recordSigningInput(record), record.signature))
      throw badRecordSignature();
    this.#good.set(key, true);
  }

  /**
   * Like `verify`, but uses other threads if many records arrive at the same time.
   * @param now Unix seconds
   * @throws SvcError `bad_record` or `bad_delegation` with the reason
   */
  async verifyAsync(record: SignedRecord, now: number): Promise<void> {
    if (this.#delegations.isFastToVerify(record.delegation) && this.#here.take()) return this.verify(record, now);
    checkRecord(record, now);
    const key = keyOf(record);
    // Verifies both concurrently on two threads. An invalid delegation is reported first.
    const isGood = isSignedLocally(record) || this.#good.get(key) === true;
    const check = isGood ? undefined : this.#checks.run(key, () => this.#check(key, record));
    check?.catch(() => {});
    await this.#delegations.verifyAsync(record.delegation, now);
    await check;
  }

  async #check(key: string, record: SignedRecord): Promise<void> {
    if (!(await this.#keys.verify(record.delegation.operationalKey, recordSigningInput(record), record.signature)))
      throw badRecordSignature();
    this.#good.set(key, true);
  }

  /**
   * Verifies many records concurrently on other threads.
   * @param now Unix seconds
   * @returns for each record, in order: null if it is valid, otherwise the error
   */
  verifyAll(records: readonly SignedRecord[], now: number): Promise<readonly (SvcError | null)[]> {
    return Promise.all(
      records.map(async (record) => {
        try {
          await this.verifyAsync(record, now);
          return null;
        } catch (error) {
          if (error instanceof SvcError) return error;
          throw error;
        }
      }),
    );
  }
}

/** `checkRecord` has verified that the members match these bytes. */
function keyOf(record: SignedRecord): string {
  return hash('sha256', record.encoded, 'base64');
}
