/** Set reconciliation: finds out which records another node has, without fetching them. */
import { equalBytes, toHex } from '../../foundation/bytes.ts';
import { recordDigest } from '../../foundation/records/digest.ts';
import type { RecordType } from '../../foundation/records/types.ts';
import type { LookupAnswer } from './lookup.ts';
import { type FindReply, MAX_PARTS, type Part } from './messages.ts';
import type { NodeClient } from './node-client.ts';
import type { RecordStore } from './record-store.ts';
import type { ReplicationRow } from './replication-queue.ts';

/** Records that one part should hold: an answer describes at most twice as many. */
const RECORDS_PER_PART = 8;

export interface SetReconciliationDependencies {
  readonly store: RecordStore;
  readonly client: Pick<NodeClient, 'ask'>;
}

export class SetReconciliation {
  readonly #deps: SetReconciliationDependencies;

  constructor(dependencies: SetReconciliationDependencies) {
    this.#deps = dependencies;
  }

  /**
   * The digests, in hex, of those records that a node has, and of others perhaps; null where it does
   * not say.
   * @param at its answer to a request for all types of these records
   */
  async of(at: LookupAnswer, key: Uint8Array, rows: readonly ReplicationRow[]): Promise<ReadonlySet<string> | null> {
    const types = [...new Set<RecordType>(rows.map(({ type }) => type))];
    const { reply } = at;
    const own = this.#deps.store.summarize(key, { types });
    if (own.count === reply.count && equalBytes(own.digest, reply.digest))
      return new Set(rows.map(({ digest }) => toHex(digest)));
    const described = digestsOf(reply);
    return described.size >= reply.count ? described : await this.#inParts(at, key, rows, types);
  }

  async #inParts(
    at: LookupAnswer,
    key: Uint8Array,
    rows: readonly ReplicationRow[],
    types: readonly RecordType[],
  ): Promise<ReadonlySet<string> | null> {
    const held = new Set<string>();
    const of = Math.min(MAX_PARTS, Math.ceil(at.reply.count / RECORDS_PER_PART));
    for (const index of new Set(rows.map(({ part }) => part % of))) {
      const part: Part = { index, of };
      const reply = await this.#deps.client.ask(at, key, { types, wantsRecords: true, part });
      if (reply === null) return null;
      for (const digest of digestsOf(reply)) held.add(digest);
    }
    return held;
  }
}

/** What an answer carries, and what it describes. */
function digestsOf({ records, summaries }: FindReply): Set<string> {
  return new Set([...records.map(recordDigest), ...summaries.map(({ digest }) => digest)].map(toHex));
}
