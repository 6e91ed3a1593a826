/** Writes: a record of our own to the nodes closest to its key, and notes taken back from them. */
import { type Clock, unixSeconds } from '../../foundation/clock.ts';
import { abortable } from '../../foundation/deadline.ts';
import { REPLICAS } from '../../foundation/domain/directory.ts';
import { SvcError } from '../../foundation/errors.ts';
import { belongsUnderKey } from '../../foundation/records/keys.ts';
import type { SignedRecord } from '../../foundation/records/record.ts';
import type { RecordVerifier } from '../../foundation/records/verifier.ts';
import { SharedTimers } from '../../foundation/shared-timers.ts';
import { awakeClock, awakeTimeout } from '../../foundation/stall.ts';
import { GroupCommit } from '../../foundation/store/group-commit.ts';
import type { DhtEngine } from './engine.ts';
import { type Lookups, SEARCH_WIDTH } from './lookups.ts';
import { encodeRemoveRequest, MAX_REMOVALS } from './messages.ts';
import type { NodeClient } from './node-client.ts';
import type { PeerHealth } from './peer-health.ts';
import { STORE_WIDTH, widthFor } from './placement.ts';
import { HOLD_MS, PutOperation } from './put-operation.ts';
import type { RecordStore } from './record-store.ts';
import { MAX_SEVERAL } from './several-messages.ts';
import type { SharedLookup } from './shared-lookup.ts';
import type { NoteRemoval, PutOptions, PutResult } from './types.ts';

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
