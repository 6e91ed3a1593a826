/**
 * The newest known delegation of each agent, kept across restarts, so that a stolen operational key stays rejected
 * after its owner replaced it. Written in batches: after a crash, the latest delegations must be received again.
 *
 * Agents that the owner or this node named are never evicted. AIDs are free to create, so strangers share the remaining
 * space by network and source: the network or source with the most entries loses entries first. In each, agents that
 * never changed their delegation go first.
 */
import type { Clock } from '../clock.ts';
import type { Aid } from '../identity/aid.ts';
import type { Component } from '../lifecycle.ts';
import type { Log } from '../log.ts';
import { LruCache } from '../lru-cache.ts';
import { type SourceGroup, sourceGroupOf } from '../quota.ts';
import { every, type RepeatingTask, UNTIL_REQUESTED } from '../repeat.ts';
import { orZero, textOf } from './row.ts';
import type { Store } from './store.ts';

/** Agents kept in addition to the named ones. */
export const MAX_STORED_AGENTS = 20_000;
/** Writes between two evictions. An eviction compares all agents and blocks the event loop. */
const WRITES_PER_EVICTION = 10_000;
/** Pending agents while the disk rejects writes. */
const MAX_PENDING = 100_000;
/** Agents with a cached delegation. Every new link reads the delegations of both agents. */
const MAX_CACHED = 8192;
/** Delay after which pending delegations are written together, in milliseconds. */
const WRITE_DELAY_MS = 5000;
/** The delay after a failed write, in milliseconds. */
const RETRY_DELAY_MS = 60_000;

/** AIDs that the owner named, or that this node uses because of a choice of the owner. */
const NAMED = `
  SELECT aid FROM agents
  UNION SELECT aid FROM access_entries WHERE aid IS NOT NULL
  UNION SELECT peer FROM chat_pairs WHERE state IN ('friends', 'out_pending', 'blocked')
  UNION SELECT peer FROM group_peers
  UNION SELECT target FROM group_invites_out
  UNION SELECT remote_aid FROM tunnels
  UNION SELECT remote_aid FROM origins
  UNION SELECT recipient FROM note_outbox
  UNION SELECT peer FROM file_offers WHERE outgoing = 1 OR state = 'taken'
  UNION SELECT alias.key FROM meta, json_each(meta.value, '$.aliases') AS alias WHERE meta.key = 'address_book'
  UNION SELECT favorite.value ->> 'aid' FROM meta, json_each(meta.value, '$.favorites') AS favorite
    WHERE meta.key = 'address_book'`;

/**
 * The order of retention: first the best agent of each network, then the second best, and so on. In a network, sources
 * alternate in the same way.
 */
const EVICT = `
  DELETE FROM seen_delegations WHERE aid IN (
    SELECT aid FROM (
      SELECT *, row_number() OVER (PARTITION BY network ORDER BY in_source, rotated DESC, seen_at DESC) AS in_network
      FROM (
        SELECT *, row_number() OVER (PARTITION BY network, source ORDER BY rotated DESC, seen_at DESC) AS in_source
        FROM seen_delegations WHERE aid NOT IN (${NAMED})
      )
    )
    ORDER BY network = '' DESC, in_network, rotated DESC, seen_at DESC LIMIT -1 OFFSET ?)`;

/** A pending delegation of an agent. */
interface PendingDelegation extends SourceGroup {
  readonly issuedAt: number;
  readonly rotated: boolean;
}

/** The source of rows without one, see the schema. */
const UNKNOWN_SOURCE = 'unknown';
/** The source of agents that this node chose. */
const CHOSEN_BY_NODE: SourceGroup = { source: '', network: '' };

export class SeenDelegations implements Component {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #pending = new Map<Aid, PendingDelegation>();
  readonly #cache = new LruCache<Aid, number>({ maxEntries: MAX_CACHED });
  readonly #flush: RepeatingTask;
  /** Agents written since the last eviction. Unknown at the start, so the first write evicts. */
  #written = WRITES_PER_EVICTION;

