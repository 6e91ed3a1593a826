/**
 * Records on their way to one node: those that are handed over at the same moment go in one datagram, where the node says
 * that it takes several. In a network that is no larger than the nodes which keep a record, all records of a publication
 * go to the same nodes, and what they cost is datagrams.
 */
import { equalBytes } from '../../foundation/bytes.ts';
import { detach } from '../../foundation/detached.ts';
import type { SignedRecord } from '../../foundation/records/record.ts';
import type { LookupAnswer } from './lookup.ts';
import type { StoreCode, StoreReply } from './messages.ts';
import { fitting } from './several-messages.ts';

interface StoreBatchesDependencies {
  /** Hands one record to a node; null where it gives no valid answer. */
  readonly one: (at: LookupAnswer, key: Uint8Array, record: SignedRecord) => Promise<StoreReply | null>;
  /** Hands over as many as `fitting` said; what became of each, or null where there is no valid answer. */
  readonly several: (
    at: LookupAnswer,
    key: Uint8Array,
    records: readonly SignedRecord[],
  ) => Promise<readonly StoreCode[] | null>;
}

interface Waiting {
  readonly record: SignedRecord;
  readonly resolve: (reply: StoreReply | null) => void;
}

interface Batch {
  readonly key: Uint8Array;
  readonly waiting: Waiting[];
}

export class StoreBatches {
  readonly #deps: StoreBatchesDependencies;
  readonly #batches = new Map<LookupAnswer, Batch>();

  constructor(dependencies: StoreBatchesDependencies) {
    this.#deps = dependencies;
  }

  /** Hands a record that a datagram holds to a node; null where it gives no valid answer. */
  store(at: LookupAnswer, key: Uint8Array, record: SignedRecord): Promise<StoreReply | null> {
    const begun = this.#batches.get(at);
    if (at.reply.takesSeveral !== true || (begun !== undefined && !equalBytes(begun.key, key)))
      return this.#deps.one(at, key, record);
    const batch = begun ?? { key, waiting: [] };
    if (begun === undefined) {
      this.#batches.set(at, batch);
      // As soon as all that is handed over now has been.
      process.nextTick(() => this.#send(at, batch));
    }
    const { promise, resolve } = Promise.withResolvers<StoreReply | null>();
    batch.waiting.push({ record, resolve });
    return promise;
  }

  #send(at: LookupAnswer, { key, waiting }: Batch): void {
    this.#batches.delete(at);
    while (waiting.length > 0) {
      const together = waiting.splice(0, fitting(waiting.map(({ record }) => record)));
      detach(this.#sendTogether(at, key, together));
    }
  }

  async #sendTogether(at: LookupAnswer, key: Uint8Array, together: readonly Waiting[]): Promise<void> {
    const { one, several } = this.#deps;
    const records = together.map(({ record }) => record);
    const codes = records.length === 1 ? [undefined] : await several(at, key, records);
    const isValid = codes?.length === records.length;
    for (const [i, { record, resolve }] of together.entries()) {
      if (!isValid) resolve(null);
      else if (codes[i] === 'kept') resolve({ code: 'kept' });
      // Why not, and what it holds instead, is told of one record.
      else resolve(await one(at, key, record));
    }
  }
}
