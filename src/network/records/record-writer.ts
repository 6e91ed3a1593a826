/** Sends records of this node to the nodes closest to their keys, and removes notes from them. */
import { formatAddress } from '../../foundation/address.ts';
import { toHex } from '../../foundation/bytes.ts';
import { type Clock, unixSeconds } from '../../foundation/clock.ts';
import { abortable } from '../../foundation/deadline.ts';
import { detach } from '../../foundation/detached.ts';
import { REPLICAS } from '../../foundation/domain/directory.ts';
import { SvcError } from '../../foundation/errors.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import { belongsUnderKey } from '../../foundation/records/keys.ts';
import { compareFreshness, type SignedRecord } from '../../foundation/records/record.ts';
import type { RecordVerifier } from '../../foundation/records/verifier.ts';
import { awakeClock, awakeTimeout } from '../../foundation/stall.ts';
import { GroupCommit } from '../../foundation/store/group-commit.ts';
import { BEYOND, type ClosestNodes, type NodeAnswer, STORE_WIDTH, widthFor } from './closest-nodes.ts';
import type { DhtEngine } from './engine.ts';
import { encodeRemoveRequest, MAX_REMOVALS } from './messages.ts';
import type { NodeClient, StoreVerdict } from './node-client.ts';
import { RECORDS_PER_COMMIT, type RecordStore } from './record-store.ts';
import { SEARCH_WIDTH, type Searches } from './searches.ts';
import type { NoteRemoval, PutOptions, PutResult } from './types.ts';

/** Time limit of a publication, in ms. */
const PUT_TIMEOUT_MS = 10_000;
/** How long a write waits for one node once another node keeps the record, in ms. */
const STORE_PATIENCE_MS = 1000;
/** Keys whose last nodes are remembered. */
const MAX_KNOWN_KEYS = 256;
/** How long they are remembered, in ms. Most of their tokens hold for longer. */
export const KNOWN_NODES_MS = 240_000;
/** Minimum of acknowledgements that end a write early, where half of the nodes near a key are enough. */
export const FEWEST_REPLICAS = 4;
/** The publisher whose share of the store our own records use. */
const OWN_PUBLISHER = 'self';

/** Sends one record to the nodes of a search, each as soon as it is among the closest, until enough nodes keep it. */
class PutOperation {
  readonly #clock: Clock;
  readonly #search: ClosestNodes;
  /** Number of closest nodes that get the record. */
  readonly #width: number;
  readonly #store: (at: NodeAnswer) => Promise<StoreVerdict | null>;
  readonly #options: PutOptions;
  readonly #onKeepers: (keepers: readonly NodeAnswer[]) => void;
  /** Addresses of nodes. */
  readonly #given = new Set<string>();
  readonly #refused: Record<string, number> = {};
  readonly #done = Promise.withResolvers<void>();
  /** Keys of the nodes that keep it. A node that answers at several addresses counts once. */
  readonly #keepers = new Set<string>();
  #newer: SignedRecord | null = null;
  /** Nodes without a verdict, and nodes that took too long. */
  readonly #waiting = new Set<NodeAnswer>();
  readonly #overdue = new Set<NodeAnswer>();
  /** Whether this node is writing its own copy. */
  #isKeeping = false;
  #isHere = false;
  #searched = false;
  #isAnswered = false;
  #isWhole = false;

  /**
   * @param store sends the record to a node; resolves to null without an answer, or if the node refuses the token
   * @param onKeepers called at the end with the nodes that keep the record, with their newest tokens; with none if they
   *   may collude
   */
  constructor(
    clock: Clock,
    search: ClosestNodes,
    width: number,
    store: (at: NodeAnswer) => Promise<StoreVerdict | null>,
    options: PutOptions,
    onKeepers: (keepers: readonly NodeAnswer[]) => void,
  ) {
    this.#onKeepers = onKeepers;
    this.#clock = awakeClock(clock);
    this.#search = search;
    this.#width = width;
    this.#store = store;
    this.#options = options;
  }

