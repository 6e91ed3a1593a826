/** Keeps replicas in step: new entries go to members at once, and each replica asks others from time to time. */
import { backoff, type JitteredBackoff } from '../../foundation/backoff.ts';
import { detach } from '../../foundation/detached.ts';
import type { GroupState } from '../../foundation/domain/groups.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { Listeners } from '../../foundation/listeners.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import { every, type RepeatingTask } from '../../foundation/repeat.ts';
import { Semaphore } from '../../foundation/semaphore.ts';
import { SingleFlight } from '../../foundation/single-flight.ts';
import type { Entry } from './entry.ts';
import { fit } from './exchange.ts';
import type { GroupLinks } from './group-links.ts';
import type { Replica } from './replica.ts';
import type { Replicas } from './replicas.ts';
import type { GroupsDependencies } from './types.ts';

/** Members that the author tells at once; in greater groups, members that each receiver tells on. */
const FAN_OUT = 24;
const FORWARD_TO = 6;
/** Talks that are under way at one time. */
const MAX_TALKS = 32;
/** Entries that wait for one member; beyond that, a comparison brings them. */
const MAX_QUEUED = 512;
/** Milliseconds between two looks at which replica is due. */
const TICK_MS = 2000;
/** Milliseconds between two comparisons of a replica, on average; of one that is joining. */
const PERIOD_MS = 60_000;
const JOINING_PERIOD_MS = 10_000;
/** How old a join may be whose author is met at once, milliseconds; clocks may differ by less. */
const RECENT_MS = 120_000;
/** Members that one comparison asks. */
const ASKED = 2;
/** Milliseconds for which a member that did not answer is left alone: at first and at most. */
const BACKOFF_MS = 15_000;
const MAX_BACKOFF_MS = 600_000;
const BACKOFF: JitteredBackoff = { firstMs: BACKOFF_MS, maxMs: MAX_BACKOFF_MS, jitter: 0.5 };
const MAX_REMEMBERED = 16_384;
/** Milliseconds for which others are told that an agent left. */
const LEFT_MS: number = 7 * 24 * 3600_000;

interface AntiEntropyDependencies extends Pick<GroupsDependencies, 'clock' | 'log' | 'random'> {
  readonly links: Pick<GroupLinks, 'sync' | 'push'>;
  readonly groups: {
    /** Numbers of the groups that agents here are in, or have left only since then: Unix milliseconds. */
    rids(leftSince: number): readonly number[];
    byRid(rid: number): { readonly state: GroupState } | null;
  };
  readonly replicas: Pick<Replicas, 'byRid' | 'peers'>;
}

interface Queue {
  readonly entries: Uint8Array[];
  overflown: boolean;
}

