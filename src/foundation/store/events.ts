/** The event log: one sequence for all agents, a bounded number of events per agent. */
import type { Aid } from '../identity/aid.ts';
import { aidFromRow, integerOf, orZero } from './row.ts';
import type { SqlValue, Store } from './store.ts';
import { aid, integer, type RowOf, Table, text } from './table.ts';

/** Events kept per agent. The oldest are deleted first. */
export const MAX_EVENTS_PER_AGENT = 10_000;

/** Part of an agent's events that one cause may use: one peer, one group, or all strangers together. */
export const MAX_CAUSE_SHARE: number = 1 / 4;

/** Newest events cached in memory. A listener that is notified of an event reads it in the next turn. */
const MAX_FRESH = 64;

const EVENT = new Table('events', {
  seq: integer,
  aid,
  type: text,
  /** Milliseconds since the Unix epoch. */
  at: integer,
  /** JSON. */
  data: text,
});

export type StoredEvent = RowOf<typeof EVENT>;

/** The range of a stream, of one agent or all. */
export interface EventBounds {
  /** The oldest stored event; 0 if there is none. */
  readonly oldestSeq: number;
  /** The latest event, stored or deleted; 0 if there was none. */
  readonly lastSeq: number;
  /** The latest deleted event; 0 if there was none. A cursor before it has missed events. */
  readonly prunedSeq: number;
}

/** Selects events. Omitted fields match all. */
export interface EventFilter {
  readonly aid?: Aid | undefined;
  readonly types?: readonly string[] | undefined;
}

export class EventStore {
  readonly #store: Store;
  readonly #maxPerAgent: number;
  /** Consecutive newest events, valid while nothing is rolled back or deleted. */
  #fresh: StoredEvent[] = [];
  #rollbacks = 0;

  /**
   * Requires that this object is the only writer of events.
   * @param maxPerAgent events kept per agent
   */
  constructor(store: Store, maxPerAgent: number = MAX_EVENTS_PER_AGENT) {
    this.#store = store;
    this.#maxPerAgent = maxPerAgent;
  }

