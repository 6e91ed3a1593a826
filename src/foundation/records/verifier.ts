/** Verifies signed records and remembers which signatures were good: the same record comes from many nodes. */
import { hash } from 'node:crypto';
import { SvcError } from '../errors.ts';
import type { DelegationVerifier } from '../identity/delegation-verifier.ts';
import { MAX_VERIFICATIONS_PER_TURN, VerifierKeys } from '../identity/keys.ts';
import { LruCache } from '../lru-cache.ts';
import { SingleFlight } from '../single-flight.ts';
import { TurnBudget } from '../turn-budget.ts';
import { badRecordSignature, checkRecord, isSignedLocally, recordSigningInput, type SignedRecord } from './record.ts';

/** Good records that are remembered; one takes about 150 bytes. */
const MAX_REMEMBERED = 20_000;

export class RecordVerifier {
  readonly #delegations: DelegationVerifier;
  /** Who publishes one record mostly publishes another. */
  readonly #keys = new VerifierKeys();
  /** Only good signatures are kept: a stranger's bad ones cannot push them out. */
  readonly #good: LruCache<string, true>;
  /** Records that another thread looks at right now: the same one comes from several nodes at once. */
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
   * Verifies a record at a time: sizes, window, delegation, signature. Sizes and windows are looked at every time.
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
   * As `verify`, with the work on other threads where more than a few come together.
   * @param now Unix seconds
   * @throws SvcError `bad_record` or `bad_delegation` with the reason
   */
  async verifyAsync(record: SignedRecord, now: number): Promise<void> {
    if (this.#delegations.isFastToVerify(record.delegation) && this.#here.take()) return this.verify(record, now);
    checkRecord(record, now);
    const key = keyOf(record);
    // Side by side, on two threads; what is wrong with the delegation is told first.
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
   * Verifies many records side by side on other threads.
   * @param now Unix seconds
   * @returns for each record, in their order, null where it is good and otherwise why it is not
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

/** `checkRecord` has seen that the members are what these bytes say. */
function keyOf(record: SignedRecord): string {
  return hash('sha256', record.encoded, 'base64');
}
