/** Keeps replicas in step: new entries go to members at once, and each replica asks others from time to time. */
import type { Clock, Timer } from '../../foundation/clock.ts';
import type { RoomState } from '../../foundation/domain/rooms.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { Listeners } from '../../foundation/listeners.ts';
import type { Log } from '../../foundation/log.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import type { Entry } from './entry.ts';
import { fit } from './exchange.ts';
import type { Replica } from './replica.ts';
import type { Replicas } from './replicas.ts';
import type { RoomLinks } from './room-links.ts';

/** Members that the author tells at once; in greater rooms, members that each receiver tells on. */
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
const MAX_REMEMBERED = 16_384;
/** Milliseconds for which others are told that an agent left. */
const LEFT_MS: number = 7 * 24 * 3600_000;

interface AntiEntropyDependencies {
  readonly links: Pick<RoomLinks, 'sync' | 'push'>;
  readonly clock: Clock;
  readonly log: Log;
  /** A number from 0 to below 1. */
  random(): number;
  readonly rooms: {
    /** Numbers of the rooms that agents here are in, or have left only since then: Unix milliseconds. */
    rids(leftSince: number): readonly number[];
    byRid(rid: number): { readonly state: RoomState } | null;
  };
  readonly replicas: Pick<Replicas, 'byRid' | 'peers'>;
}

interface Queue {
  entries: Uint8Array[];
  overflown: boolean;
}