  /**
   * Adds an event and deletes the agent's oldest excess events. Returns its sequence number.
   * @param cause uses a limited part of the log; null for the agent itself
   */
  append(aid: Aid, type: string, at: number, data: string, cause: string | null = null): number {
    const event = this.#store.transaction(() => {
      const seq = this.#number`
        INSERT INTO events (aid, type, at, data, cause)
        VALUES (${aid}, ${type}, ${at}, ${data}, ${cause}) RETURNING seq AS n`;
      const count = this.#number`
        INSERT INTO event_streams (aid, count, pruned_seq) VALUES (${aid}, 1, 0)
        ON CONFLICT (aid) DO UPDATE SET count = count + 1 RETURNING count AS n`;
      if (count > this.#maxPerAgent) this.#deleteOldest(aid, count - this.#maxPerAgent);
      if (cause !== null) this.#limitCause(aid, cause);
      return { seq, aid, type, at, data };
    });
    this.#cacheNewest(event);
    return event.seq;
  }

  #limitCause(aid: Aid, cause: string): void {
    const oldest = this.#number`
      SELECT seq AS n FROM events WHERE aid = ${aid} AND cause = ${cause}
      ORDER BY seq DESC LIMIT 1 OFFSET ${Math.ceil(this.#maxPerAgent * MAX_CAUSE_SHARE)}`;
    if (oldest === 0) return;
    this.#fresh = [];
    const removed = this.#store.run`
      DELETE FROM events WHERE aid = ${aid} AND cause = ${cause} AND seq <= ${oldest}`;
    this.#store.run`
      UPDATE event_streams SET count = count - ${removed}, pruned_seq = max(pruned_seq, ${oldest}) WHERE aid = ${aid}`;
  }

  #cacheNewest(event: StoredEvent): void {
    const { rollbacks } = this.#store;
    const isNext = rollbacks === this.#rollbacks && this.#fresh.at(-1)?.seq === event.seq - 1;
    this.#rollbacks = rollbacks;
    if (!isNext) this.#fresh = [];
    this.#fresh.push(event);
    if (this.#fresh.length > MAX_FRESH) this.#fresh.shift();
  }

  /** The last assigned sequence number; 0 if there is none. */
  lastSeq(): number {
    return this.#number`SELECT seq AS n FROM sqlite_sequence WHERE name = 'events'`;
  }

  /** Events after `seq`, in order. */
  after(seq: number, limit: number, { aid, types }: EventFilter = {}): StoredEvent[] {
    const [oldest] = this.#fresh;
    const isFresh = oldest !== undefined && oldest.seq <= seq + 1 && this.#rollbacks === this.#store.rollbacks;
    if (isFresh && aid === undefined && types === undefined)
      return this.#fresh.filter((event) => event.seq > seq).slice(0, limit);
    const conditions = ['seq > ?'];
    const values: SqlValue[] = [seq];
    if (aid !== undefined) {
      conditions.push('aid = ?');
      values.push(aid);
    }
    if (types !== undefined) {
      conditions.push('type IN (SELECT value FROM json_each(?))');
      values.push(JSON.stringify(types));
    }
    const sql = `SELECT * FROM events WHERE ${conditions.join(' AND ')} ORDER BY seq LIMIT ?`;
    return this.#store.all(sql, ...values, limit).map(EVENT.read);
  }

  bounds(aid?: Aid): EventBounds {
    if (aid === undefined) {
      return {
        oldestSeq: this.#number`SELECT min(seq) AS n FROM events`,
        lastSeq: this.lastSeq(),
        prunedSeq: this.#number`SELECT max(pruned_seq) AS n FROM event_streams`,
      };
    }
    const prunedSeq = this.#number`SELECT pruned_seq AS n FROM event_streams WHERE aid = ${aid}`;
    const newest = this.#number`SELECT max(seq) AS n FROM events WHERE aid = ${aid}`;
    return {
      oldestSeq: this.#number`SELECT min(seq) AS n FROM events WHERE aid = ${aid}`,
      lastSeq: Math.max(newest, prunedSeq),
      prunedSeq,
    };
  }

  /**
   * Deletes events before `at` (Unix milliseconds), oldest first, at most `limit`.
   * @returns the number of deleted events
   */
  deleteBefore(at: number, limit: number): number {
    return this.#store.transaction(() => {
      const oldest = this.#store.all`SELECT aid, at FROM events ORDER BY seq LIMIT ${limit}`;
      // Sequence numbers follow time unless the clock was corrected. An old event after a newer one is kept until the
      // newer one expires.
      const young = oldest.findIndex((row) => integerOf(row, 'at') >= at);
      const expired = young < 0 ? oldest : oldest.slice(0, young);
      const byAgent = Map.groupBy(expired, (row) => aidFromRow(row, 'aid'));
      for (const [aid, rows] of byAgent) this.#deleteOldest(aid, rows.length);
      return expired.length;
    });
  }

  /** Deletes all events of an agent. */
  forget(aid: Aid): void {
    this.#store.transaction(() => {
      const { lastSeq } = this.bounds(aid);
      this.#fresh = [];
      this.#store.run`DELETE FROM events WHERE aid = ${aid}`;
      this.#store.run`UPDATE event_streams SET count = 0, pruned_seq = ${lastSeq} WHERE aid = ${aid}`;
    });
  }

  #deleteOldest(aid: Aid, count: number): void {
    this.#fresh = [];
    const last = this.#number`
      SELECT seq AS n FROM events WHERE aid = ${aid} ORDER BY seq LIMIT 1 OFFSET ${count - 1}`;
    const removed = this.#store.run`DELETE FROM events WHERE aid = ${aid} AND seq <= ${last}`;
    this.#store.run`
      UPDATE event_streams SET count = count - ${removed}, pruned_seq = max(pruned_seq, ${last}) WHERE aid = ${aid}`;
  }

  /** Column `n` of the first row; 0 if there is none. */
  #number(sql: TemplateStringsArray, ...values: SqlValue[]): number {
    return orZero(this.#store.one(sql, ...values), 'n');
  }
}