  constructor(dependencies: { readonly store: Store; readonly clock: Clock; readonly log: Log }) {
    this.#store = dependencies.store;
    this.#clock = dependencies.clock;
    this.#log = dependencies.log;
    const onError = (error: unknown): void => this.#onWriteError(error);
    this.#flush = every(this.#clock, { firstMs: UNTIL_REQUESTED, periodMs: RETRY_DELAY_MS, onError }, () => {
      this.#write();
      return UNTIL_REQUESTED;
    });
  }

  async start(): Promise<void> {}

  async stop(): Promise<void> {
    this.#flush.stop();
    this.#write();
  }

  /** Unix seconds of the newest delegation met; 0 if none is known. */
  newest(aid: Aid): number {
    const known = this.#cache.get(aid);
    if (known !== undefined) return known;
    const row = this.#store.one`SELECT issued_at FROM seen_delegations WHERE aid = ${aid}`;
    const newest = Math.max(orZero(row, 'issued_at'), this.#pending.get(aid)?.issuedAt ?? 0);
    this.#cache.set(aid, newest);
    return newest;
  }

  /** The source that a stranger connected from, see `sourceGroupOf`; null if it is unknown or this node chose the agent. */
  sourceOf(aid: Aid): string | null {
    const pending = this.#pending.get(aid)?.source;
    const row = this.#store.one`SELECT source FROM seen_delegations WHERE aid = ${aid}`;
    const stored = row === undefined ? '' : textOf(row, 'source');
    const source = stored === '' ? (pending ?? '') : stored;
    return source === '' || source === UNKNOWN_SOURCE ? null : source;
  }

  /**
   * Records a verified delegation.
   * @param source IP address that a stranger connected from; null if this node chose the agent
   */
  note(aid: Aid, issuedAt: number, source: string | null = null): void {
    if (issuedAt > (this.#cache.peek(aid) ?? issuedAt)) this.#cache.set(aid, issuedAt);
    const pending = this.#pending.get(aid);
    if (pending !== undefined && issuedAt <= pending.issuedAt) return;
    if (this.#pending.size === 0) this.#flush.soon(WRITE_DELAY_MS);
    const place = pending?.source === '' || source === null ? CHOSEN_BY_NODE : sourceGroupOf(source);
    this.#pending.set(aid, { ...place, issuedAt, rotated: pending !== undefined });
  }

  /** Strangers are dropped first, so they cannot displace agents that this node chose. */
  #onWriteError(error: unknown): void {
    this.#log.warn({ error }, 'failed to write seen delegations; will retry');
    for (const evictsChosen of [false, true])
      for (const [aid, { source, rotated }] of this.#pending)
        if (this.#pending.size > MAX_PENDING && (evictsChosen || (source !== '' && !rotated)))
          this.#pending.delete(aid);
  }

  #write(): void {
    if (this.#pending.size === 0) return;
    const now = this.#clock.now();
    const evicts = this.#written + this.#pending.size >= WRITES_PER_EVICTION;
    this.#store.transaction(() => {
      for (const [aid, { issuedAt, source, network, rotated }] of this.#pending)
        this.#store.run`
          INSERT INTO seen_delegations (aid, issued_at, seen_at, source, network, rotated)
          VALUES (${aid}, ${issuedAt}, ${now}, ${source}, ${network}, ${Number(rotated)})
          ON CONFLICT (aid) DO UPDATE SET
            source = iif(excluded.source = '', '', source), network = iif(excluded.source = '', '', network),
            rotated = rotated OR excluded.rotated OR issued_at <> excluded.issued_at,
            issued_at = max(issued_at, excluded.issued_at), seen_at = excluded.seen_at`;
      if (evicts) this.#store.run(EVICT, MAX_STORED_AGENTS);
    });
    this.#written = evicts ? 0 : this.#written + this.#pending.size;
    this.#pending.clear();
  }
}
