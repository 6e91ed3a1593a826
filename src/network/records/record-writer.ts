/** Writes: a record of our own to the nodes closest to its key, and notes taken back from them. */

import type { Address } from '../../foundation/address.ts';
import { toHex } from '../../foundation/bytes.ts';
import { type Clock, SharedTimers, type Timer, unixSeconds } from '../../foundation/clock.ts';
import { abortable } from '../../foundation/deadline.ts';
import { detach } from '../../foundation/detached.ts';
import { REPLICAS } from '../../foundation/domain/directory.ts';
import { SvcError } from '../../foundation/errors.ts';
import { belongsUnderKey } from '../../foundation/records/keys.ts';
import { compareFreshness, type SignedRecord } from '../../foundation/records/record.ts';
import type { RecordVerifier } from '../../foundation/records/verifier.ts';
import { awakeClock, awakeTimeout } from '../../foundation/stall.ts';
import { GroupCommit } from '../../foundation/store/group-commit.ts';
import type { DhtEngine } from './engine.ts';
import { BEYOND, type Lookup, type LookupAnswer, type SharedLookup, STORE_WIDTH, widthFor } from './lookup.ts';
import { type Lookups, SEARCH_WIDTH } from './lookups.ts';
import { encodeRemoveRequest, MAX_REMOVALS } from './messages.ts';
import type { NodeClient, StoreVerdict } from './node-client.ts';
import type { PeerHealth } from './peer-health.ts';
import type { RecordStore } from './record-store.ts';
import { MAX_SEVERAL } from './several-messages.ts';
import type { NoteRemoval, PutOptions, PutResult } from './types.ts';

/**
 * One record on its way to the nodes closest to its key. Nodes are given it as soon as they answer
 * and stand close enough, while others are still searched for; it is done when enough have kept it.
 */

/**
 * Records on their way to one node: those that are handed over at the same moment go in one datagram, where the node says
 * that it takes several. In a network that is no larger than the nodes which keep a record, all records of a publication
 * go to the same nodes, and what they cost is datagrams.
 */

/** So many acknowledgements at least, where half of those near a key are enough. */
export const FEWEST_REPLICAS = 4;

/**
 * Where nodes are nearby, no more of them than are needed are given a record at first, and the others so much later:
 * milliseconds. What such nodes take for an answer is work, and some share a machine with others or with us.
 */
export const HOLD_MS = 20;

interface PutOperationOptions {
  /** How many acknowledgements end the wait; more nodes are given the record in the background. */
  readonly wanted: number;
  /** How many of the closest nodes are given the record. */
  readonly width: number;
  /** After how many milliseconds a node that has not acknowledged is no longer waited for. */
  readonly patienceMs: number;
}

interface PutOperationDependencies {
  readonly clock: Clock;
  /** Runs what is done later, with what else is then. */
  readonly later: Clock['after'];
  /** Whether a node answers sooner than `HOLD_MS`. */
  readonly isNearby: (node: Address) => boolean;
  /** Hands the record to a node; null where it does not answer. */
  readonly store: (at: LookupAnswer) => Promise<StoreVerdict | null>;
  /** Keeps a copy at this node if the record belongs here as well: false if there is no room. */
  readonly keep: (() => Promise<boolean>) | null;
  /** Told how many other nodes keep it, each time that there is one more. */
  readonly onKept?: PutOptions['onKept'];
  readonly onWhole?: PutOptions['onWhole'];
}

export class PutOperation {
  readonly #options: PutOperationOptions;
  readonly #deps: PutOperationDependencies;
  readonly #given = new Set<LookupAnswer>();
  readonly #refused: Record<string, number> = {};
  readonly #done = Promise.withResolvers<void>();
  /** Keys of the nodes that keep it: one that answers at several addresses counts once. */
  readonly #keepers = new Set<string>();
  #newer: SignedRecord | null = null;
  /** Nodes that were given the record and have not answered, and those that took too long. */
  readonly #waiting = new Set<LookupAnswer>();
  readonly #overdue = new Set<LookupAnswer>();
  /** This node is writing its own copy, which is not a replica: it goes when the node goes. */
  #isKeeping = false;
  #isHere = false;
  #searched = false;
  #isAnswered = false;
  #isWhole = false;
  /** Until the others are given it; null where none is held back. */
  #holding: Timer | null = null;
  #holdsNone = false;
  #lookup: Lookup | null = null;

  constructor(options: PutOperationOptions, dependencies: PutOperationDependencies) {
    this.#options = options;
    this.#deps = dependencies;
  }