export class AntiEntropy {
  /** Told of each replica that a comparison went well for. */
  readonly synced: Listeners<[Replica]> = new Listeners();
  readonly #deps: AntiEntropyDependencies;
  readonly #queues = new Map<string, Queue>();
  readonly #silent = new LruCache<Aid, { readonly fails: number; readonly until: number }>({
    maxEntries: MAX_REMEMBERED,
  });
  /** When each replica asks next, Unix milliseconds. */
  readonly #dueAt = new Map<number, number>();
  /** Comparisons that are under way, by replica and peer. */
  readonly #syncing = new SingleFlight<void>();
  readonly #talks = new Semaphore(MAX_TALKS);
  readonly #stop = new AbortController();
  #looks: RepeatingTask | null = null;

  constructor(dependencies: AntiEntropyDependencies) {
    this.#deps = dependencies;
  }

  start(): void {
    // A disk that fails for a moment.
    const onError = (error: unknown): void => this.#deps.log.warn({ error }, 'members of groups were not asked');
    this.#looks = every(this.#deps.clock, { firstMs: 0, periodMs: TICK_MS, onError }, () => this.#askDue());
  }

  stop(): void {
    this.#stop.abort(new SvcError('cancelled'));
    this.#looks?.stop();
  }

  /** Tells members of new entries: the author of them all of a small group, a receiver only some of a great one. */
  tell(replica: Replica, entries: readonly Entry[], from: Aid | null): void {
    // protocol-groups.md, step 10
    if (this.#stop.signal.aborted) return;
    const others = this.#deps.replicas.peers(replica).filter((aid) => aid !== from);
    this.#meetJoiners(replica, entries, others.length);
    if (from === null) this.#tellRemoved(replica, entries);
    if (from !== null && others.length <= FAN_OUT) return;
    const encoded = entries.map((entry) => entry.encoded);
    for (const peer of this.#some(others, from === null ? FAN_OUT : FORWARD_TO)) this.#push(replica, peer, encoded);
  }

  /**
   * Whoever has just joined knows nothing of what was written by those who did not know of it yet:
   * each of a small group, some of a great one, compare with it at once. Joins of long ago, as a new
   * member reads them, are no reason to.
   */
  #meetJoiners(replica: Replica, entries: readonly Entry[], others: number): void {
    const recent = this.#deps.clock.now() - RECENT_MS;
    for (const { kind, author, at } of entries) {
      if (kind !== 'join' || author === replica.aid || at < recent) continue;
      if (others <= FAN_OUT || this.#deps.random() * others < FAN_OUT) detach(this.#sync(replica, author));
    }
  }

  /** An agent that was removed gets the entry that says so, and nothing else: no member pushes to it any more. */
  #tellRemoved(replica: Replica, entries: readonly Entry[]): void {
    for (const { kind, to: [subject] = [], encoded } of entries) {
      if (kind !== 'remove' || subject === undefined) continue;
      const told = this.#talk(subject, () => this.#deps.links.push(replica, subject, [encoded]));
      told.catch((error: unknown) => this.#failed(subject, error));
    }
  }

  /** A member is there: it is asked at once where it has been silent. */
  met(peer: Aid): void {
    if (!this.#silent.delete(peer)) return;
    for (const rid of this.#dueAt.keys()) {
      const replica = this.#deps.replicas.byRid(rid);
      if (replica !== null && replica.role(peer) !== null) detach(this.#sync(replica, peer));
    }
  }

  /** Has a replica ask others soon. */
  soon(rid: number): void {
    this.#dueAt.set(rid, this.#deps.clock.now());
  }

  /** Compares a replica with a peer's now, or waits for the comparison under way. @throws SvcError as `GroupLinks.sync` */
  syncNow(replica: Replica, peer: Aid): Promise<void> {
    return this.#syncing.run(nameOf(replica, peer), async () => {
      await this.#talk(peer, () => this.#deps.links.sync(replica, peer));
      this.synced.notify(replica);
    });
  }

  #askDue(): void {
    const now = this.#deps.clock.now();
    const rids = new Set(this.#deps.groups.rids(now - LEFT_MS));
    for (const rid of this.#dueAt.keys()) if (!rids.has(rid)) this.#dueAt.delete(rid);
    for (const rid of rids) {
      const dueAt = this.#dueAt.get(rid);
      // After a start, not all at once.
      if (dueAt === undefined) this.#dueAt.set(rid, now + this.#deps.random() * JOINING_PERIOD_MS);
      else if (dueAt <= now) this.#ask(rid, now);
    }
  }

  #ask(rid: number, now: number): void {
    // protocol-groups.md, step 11
    const replica = this.#deps.replicas.byRid(rid);
    if (replica === null) return;
    const isJoining = this.#deps.groups.byRid(rid)?.state === 'joining';
    const period = isJoining ? JOINING_PERIOD_MS : PERIOD_MS;
    this.#dueAt.set(rid, now + period * (0.5 + this.#deps.random()));
    const peers = this.#deps.replicas.peers(replica);
    // A whole group comes from one member, not from several at once.
    if (isJoining && peers.some((peer) => this.#syncing.has(nameOf(replica, peer)))) return;
    for (const peer of this.#some(peers, ASKED)) detach(this.#sync(replica, peer));
  }

  async #sync(replica: Replica, peer: Aid): Promise<void> {
    if (this.#syncing.has(nameOf(replica, peer))) return;
    try {
      await this.syncNow(replica, peer);
    } catch (error) {
      this.#failed(peer, error);
    }
  }

  /** Hands entries to a peer, behind those that are on their way to it. */
  #push(replica: Replica, peer: Aid, encoded: readonly Uint8Array[]): void {
    const queue = this.#queues.get(nameOf(replica, peer));
    if (queue === undefined) detach(this.#drain(replica, peer, { entries: [...encoded], overflown: false }));
    else if (queue.entries.length + encoded.length > MAX_QUEUED) queue.overflown = true;
    else queue.entries.push(...encoded);
  }

  async #drain(replica: Replica, peer: Aid, queue: Queue): Promise<void> {
    this.#queues.set(nameOf(replica, peer), queue);
    try {
      while (queue.entries.length > 0) {
        const batch = queue.entries.splice(0, fit(queue.entries));
        const complete = await this.#talk(peer, () => this.#deps.links.push(replica, peer, batch));
        if (complete && !queue.overflown) continue;
        queue.overflown = false;
        await this.#sync(replica, peer);
      }
    } catch (error) {
      this.#failed(peer, error);
    } finally {
      this.#queues.delete(nameOf(replica, peer));
    }
  }

  #failed(peer: Aid, error: unknown): void {
    if (this.#stop.signal.aborted) return;
    const { clock, log } = this.#deps;
    log.debug({ peer, error }, 'a member of a group was not reached');
    if (error instanceof SvcError && error.code === 'not_member') return;
    const fails = (this.#silent.peek(peer)?.fails ?? 0) + 1;
    this.#silent.set(peer, { fails, until: clock.now() + backoff(BACKOFF, fails, this.#deps.random()) });
  }

  /** Some of these that are not silent, by chance. */
  #some(all: readonly Aid[], count: number): Aid[] {
    const now = this.#deps.clock.now();
    const left = all.filter((aid) => (this.#silent.peek(aid)?.until ?? 0) <= now);
    if (left.length <= count) return left;
    return Array.from({ length: count }, () => left.splice(Math.floor(this.#deps.random() * left.length), 1)).flat();
  }

  /** Runs a talk when there are not too many. Who answers is silent no more. */
  async #talk<T>(peer: Aid, talk: () => Promise<T>): Promise<T> {
    const said = await this.#talks.run(talk, this.#stop.signal);
    this.#silent.delete(peer);
    return said;
  }
}

function nameOf({ rid }: Replica, peer: Aid): string {
  return `${rid} ${peer}`;
}
