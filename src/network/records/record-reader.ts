/** Reads the newest record of a type, or all records of a key, from the nodes that have them. */
import { equalBytes, toHex } from '../../foundation/bytes.ts';
import { type Clock, unixSeconds } from '../../foundation/clock.ts';
import { abortable, abortError } from '../../foundation/deadline.ts';
import { detach } from '../../foundation/detached.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import { addDigest } from '../../foundation/records/digest.ts';
import { belongsUnderKey } from '../../foundation/records/keys.ts';
import { expiresAt, type SignedRecord } from '../../foundation/records/record.ts';
import { MAX_DATAGRAM_RECORD_BYTES, RECORD_DIGEST_BYTES, type RecordType } from '../../foundation/records/types.ts';
import type { RecordVerifier } from '../../foundation/records/verifier.ts';
import { awakeTimeout } from '../../foundation/stall.ts';
import { type ClosestNodes, type NodeAnswer, STORE_WIDTH } from './closest-nodes.ts';
import { isOfMany } from './key-rows.ts';
import { type FindReply, PAGE_BYTES } from './messages.ts';
import type { NodeClient } from './node-client.ts';
import { type Claim, Quorum } from './quorum.ts';
import type { Collection, RecordSetFetcher } from './record-set-fetcher.ts';
import type { RecordStore } from './record-store.ts';
import { CLOSEST_HEARD, type Searches } from './searches.ts';
import type { GetOptions, ListOptions } from './types.ts';

/**
 * Nodes that one read repairs, the pause until the same record is repaired again, and the minimum remaining life of the
 * record.
 */
const MAX_REPAIRS = 3;
const REPAIR_PAUSE_MS = 60_000;
const MIN_REPAIR_LIFE_S = 60;
const MAX_REPAIRS_REMEMBERED = 2000;

/** Read repair: sends a record that was read to nodes near its key that lack it or have an older version. */
export class ReadRepair {
  readonly #clock: Clock;
  readonly #client: Pick<NodeClient, 'store'>;
  readonly #repaired: LruCache<string, true>;

  constructor(clock: Clock, client: Pick<NodeClient, 'store'>) {
    this.#clock = clock;
    this.#client = client;
    this.#repaired = new LruCache({ maxEntries: MAX_REPAIRS_REMEMBERED, ttlMs: REPAIR_PAUSE_MS }, { clock });
  }