  /** Runs along a lookup, whose answers its owner hands on to `advance`. Rejects where this node cannot write. */
  async run(lookup: Lookup): Promise<PutResult> {
    this.#lookup = lookup;
    this.#keepHere();
    detach(
      lookup.finished.then(() => {
        this.advance(lookup);
        this.#searched = true;
        this.#settle();
      }),
    );
    await this.#done.promise;
    return this.#result();
  }

  #keepHere(): void {
    const { keep } = this.#deps;
    if (keep === null) return;
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

  #keptBy(nodeKey: Uint8Array): void {
    this.#keepers.add(toHex(nodeKey));
    this.#deps.onKept?.(this.#keepers.size);
  }

  #result(): PutResult {
    const here: Pick<PutResult, 'isHere'> = this.#isHere ? { isHere: true } : {};
    return { replicas: this.#keepers.size, newer: this.#newer, refused: { ...this.#refused }, ...here };
  }

  /** Gives the record to every node that has answered and now stands among the closest. */
  advance(lookup: Lookup): void {
    // protocol-dht.md, step 10
    const { width } = this.#options;
    for (const answer of lookup.within(width)) {
      if (this.#given.size >= 2 * lookup.beyond(width)) return;
      if (answer.token === null || this.#given.has(answer)) continue;
      if (this.#holdsBack(answer, lookup)) return;
      this.#give(answer);
    }
  }

  /** Whether a node is given it later, as those that have it already are enough for an answer and will give it soon. */
  #holdsBack({ address }: LookupAnswer, lookup: Lookup): boolean {
    if (this.#deps.onWhole === undefined || this.#holdsNone || lookup.looksDense) return false;
    if (!this.#deps.isNearby(address)) this.#holdsNone = true;
    else if (this.#given.size >= this.#needed(lookup)) {
      this.#holding ??= this.#deps.later(HOLD_MS, () => {
        this.#giveRest();
        this.#settle();
      });
      return true;
    }
    return false;
  }

  #giveRest(): void {
    this.#holdsNone = true;
    this.#holding?.cancel();
    this.#holding = null;
    if (this.#lookup !== null) this.advance(this.#lookup);
  }

  /** Ends the wait with what has been acknowledged so far. */
  stop(): void {
    this.#holding?.cancel();
    this.#isAnswered = true;
    this.#done.resolve();
  }

  #give(answer: LookupAnswer): void {
    this.#given.add(answer);
    this.#waiting.add(answer);
    const timer = this.#deps.clock.after(this.#options.patienceMs, () => {
      this.#overdue.add(answer);
      this.#settle();
    });
    detach(
      this.#deps.store(answer).then((verdict) => {
        timer.cancel();
        this.#waiting.delete(answer);
        if (verdict !== null) this.#count(verdict, answer);
        // Those that were given it are no longer enough.
        if (verdict?.code !== 'kept' && this.#holding !== null) this.#giveRest();
        this.#settle();
      }),
    );
  }

  #count(verdict: StoreVerdict, { reply }: LookupAnswer): void {
    if (verdict.code === 'kept') {
      this.#keptBy(reply.nodeKey);
      return;
    }
    this.#refused[verdict.code] = (this.#refused[verdict.code] ?? 0) + 1;
    const { newer } = verdict;
    if (newer !== null && (this.#newer === null || compareFreshness(newer, this.#newer) > 0)) this.#newer = newer;
  }

  #settle(): void {
    const kept = this.#keepers.size;
    const awaited = kept > 0 ? this.#waiting.difference(this.#overdue).size : this.#waiting.size;
    if (this.#isWhole) return;
    this.#isWhole = this.#searched && awaited === 0 && !this.#isKeeping && this.#holding === null;
    if (this.#isAnswered) {
      if (this.#isWhole) this.#deps.onWhole?.(this.#result());
    } else if (this.#isWhole || kept >= this.#enough()) {
      this.#isAnswered = true;
      this.#done.resolve();
    }
  }

  /** How many have to keep it before there is an answer. */
  #enough(): number {
    const { wanted } = this.#options;
    // Where the closest may be in league, enough means so many that others are among them.
    if (this.#lookup?.looksDense === true) return wanted * BEYOND;
    if (this.#lookup === null || !this.#searched || this.#deps.onWhole === undefined) return wanted;
    return this.#needed(this.#lookup);
  }

  /** Of networks so small that nearly all of their nodes would have to answer, half: who reads there hears them all. */
  #needed(lookup: Lookup): number {
    const { wanted, width } = this.#options;
    return Math.min(wanted, Math.max(FEWEST_REPLICAS, Math.ceil(lookup.within(width).length / 2)));
  }
}

/** Time for a publication, milliseconds. */
const PUT_TIMEOUT_MS = 10_000;
/** After how many milliseconds a node that has answered and does not acknowledge is no longer waited for. */
const STORE_PATIENCE_MS = 1000;
/** Whose share of the store our own records take. */
const OWN_PUBLISHER = 'self';

interface RecordWriterDependencies {
  readonly clock: Clock;
  readonly verifier: Pick<RecordVerifier, 'verifyAsync'>;
  readonly store: Pick<RecordStore, 'newer' | 'offer' | 'transaction' | 'removeNotes'>;
  readonly engine: Pick<DhtEngine, 'ownAddress' | 'closerThanSelf' | 'peerCount'>;
  readonly lookups: Pick<Lookups, 'forWrite' | 'survey'>;
  readonly client: Pick<NodeClient, 'store' | 'removeNotes'>;
  readonly health: Pick<PeerHealth, 'rttMsOf'>;
}

export class RecordWriter {
  readonly #deps: RecordWriterDependencies;
  /** Records of our own that go out together are kept in one step. */
  readonly #commits: GroupCommit;
  /** Records that are given to nodes later go together as well. */
  readonly #timers: SharedTimers;

  constructor(dependencies: RecordWriterDependencies) {
    this.#deps = dependencies;
    this.#timers = new SharedTimers(dependencies);
    this.#commits = new GroupCommit((work) => dependencies.store.transaction(work), { maxWrites: MAX_SEVERAL });
  }

  /**
   * As `RecordNetwork.put`.
   * @param shared a search around the key of a moment ago, whose answers still prove our address
   * @throws SvcError `bad_record`, `cancelled`, and as `RecordVerifier.verifyAsync`
   */
  async put(
    key: Uint8Array,
    record: SignedRecord,
    { signal, onKept, onWhole }: PutOptions = {},
    shared: SharedLookup | null = null,
  ): Promise<PutResult> {
    const { clock, verifier, lookups, client, store, health } = this.#deps;
    if (!belongsUnderKey(record, key))
      throw new SvcError('bad_record', { message: 'The record belongs under another key.' });
    await verifier.verifyAsync(record, unixSeconds(clock));
    const isOurs = this.#isOurs(key);
    const newer = isOurs ? store.newer(key, record) : null;
    if (newer !== null) return { replicas: 0, newer: newer.held, refused: { newer: 1 } };
    // Readers ask this node as well. Its own copy does not count: an acknowledgement needs another node.
    const keep = isOurs ? () => this.#keepOwn(key, record) : null;
    using limit = awakeTimeout(clock, PUT_TIMEOUT_MS, signal);
    const put = new PutOperation(
      {
        wanted: REPLICAS,
        width: widthFor(record),
        patienceMs: STORE_PATIENCE_MS,
      },
      {
        clock: awakeClock(clock),
        later: (ms, task) => this.#timers.after(ms, task),
        isNearby: (node) => (health.rttMsOf(node) ?? HOLD_MS) < HOLD_MS,
        store: (at) => client.store(at, key, record),
        keep,
        onKept,
        onWhole,
      },
    );
    const advance = (): void => put.advance(lookup);
    const request = { types: [record.type], wantsRecords: false };
    const lookup = shared?.lookup ?? lookups.forWrite(key, request, advance);
    shared?.follow(advance);
    limit.signal.addEventListener('abort', () => {
      lookup.stop();
      put.stop();
    });
    const result = put.run(lookup);
    if (shared !== null) advance();
    return await abortable(result, signal);
  }

  /** True where we are among those who should keep what is under a key, or there is nobody else. */
  #isOurs(key: Uint8Array): boolean {
    const { engine } = this.#deps;
    return engine.peerCount === 0 || (engine.ownAddress !== null && engine.closerThanSelf(key) < STORE_WIDTH);
  }

  async #keepOwn(key: Uint8Array, record: SignedRecord): Promise<boolean> {
    const { code } = await this.#commits.run(() => this.#deps.store.offer(key, record, OWN_PUBLISHER));
    return code === 'kept';
  }

  /** As `RecordNetwork.removeNotes`. */
  async removeNotes(key: Uint8Array, removals: readonly NoteRemoval[]): Promise<number> {
    const { store, lookups, client } = this.#deps;
    let removed = store.removeNotes(key, removals);
    const lookup = lookups.survey(key);
    await lookup.finished;
    for (let at = 0; at < removals.length; at += MAX_REMOVALS) {
      const value = encodeRemoveRequest(removals.slice(at, at + MAX_REMOVALS));
      const near = lookup.closest(lookup.beyond(SEARCH_WIDTH)).filter(({ token }) => token !== null);
      const counts = await Promise.all(near.map((answer) => client.removeNotes(answer, key, value)));
      removed += counts.reduce((sum, count) => sum + count, 0);
    }
    return removed;
  }
}