export class AntiEntropy {
  /** Told of each replica that a comparison went well for. */
  readonly synced: Listeners<[Replica]> = new Listeners();
  readonly #deps: AntiEntropyDependencies;
  readonly #queues = new Map<string, Queue>();
  readonly #dueAt = new Map<number, number>();
  readonly #silent = new LruCache<Aid, { readonly fails: number; readonly until: number }>({
    maxEntries: MAX_REMEMBERED,
  });
  /** Comparisons that are under way, by replica and peer. */
  readonly #syncing = new Map<number, Map<Aid, Promise<void>>>();
  readonly #line: (() => void)[] = [];
  #talks = 0;
  #timer: Timer | null = null;
  #stopped = false;

  constructor(dependencies: AntiEntropyDependencies) {
    this.#deps = dependencies;
  }

  start(): void {
    this.#tick();
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
    this.#queues.clear();
    for (const go of this.#line.splice(0)) go();
  }

  /** Tells members of new entries: the author of them all of a small room, a receiver only some of a great one. */
  tell(replica: Replica, entries: readonly Entry[], from: Aid | null): void {
    if (this.#stopped) return;
    const others = this.#deps.replicas.peers(replica).filter((aid) => aid !== from);
    this.#meetJoiners(replica, entries, others.length);
    if (from !== null && others.length <= FAN_OUT) return;
    const now = this.#deps.clock.now();
    const awake = others.filter((aid) => (this.#silent.peek(aid)?.until ?? 0) <= now);
    for (const peer of this.#some(awake, from === null ? FAN_OUT : FORWARD_TO)) this.#enqueue(replica, peer, entries);
  }

  /**
   * Whoever has just joined knows nothing of what was written by those who did not know of it yet:
   * each of a small room, some of a great one, compare with it at once. Joins of long ago, as a new
   * member reads them, are no reason to.
   */
  #meetJoiners(replica: Replica, entries: readonly Entry[], others: number): void {
    const recent = this.#deps.clock.now() - RECENT_MS;
    for (const { kind, author, at } of entries) {
      if (kind !== 'join' || author === replica.aid || at < recent) continue;
      if (others <= FAN_OUT || this.#deps.random() * others < FAN_OUT) void this.#sync(replica, author);
    }
  }

  /** A member is there: it is asked at once where it has been silent. */
  met(peer: Aid): void {
    if (!this.#silent.delete(peer)) return;
    for (const rid of this.#dueAt.keys()) {
      const replica = this.#deps.replicas.byRid(rid);
      if (replica !== null && replica.role(peer) !== null) void this.#sync(replica, peer);
    }
  }

  /** Has a replica ask others soon. */
  soon(rid: number): void {
    this.#dueAt.set(rid, this.#deps.clock.now());
  }

  /** Compares a replica with a peer's now, or waits for the comparison under way. @throws SvcError as `RoomLinks.sync` */
  async syncNow(replica: Replica, peer: Aid): Promise<void> {
    const running = this.#syncing.get(replica.rid) ?? new Map<Aid, Promise<void>>();
    const work = running.get(peer) ?? this.#compare(replica, peer);
    if (running.has(peer)) return work;
    this.#syncing.set(replica.rid, running.set(peer, work));
    try {
      await work;
    } finally {
      running.delete(peer);
      if (running.size === 0) this.#syncing.delete(replica.rid);
    }
  }

  async #compare(replica: Replica, peer: Aid): Promise<void> {
    await this.#inLine(() => this.#deps.links.sync(replica, peer));
    this.#silent.delete(peer);
    this.synced.tell(replica);
  }

  #tick(): void {
    if (this.#stopped) return;
    try {
      this.#askDue();
    } catch (error) {
      // A disk that fails for a moment.
      this.#deps.log.warn({ error }, 'members of rooms were not asked');
    }
    this.#timer = this.#deps.clock.after(TICK_MS, () => this.#tick());
  }

  #askDue(): void {
    const now = this.#deps.clock.now();
    const rids = new Set(this.#deps.rooms.rids(now - LEFT_MS));
    for (const rid of this.#dueAt.keys()) if (!rids.has(rid)) this.#dueAt.delete(rid);
    for (const rid of rids) {
      const dueAt = this.#dueAt.get(rid);
      // After a start, not all at once.
      if (dueAt === undefined) this.#dueAt.set(rid, now + this.#deps.random() * JOINING_PERIOD_MS);
      else if (dueAt <= now) this.#ask(rid, now);
    }
  }

  #ask(rid: number, now: number): void {
    const replica = this.#deps.replicas.byRid(rid);
    if (replica === null) return;
    const isJoining = this.#deps.rooms.byRid(rid)?.state === 'joining';
    const period = isJoining ? JOINING_PERIOD_MS : PERIOD_MS;
    this.#dueAt.set(rid, now + period * (0.5 + this.#deps.random()));
    // A whole room comes from one member, not from several at once.
    if (isJoining && this.#syncing.has(rid)) return;
    const awake = this.#deps.replicas.peers(replica).filter((aid) => (this.#silent.peek(aid)?.until ?? 0) <= now);
    for (const peer of this.#some(awake, ASKED)) void this.#sync(replica, peer);
  }

  async #sync(replica: Replica, peer: Aid): Promise<void> {
    if (this.#syncing.get(replica.rid)?.has(peer) === true || this.#stopped) return;
    try {
      await this.syncNow(replica, peer);
    } catch (error) {
      this.#failed(peer, error);
    }
  }

  #enqueue(replica: Replica, peer: Aid, entries: readonly Entry[]): void {
    const name = `${replica.rid} ${peer}`;
    const queue = this.#queues.get(name);
    if (queue === undefined) {
      this.#queues.set(name, { entries: entries.map(({ encoded }) => encoded), overflown: false });
      void this.#drain(name, replica, peer);
    } else if (queue.entries.length + entries.length > MAX_QUEUED) queue.overflown = true;
    else queue.entries.push(...entries.map(({ encoded }) => encoded));
  }

  async #drain(name: string, replica: Replica, peer: Aid): Promise<void> {
    try {
      for (;;) {
        const queue = this.#queues.get(name);
        if (queue === undefined || queue.entries.length === 0) break;
        const batch = queue.entries.splice(0, fit(queue.entries));
        const complete = await this.#inLine(() => this.#deps.links.push(replica, peer, batch));
        this.#silent.delete(peer);
        if (complete && !queue.overflown) continue;
        queue.overflown = false;
        await this.#sync(replica, peer);
      }
    } catch (error) {
      this.#failed(peer, error);
    } finally {
      this.#queues.delete(name);
    }
  }

  #failed(peer: Aid, error: unknown): void {
    if (this.#stopped) return;
    this.#deps.log.debug({ peer, error }, 'a member of a room was not reached');
    if (error instanceof SvcError && error.code === 'not_member') return;
    const fails = (this.#silent.peek(peer)?.fails ?? 0) + 1;
    const pause = Math.min(BACKOFF_MS * 2 ** Math.min(fails - 1, 10), MAX_BACKOFF_MS);
    this.#silent.set(peer, { fails, until: this.#deps.clock.now() + pause * (0.5 + this.#deps.random()) });
  }

  /** Some of these, by chance. */
  #some(all: readonly Aid[], count: number): Aid[] {
    if (all.length <= count) return [...all];
    const left = [...all];
    return Array.from({ length: count }, () => left.splice(Math.floor(this.#deps.random() * left.length), 1)).flat();
  }

  /** Runs a talk when there are not too many. */
  async #inLine<T>(talk: () => Promise<T>): Promise<T> {
    while (this.#talks >= MAX_TALKS) await new Promise<void>((resolve) => this.#line.push(resolve));
    if (this.#stopped) throw new SvcError('cancelled');
    this.#talks++;
    try {
      return await talk();
    } finally {
      this.#talks--;
      this.#line.shift()?.();
    }
  }
}
