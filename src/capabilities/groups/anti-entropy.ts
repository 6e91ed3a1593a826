/**
 * Keeps replicas in sync: new entries are pushed to members immediately, and each replica syncs with others from time
 * to time.
 */
import { backoff, type JitteredBackoff } from '../../foundation/backoff.ts';
import { Semaphore, SingleFlight } from '../../foundation/concurrency.ts';
import { detach } from '../../foundation/detached.ts';
import type { GroupState } from '../../foundation/domain/groups.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import { every, type RepeatingTask } from '../../foundation/repeat.ts';
import type { Entry } from './entry.ts';
import { countFitting } from './exchange.ts';
import type { GroupLinks } from './group-links.ts';
import type { Replica } from './replica.ts';
import type { Replicas } from './replicas.ts';
import type { GroupsDependencies } from './types.ts';

/**
 * Members to which the author pushes a new entry. In larger groups, each receiver forwards it to `FORWARD_FAN_OUT`
 * members.
 */
const FAN_OUT = 24;
const FORWARD_FAN_OUT = 6;
/** Limit of concurrent sessions. */
const MAX_SESSIONS = 32;
/** Limit of entries queued for one member. If it is exceeded, a sync follows instead. */
const MAX_QUEUED = 512;
/** Interval of the check for due syncs, milliseconds. */
const TICK_MS = 2000;
/**
 * Average interval between syncs of a replica, milliseconds. `JOINING_PERIOD_MS` applies while the agent is joining.
 */
const PERIOD_MS = 60_000;
const JOINING_PERIOD_MS = 10_000;
/** A replica syncs immediately with an agent whose join is more recent than this, milliseconds. Clocks differ by less. */
const RECENT_JOIN_MS = 120_000;
/** Members with which a replica syncs in one period. */
const PEERS_PER_SYNC = 2;
/** An unresponsive member is not contacted for this time, milliseconds: the first time, and at most. */
const BACKOFF_MS = 15_000;
const MAX_BACKOFF_MS = 600_000;
const BACKOFF: JitteredBackoff = { firstMs: BACKOFF_MS, maxMs: MAX_BACKOFF_MS, jitter: 0.5 };
const MAX_BACKED_OFF = 16_384;
/** After an agent leaves a group, its replica still syncs for this time to spread the `leave` entry, milliseconds. */
const ANNOUNCE_LEAVE_MS: number = 7 * 24 * 3600_000;

type SyncParts = Pick<GroupsDependencies, 'clock' | 'log' | 'random'> & {
  readonly groups: {
    syncedRids(leftSince: number): readonly number[];
    byRid(rid: number): { readonly state: GroupState } | null;
  };
};

interface Queue {
  readonly entries: Uint8Array[];
  overflowed: boolean;
}