  /** Call this with the record that was read, and the nodes that have it. */
  onRead(key: Uint8Array, record: SignedRecord, search: ClosestNodes, holders: readonly NodeAnswer[]): void {
    // protocol-dht.md, step 13
    const name = `${toHex(key)}.${record.type}`;
    const life = expiresAt(record) - unixSeconds(this.#clock);
    if (record.encoded.length > MAX_DATAGRAM_RECORD_BYTES || life < MIN_REPAIR_LIFE_S || this.#repaired.has(name))
      return;
    const lacking = search
      .closest(search.beyond(STORE_WIDTH))
      .filter((answer) => answer.token !== null && !holders.includes(answer));
    if (lacking.length === 0) return;
    this.#repaired.set(name, true);
    for (const answer of lacking.slice(0, MAX_REPAIRS)) detach(this.#client.store(answer, key, record));
  }
}

/** Default time limit of a read, in ms. */
const READ_TIMEOUT_MS = 5000;
/** Time limit for one record that does not fit a datagram, in ms. */
const BODY_TIMEOUT_MS = 2000;
/** Voters that must have the same newest record before a read ends. */
const AGREEMENT = 3;
/** Versions of one record that are fetched concurrently, and nodes that are tried for each version. */
const MAX_VERSIONS = 3;
const MAX_HOLDERS = 3;

const NOTHING: ReadonlySet<string> = new Set();

export class RecordReader {
  readonly #clock: Clock;
  readonly #verifier: RecordVerifier;
  readonly #store: RecordStore;
  readonly #searches: Pick<Searches, 'forRead'>;
  readonly #fetcher: RecordSetFetcher;
  readonly #readRepair: Pick<ReadRepair, 'onRead'>;

  constructor(
    clock: Clock,
    verifier: RecordVerifier,
    store: RecordStore,
    searches: Pick<Searches, 'forRead'>,
    fetcher: RecordSetFetcher,
    readRepair: Pick<ReadRepair, 'onRead'>,
  ) {
    this.#clock = clock;
    this.#verifier = verifier;
    this.#store = store;
    this.#searches = searches;
    this.#fetcher = fetcher;
    this.#readRepair = readRepair;
  }

  /**
   * The newest valid record of one type; null if no node has one.
   * @param shared a search around the key for records of the type, which continues after this read
   * @throws SvcError `cancelled`
   */
  async get(
    key: Uint8Array,
    type: RecordType,
    options: GetOptions,
    shared: ClosestNodes | null = null,
  ): Promise<SignedRecord | null> {
    using limit = awakeTimeout(this.#clock, options.timeoutMs ?? READ_TIMEOUT_MS, options.signal);
    const slot = String(type);
    const quorum = this.#newQuorum(key, [type]);
    let isTold = false;
    const tell = (): void => {
      const [first] = isTold ? [] : quorum.records();
      if (first === undefined) return;
      isTold = true;
      options.onFirst?.(first);
    };
    quorum.add(this.#store.page(key, { types: [type] }, 0, 0).records, [], null);
    tell();
    const enough = Promise.withResolvers<void>();
    const hear = (answer: NodeAnswer): void => {
      // protocol-dht.md, step 11
      quorum.add(answer.reply.records, answer.reply.summaries, answer);
      tell();
      if (options.thorough === true || quorum.agreement(slot) < AGREEMENT) return;
      // A few fast nodes must not impose an older version.
      if (search.within(CLOSEST_HEARD).length < CLOSEST_HEARD || search.looksDense) return;
      if (shared === null) search.stop();
      enough.resolve();
    };
    const request = { types: [type], wantsRecords: true };
    const search = shared ?? this.#searches.forRead(key, request);
    for (const answer of search.answers) hear(answer);
    const leave = search.onAnswer(hear);
    try {
      const ended = Promise.race([search.finished, enough.promise]);
      await this.#finish(ended, shared === null ? search : null, limit.signal, options.signal);
    } finally {
      leave();
    }
    options.onHeard?.(search.isHeard);
    const newest = await this.#redeem(quorum, slot, key, limit.signal);
    if (newest === null) return null;
    // The owner of a shared search is about to store a newer record.
    if (shared === null) this.#readRepair.onRead(key, newest.record, search, newest.claim.holders);
    return newest.record;
  }

  /**
   * The newest version of each record under a key. It waits for all of the closest nodes: everyone may store records
   * there, so a few agreeing nodes could hide records of others.
   * @throws SvcError `cancelled`
   */
  async list(key: Uint8Array, types: readonly RecordType[], options: ListOptions): Promise<readonly SignedRecord[]> {
    // protocol-dht.md, step 12
    using limit = awakeTimeout(this.#clock, options.timeoutMs ?? READ_TIMEOUT_MS, options.signal);
    const answers: NodeAnswer[] = [];
    const quorum = this.#newQuorum(key, types);
    const { known = NOTHING, limit: max } = options;
    const wanted = { key, types, answers, quorum, max, known };
    const search = this.#searches.forRead(key, { types, wantsRecords: true }, options.brief);
    let { onFirst } = options;
    const tell = (found: readonly Uint8Array[], answer: NodeAnswer | null): void => {
      if (onFirst === undefined) return;
      const early = this.#newQuorum(key, types);
      early.add(found, [], answer);
      const records = early.records();
      for (const record of records) onFirst(record);
      if (records.length > 0) onFirst = undefined;
    };
    if (onFirst !== undefined) tell(this.#store.page(key, { types }, 0, PAGE_BYTES).records, null);
    search.onAnswer((answer) => {
      if (answer.reply.count === 0) return;
      answers.push(answer);
      tell(answer.reply.records, answer);
      quorum.add([], answer.reply.summaries, answer);
    });
    await this.#finish(search.finished, search, limit.signal, options.signal);
    search.stop();
    options.onHeard?.(search.isHeard);
    await this.#takeOwn(wanted);
    if (answers.some(({ reply }) => hasMore(reply, known))) await this.#fetcher.collect(wanted, limit.signal);
    for (const answer of answers) await this.#fetcher.take(answer.reply.records, answer, wanted);
    await Promise.all(quorum.slots.map((slot) => this.#redeem(quorum, slot, key, limit.signal)));
    if (options.signal?.aborted === true) throw abortError(options.signal);
    return quorum
      .records()
      .sort((a, b) => b.timestamp - a.timestamp)
      .slice(0, options.limit);
  }

  #newQuorum(key: Uint8Array, types: readonly RecordType[]): Quorum {
    return new Quorum(types, (record) => {
      if (!belongsUnderKey(record, key)) return false;
      this.#verifier.verify(record, unixSeconds(this.#clock));
      return true;
    });
  }

  /** Adds everything in our own store. */
  async #takeOwn(wanted: Collection): Promise<void> {
    let from = 0;
    do {
      const page = this.#store.page(wanted.key, wanted, from, PAGE_BYTES);
      await this.#fetcher.take(page.records, null, wanted);
      from = page.next;
    } while (from !== 0);
  }

  /** @param own the search if it is not shared; it ends with the time limit */
  async #finish(
    ended: Promise<void>,
    own: ClosestNodes | null,
    limit: AbortSignal,
    outer: AbortSignal | undefined,
  ): Promise<void> {
    try {
      await abortable(ended, limit);
    } catch (error) {
      own?.stop();
      if (outer?.aborted === true) throw error;
    }
  }

  /** The newest version of a record that can be fetched and verified. */
  async #redeem(
    quorum: Quorum,
    slot: string,
    key: Uint8Array,
    signal: AbortSignal,
  ): Promise<{ readonly record: SignedRecord; readonly claim: Claim } | null> {
    const versions = quorum.versions(slot);
    const worth = [...worthFetching(versions)];
    const fetches = new Map(worth.map((claim) => [claim, this.#fetch(quorum, claim, key, signal)]));
    for (const claim of versions) {
      await fetches.get(claim);
      if (claim.record !== null) return { record: claim.record, claim };
    }
    return null;
  }

  async #fetch(quorum: Quorum, claim: Claim, key: Uint8Array, signal: AbortSignal): Promise<void> {
    for (const holder of claim.holders.slice(0, MAX_HOLDERS)) {
      if (claim.record !== null || signal.aborted) return;
      using limit = awakeTimeout(this.#clock, BODY_TIMEOUT_MS, signal);
      const page = await this.#fetcher.page(holder, { key, types: [claim.type] }, 0, limit.signal);
      for (const encoded of page?.records ?? []) quorum.fulfil(encoded);
    }
  }
}

/**
 * The newest versions, and the versions that most hosts have, even if newer ones are claimed. On a tie the older
 * version wins.
 */
function worthFetching(versions: readonly Claim[]): ReadonlySet<Claim> {
  const byHosts = versions.toReversed().sort((a, b) => b.voters.size - a.voters.size);
  return new Set([...versions.slice(0, MAX_VERSIONS), ...byHosts.slice(0, MAX_VERSIONS)]);
}

/** True if a node has records of many publishers that it did not send and the reader lacks. */
function hasMore({ count, digest, records, summaries }: FindReply, known: ReadonlySet<string>): boolean {
  if (summaries.some((summary) => isOfMany(summary.type) && !known.has(toHex(summary.digest)))) return true;
  if (count <= records.length + summaries.length) return false;
  return count !== known.size || !equalBytes(digest, sumOf(known));
}

/** The XOR of digests, as nodes state it. */
function sumOf(known: ReadonlySet<string>): Uint8Array {
  const sum = new Uint8Array(RECORD_DIGEST_BYTES);
  for (const digest of known) addDigest(sum, Buffer.from(digest, 'hex'));
  return sum;
}