  /**
   * @param known nodes that kept an earlier record. They get this one before the search has found them again.
   * @param keep stores the copy of this node; resolves to false without room. The result rejects if it does.
   */
  async run(known: readonly NodeAnswer[], keep: (() => Promise<boolean>) | null): Promise<PutResult> {
    if (keep !== null) this.#keepHere(keep);
    for (const one of known) this.#give(one);
    this.#search.onAnswer(() => this.#advance());
    this.#advance();
    detach(
      this.#search.finished.then(() => {
        this.#advance();
        this.#searched = true;
        this.#settle();
      }),
    );
    await this.#done.promise;
    return this.#result();
  }

  #keepHere(keep: () => Promise<boolean>): void {
    this.#isKeeping = true;
    keep().then(
      (isKept) => {
        this.#isHere = isKept;
        this.#isKeeping = false;
        this.#settle();
      },
      (error: unknown) => this.#done.reject(error),
    );
  }

  /** The copy of this node is not a replica, because it is lost with the node. */
  #result(): PutResult {
    const here: Pick<PutResult, 'isHere'> = this.#isHere ? { isHere: true } : {};
    return { replicas: this.#keepers.size, newer: this.#newer, refused: { ...this.#refused }, ...here };
  }

  /** Sends the record to every node that has answered and is among the closest by now. */
  #advance(): void {
    // protocol-dht.md, step 10
    for (const answer of this.#search.within(this.#width)) {
      if (this.#given.size >= 2 * this.#search.beyond(this.#width)) return;
      if (answer.token !== null && !this.#given.has(formatAddress(answer.address))) this.#give(answer);
    }
  }

  /** Ends the write with the acknowledgements so far. */
  stop(): void {
    this.#isAnswered = true;
    this.#done.resolve();
  }

  #give(answer: NodeAnswer): void {
    const name = formatAddress(answer.address);
    this.#given.add(name);
    this.#waiting.add(answer);
    const timer = this.#clock.after(STORE_PATIENCE_MS, () => {
      this.#overdue.add(answer);
      this.#settle();
    });
    detach(
      this.#store(answer).then((verdict) => {
        timer.cancel();
        this.#waiting.delete(answer);
        if (verdict !== null) this.#count(verdict, answer);
        else if (!this.#search.answers.includes(answer)) {
          // Its token may be too old. The search brings a new one.
          this.#given.delete(name);
          this.#advance();
        }
        this.#settle();
      }),
    );
  }

  #count({ code, newer }: StoreVerdict, { reply }: NodeAnswer): void {
    if (code === 'kept') {
      this.#keepers.add(toHex(reply.nodeKey));
      this.#options.onKept?.(this.#keepers.size);
      return;
    }
    this.#refused[code] = (this.#refused[code] ?? 0) + 1;
    if (newer !== null && (this.#newer === null || compareFreshness(newer, this.#newer) > 0)) this.#newer = newer;
  }

  #settle(): void {
    if (this.#isWhole) return;
    const kept = this.#keepers.size;
    const awaited = kept > 0 ? this.#waiting.difference(this.#overdue).size : this.#waiting.size;
    this.#isWhole = this.#searched && awaited === 0 && !this.#isKeeping;
    if (this.#isWhole) {
      const near = this.#search.looksDense ? [] : this.#search.within(this.#width);
      this.#onKeepers(near.filter(({ token, reply }) => token !== null && this.#keepers.has(toHex(reply.nodeKey))));
    }
    if (this.#isAnswered) {
      if (this.#isWhole) this.#options.onWhole?.(this.#result());
    } else if (this.#isWhole || kept >= this.#enough()) {
      this.#isAnswered = true;
      this.#done.resolve();
    }
  }

  /** How many nodes must keep the record before the write is answered. */
  #enough(): number {
    // Too dense nodes may collude, so other nodes must keep it as well.
    if (this.#search.looksDense) return REPLICAS * BEYOND;
    if (!this.#searched || this.#options.onWhole === undefined) return REPLICAS;
    // Readers in a small network hear all of its nodes, so half of the nodes are enough.
    const half = Math.ceil(this.#search.within(this.#width).length / 2);
    return Math.min(REPLICAS, Math.max(FEWEST_REPLICAS, half));
  }
}

/** A node without the rest of its answer. */
function slim({ reply, ...at }: NodeAnswer): NodeAnswer {
  return { ...at, reply: { ...reply, nodes: [], records: [], summaries: [] } };
}

export class RecordWriter {
  readonly #clock: Clock;
  readonly #verifier: RecordVerifier;
  readonly #store: RecordStore;
  readonly #engine: Pick<DhtEngine, 'ownAddress' | 'closerThanSelf' | 'peerCount'>;
  readonly #searches: Pick<Searches, 'forWrite'>;
  readonly #client: Pick<NodeClient, 'store' | 'removeNotes'>;
  /** Own records that are published together are stored in one transaction. */
  readonly #commits: GroupCommit;
  /** The nodes that kept the last record of a key. */
  readonly #known: LruCache<string, readonly NodeAnswer[]>;

  constructor(
    clock: Clock,
    verifier: RecordVerifier,
    store: RecordStore,
    engine: Pick<DhtEngine, 'ownAddress' | 'closerThanSelf' | 'peerCount'>,
    searches: Pick<Searches, 'forWrite'>,
    client: Pick<NodeClient, 'store' | 'removeNotes'>,
  ) {
    this.#clock = clock;
    this.#verifier = verifier;
    this.#store = store;
    this.#engine = engine;
    this.#searches = searches;
    this.#client = client;
    this.#known = new LruCache({ maxEntries: MAX_KNOWN_KEYS, ttlMs: KNOWN_NODES_MS }, { clock });
    this.#commits = new GroupCommit((work) => store.transaction(work), { maxWrites: RECORDS_PER_COMMIT });
  }

  /**
   * As `RecordNetwork.put`.
   * @param shared a recent search around the key, whose nodes still accept our tokens
   * @throws SvcError `bad_record`, `cancelled`, and as `RecordVerifier.verifyAsync`
   */
  async put(
    key: Uint8Array,
    record: SignedRecord,
    options: PutOptions = {},
    shared: ClosestNodes | null = null,
  ): Promise<PutResult> {
    if (!belongsUnderKey(record, key))
      throw new SvcError('bad_record', { message: 'The record belongs under another key.' });
    await this.#verifier.verifyAsync(record, unixSeconds(this.#clock));
    const width = options.width ?? widthFor(record);
    const isOurs = this.#isOurs(key, options.width ?? STORE_WIDTH);
    const newer = isOurs ? this.#store.newer(key, record) : null;
    if (newer !== null) return { replicas: 0, newer: newer.held, refused: { newer: 1 } };
    using limit = awakeTimeout(this.#clock, PUT_TIMEOUT_MS, options.signal);
    const search = shared ?? this.#searches.forWrite(key);
    const put = new PutOperation(
      this.#clock,
      search,
      width,
      (at) => this.#client.store(at, key, record),
      options,
      (keepers) => this.#known.set(toHex(key), keepers.map(slim)),
    );
    limit.signal.addEventListener('abort', () => {
      search.stop();
      put.stop();
    });
    // Readers ask this node as well.
    const known = (this.#known.get(toHex(key)) ?? []).slice(0, width);
    return await abortable(put.run(known, isOurs ? () => this.#keepOwn(key, record) : null), options.signal);
  }

  /** Whether this node should keep records of this key: it is among the closest nodes, or is the only one. */
  #isOurs(key: Uint8Array, width: number): boolean {
    return (
      this.#engine.peerCount === 0 || (this.#engine.ownAddress !== null && this.#engine.closerThanSelf(key) < width)
    );
  }

  async #keepOwn(key: Uint8Array, record: SignedRecord): Promise<boolean> {
    const { code } = await this.#commits.run(() => this.#store.offer(key, record, OWN_PUBLISHER));
    return code === 'kept';
  }

  /** As `RecordNetwork.removeNotes`. */
  async removeNotes(key: Uint8Array, removals: readonly NoteRemoval[]): Promise<number> {
    let removed = this.#store.removeNotes(key, removals);
    const search = this.#searches.forWrite(key);
    await search.finished;
    for (let at = 0; at < removals.length; at += MAX_REMOVALS) {
      const value = encodeRemoveRequest(removals.slice(at, at + MAX_REMOVALS));
      const near = search.closest(search.beyond(SEARCH_WIDTH)).filter(({ token }) => token !== null);
      const counts = await Promise.all(near.map((answer) => this.#client.removeNotes(answer, key, value)));
      removed += counts.reduce((sum, count) => sum + count, 0);
    }
    return removed;
  }
}