export class AntiEntropy {
  readonly #deps: SyncParts;
  readonly #replicas: Pick<Replicas, 'byRid' | 'peers'>;
  readonly #links: Pick<GroupLinks, 'sync' | 'push'>;
  readonly #queues = new Map<string, Queue>();
  readonly #backedOff = new LruCache<Aid, { readonly fails: number; readonly until: number }>({
    maxEntries: MAX_BACKED_OFF,
  });
  /** When each replica syncs next, Unix milliseconds. */
  readonly #dueAt = new Map<number, number>();
  /** Running syncs, by replica and peer. */
  readonly #syncing = new SingleFlight<void>();
  readonly #sessions = new Semaphore(MAX_SESSIONS);
  readonly #stop = new AbortController();
  #ticker: RepeatingTask | null = null;

  constructor(
    dependencies: SyncParts,
    replicas: Pick<Replicas, 'byRid' | 'peers'>,
    links: Pick<GroupLinks, 'sync' | 'push'>,
  ) {
    this.#deps = dependencies;
    this.#replicas = replicas;
    this.#links = links;
  }

  start(): void {
    // For example a temporary disk error.
    const onError = (error: unknown): void => this.#deps.log.warn({ error }, 'groups were not synced');
    this.#ticker = every(this.#deps.clock, { firstMs: 0, periodMs: TICK_MS, onError }, () => this.#syncDue());
  }

  stop(): void {
    this.#stop.abort(new SvcError('cancelled'));
    this.#ticker?.stop();
  }

  /**
   * Pushes new entries to members. The author pushes to all members of a small group. Receivers forward only in large
   * groups.
   */
  broadcast(replica: Replica, entries: readonly Entry[], from: Aid | null): void {
    // protocol-groups.md, step 10
    if (this.#stop.signal.aborted) return;
    const others = this.#replicas.peers(replica).filter((aid) => aid !== from);
    this.#syncWithJoiners(replica, entries, others.length);
    if (from === null) this.#notifyRemoved(replica, entries);
    if (from !== null && others.length <= FAN_OUT) return;
    const encoded = entries.map((entry) => entry.encoded);
    for (const peer of this.#sample(others, from === null ? FAN_OUT : FORWARD_FAN_OUT))
      this.#push(replica, peer, encoded);
  }

  /**
   * A new member misses entries of authors that had not received its `join`. In a small group every member syncs with it
   * immediately, in a large group some do. Old joins, as a new member reads them, are ignored.
   */
  #syncWithJoiners(replica: Replica, entries: readonly Entry[], others: number): void {
    const recent = this.#deps.clock.now() - RECENT_JOIN_MS;
    for (const { kind, author, at } of entries) {
      if (kind !== 'join' || author === replica.aid || at < recent) continue;
      if (others <= FAN_OUT || this.#deps.random() * others < FAN_OUT) detach(this.#sync(replica, author));
    }
  }

  /** A removed agent receives the entry that removed it, and no other entries. */
  #notifyRemoved(replica: Replica, entries: readonly Entry[]): void {
    for (const { kind, to: [subject] = [], encoded } of entries) {
      if (kind !== 'remove' || subject === undefined) continue;
      const pushed = this.#runSession(subject, () => this.#links.push(replica, subject, [encoded]));
      pushed.catch((error: unknown) => this.#failed(subject, error));
    }
  }

  /** Called when a member contacts this node. If it was backed off, syncs with it immediately. */
  peerSeen(peer: Aid): void {
    if (!this.#backedOff.delete(peer)) return;
    for (const rid of this.#dueAt.keys()) {
      const replica = this.#replicas.byRid(rid);
      if (replica !== null && replica.role(peer) !== null) detach(this.#sync(replica, peer));
    }
  }

  /** Makes a replica due for a sync. */
  scheduleSync(rid: number): void {
    this.#dueAt.set(rid, this.#deps.clock.monotonic());
  }

  /** Syncs a replica with a peer now, or waits for the running sync. @throws SvcError as `GroupLinks.sync` */
  syncNow(replica: Replica, peer: Aid): Promise<void> {
    return this.#syncing.run(keyOf(replica, peer), () => this.#runSession(peer, () => this.#links.sync(replica, peer)));
  }

  #syncDue(): void {
    const now = this.#deps.clock.monotonic();
    const rids = new Set(this.#deps.groups.syncedRids(this.#deps.clock.now() - ANNOUNCE_LEAVE_MS));
    for (const rid of this.#dueAt.keys()) if (!rids.has(rid)) this.#dueAt.delete(rid);
    for (const rid of rids) {
      const dueAt = this.#dueAt.get(rid);
      // Spreads the first syncs after a start.
      if (dueAt === undefined) this.#dueAt.set(rid, now + this.#deps.random() * JOINING_PERIOD_MS);
      else if (dueAt <= now) this.#startSync(rid, now);
    }
  }

  #startSync(rid: number, now: number): void {
    // protocol-groups.md, step 11
    const replica = this.#replicas.byRid(rid);
    if (replica === null) return;
    const isJoining = this.#deps.groups.byRid(rid)?.state === 'joining';
    const period = isJoining ? JOINING_PERIOD_MS : PERIOD_MS;
    this.#dueAt.set(rid, now + period * (0.5 + this.#deps.random()));
    const peers = this.#replicas.peers(replica);
    // A joining agent fetches the group from one member, not from several at once.
    if (isJoining && peers.some((peer) => this.#syncing.has(keyOf(replica, peer)))) return;
    for (const peer of this.#sample(peers, PEERS_PER_SYNC)) detach(this.#sync(replica, peer));
  }

  async #sync(replica: Replica, peer: Aid): Promise<void> {
    if (this.#syncing.has(keyOf(replica, peer))) return;
    try {
      await this.syncNow(replica, peer);
    } catch (error) {
      this.#failed(peer, error);
    }
  }

  /** Queues entries for a peer. */
  #push(replica: Replica, peer: Aid, encoded: readonly Uint8Array[]): void {
    const queue = this.#queues.get(keyOf(replica, peer));
    if (queue === undefined) detach(this.#drain(replica, peer, { entries: [...encoded], overflowed: false }));
    else if (queue.entries.length + encoded.length > MAX_QUEUED) queue.overflowed = true;
    else queue.entries.push(...encoded);
  }

  async #drain(replica: Replica, peer: Aid, queue: Queue): Promise<void> {
    this.#queues.set(keyOf(replica, peer), queue);
    try {
      while (queue.entries.length > 0) {
        const batch = queue.entries.splice(0, countFitting(queue.entries));
        const complete = await this.#runSession(peer, () => this.#links.push(replica, peer, batch));
        if (complete && !queue.overflowed) continue;
        queue.overflowed = false;
        await this.#sync(replica, peer);
      }
    } catch (error) {
      this.#failed(peer, error);
    } finally {
      this.#queues.delete(keyOf(replica, peer));
    }
  }

  #failed(peer: Aid, error: unknown): void {
    if (this.#stop.signal.aborted) return;
    const { clock, log } = this.#deps;
    log.debug({ peer, error }, 'a member of a group could not be reached');
    if (error instanceof SvcError && error.code === 'not_member') return;
    const fails = (this.#backedOff.peek(peer)?.fails ?? 0) + 1;
    this.#backedOff.set(peer, { fails, until: clock.monotonic() + backoff(BACKOFF, fails, this.#deps.random()) });
  }

  /** A random selection of the agents that are not backed off. */
  #sample(all: readonly Aid[], count: number): Aid[] {
    const now = this.#deps.clock.monotonic();
    const left = all.filter((aid) => (this.#backedOff.peek(aid)?.until ?? 0) <= now);
    if (left.length <= count) return left;
    return Array.from({ length: count }, () => left.splice(Math.floor(this.#deps.random() * left.length), 1)).flat();
  }

  /** Runs a session when a slot is free. A peer that answers is no longer backed off. */
  async #runSession<T>(peer: Aid, session: () => Promise<T>): Promise<T> {
    const result = await this.#sessions.run(session, this.#stop.signal);
    this.#backedOff.delete(peer);
    return result;
  }
}

function keyOf({ rid }: Replica, peer: Aid): string {
  return `${rid} ${peer}`;
}
