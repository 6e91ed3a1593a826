/** Set reconciliation: finds out which records another node has, without fetching them. */
import { equalBytes, toHex } from '../../foundation/bytes.ts';
import { recordDigest } from '../../foundation/records/digest.ts';
import type { RecordType } from '../../foundation/records/types.ts';
import type { LookupAnswer } from './lookup.ts';
import { type FindReply, MAX_PARTS } from './messages.ts';
import type { NodeClient } from './node-client.ts';
import type { RecordStore } from './record-store.ts';
import type { ReplicationRow } from './replication-queue.ts';

/** Records that one part should hold: an answer describes at most twice as many. */
const RECORDS_PER_PART = 8;

interface ReconcileDependencies {
  readonly store: Pick<RecordStore, 'summarize'>;
  readonly client: Pick<NodeClient, 'ask'>;
}

/**
 * The digests, in hex, of those of our records that a node has, and of others perhaps; null where it
 * does not say.
 * @param at its answer to a request for all types of these records
 */
export async function reconcile(
  at: LookupAnswer,
  key: Uint8Array,
  rows: readonly ReplicationRow[],
  { store, client }: ReconcileDependencies,
): Promise<ReadonlySet<string> | null> {
  const types = [...new Set<RecordType>(rows.map(({ type }) => type))];
  const { count, digest } = at.reply;
  const own = store.summarize(key, { types });
  if (own.count === count && equalBytes(own.digest, digest)) return new Set(rows.map((row) => toHex(row.digest)));
  const held = digestsOf(at.reply);
  if (held.size >= count) return held;
  const of = Math.min(MAX_PARTS, Math.ceil(count / RECORDS_PER_PART));
  for (const index of new Set(rows.map(({ part }) => part % of))) {
    const reply = await client.ask(at, key, { types, wantsRecords: true, part: { index, of } });
    if (reply === null) return null;
    for (const one of digestsOf(reply)) held.add(one);
  }
  return held;
}

/** What an answer carries, and what it describes. */
function digestsOf({ records, summaries }: FindReply): Set<string> {
  return new Set([...records.map(recordDigest), ...summaries.map(({ digest }) => digest)].map(toHex));
}
