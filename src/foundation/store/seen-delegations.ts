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
import { orZero } from './row.ts';
import type { Store } from './store.ts';

/** Agents kept in addition to the named ones. */
export const MAX_REMEMBERED_AGENTS = 20_000;
/** Writes between two evictions. An eviction compares all agents and blocks the event loop. */
const TRIM_AFTER_AGENTS = 10_000;
/** Pending agents while the disk rejects writes. */
const MAX_UNWRITTEN = 100_000;
/** Agents with a cached delegation. Every new link reads the delegations of both agents. */
const MAX_AT_HAND = 8192;
/** Delay after which pending delegations are written together, in milliseconds. */
const WRITE_PAUSE_MS = 5000;
/** The delay after a failed write, in milliseconds. */
const RETRY_PAUSE_MS = 60_000;

/** AIDs that the owner named, or that this node uses because of a choice of the owner. */
const NAMED = `
  SELECT aid FROM agents
  UNION SELECT aid FROM access_entries WHERE aid IS NOT NULL
  UNION SELECT peer FROM chat_pairs WHERE state IN ('friends', 'out_pending', 'blocked')
  UNION SELECT peer FROM room_peers
  UNION SELECT target FROM room_invites_out
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
const FORGET = `
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
interface Met extends SourceGroup {
  readonly issuedAt: number;
  readonly rotated: boolean;
}

/** The source of agents that this node chose. */
const CHOSEN: SourceGroup = { source: '', network: '' };
export class SeenDelegations implements Component {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #unwritten = new Map<Aid, Met>();
  readonly #atHand = new LruCache<Aid, number>({ maxEntries: MAX_AT_HAND });
  readonly #flush: RepeatingTask;
  /** Agents written since the last eviction. Unknown at the start, so the first write evicts. */
  #written = TRIM_AFTER_AGENTS;

  constructor(dependencies: { readonly store: Store; readonly clock: Clock; readonly log: Log }) {
    this.#store = dependencies.store;
    this.#clock = dependencies.clock;
    this.#log = dependencies.log;
    const onError = (error: unknown): void => this.#unwritable(error);
    this.#flush = every(this.#clock, { firstMs: UNTIL_REQUESTED, periodMs: RETRY_PAUSE_MS, onError }, () => {
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
    const known = this.#atHand.get(aid);
    if (known !== undefined) return known;
    const row = this.#store.one`SELECT issued_at FROM seen_delegations WHERE aid = ${aid}`;
    const newest = Math.max(orZero(row, 'issued_at'), this.#unwritten.get(aid)?.issuedAt ?? 0);
    this.#atHand.set(aid, newest);
    return newest;
  }

  /**
   * Records a verified delegation.
   * @param source IP address that a stranger connected from; null if this node chose the agent
   */
  note(aid: Aid, issuedAt: number, source: string | null = null): void {
    if (issuedAt > (this.#atHand.peek(aid) ?? issuedAt)) this.#atHand.set(aid, issuedAt);
    const waiting = this.#unwritten.get(aid);
    if (waiting !== undefined && issuedAt <= waiting.issuedAt) return;
    if (this.#unwritten.size === 0) this.#flush.soon(WRITE_PAUSE_MS);
    const place = waiting?.source === '' || source === null ? CHOSEN : sourceGroupOf(source);
    this.#unwritten.set(aid, { ...place, issuedAt, rotated: waiting !== undefined });
  }

  /** Strangers are dropped first, so they cannot displace agents that this node chose. */
  #unwritable(error: unknown): void {
    this.#log.warn({ error }, 'failed to write seen delegations; will retry');
    for (const isChosen of [false, true])
      for (const [aid, { source, rotated }] of this.#unwritten)
        if (this.#unwritten.size > MAX_UNWRITTEN && (isChosen || (source !== '' && !rotated)))
          this.#unwritten.delete(aid);
  }

  #write(): void {
    if (this.#unwritten.size === 0) return;
    const now = this.#clock.now();
    const isCrowded = this.#written + this.#unwritten.size >= TRIM_AFTER_AGENTS;
    this.#store.transaction(() => {
      for (const [aid, { issuedAt, source, network, rotated }] of this.#unwritten)
        this.#store.run`
          INSERT INTO seen_delegations (aid, issued_at, seen_at, source, network, rotated)
          VALUES (${aid}, ${issuedAt}, ${now}, ${source}, ${network}, ${Number(rotated)})
          ON CONFLICT (aid) DO UPDATE SET
            source = iif(excluded.source = '', '', source), network = iif(excluded.source = '', '', network),
            rotated = rotated OR excluded.rotated OR issued_at <> excluded.issued_at,
            issued_at = max(issued_at, excluded.issued_at), seen_at = excluded.seen_at`;
      if (isCrowded) this.#store.run(FORGET, MAX_REMEMBERED_AGENTS);
    });
    this.#written = isCrowded ? 0 : this.#written + this.#unwritten.size;
    this.#unwritten.clear();
  }
}
