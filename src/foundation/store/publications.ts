/** The tables of what is published. Times are Unix milliseconds. */
import type { Aid } from '../identity/aid.ts';
import { RECORD, type RecordType } from '../records/types.ts';
import { aidFromRow, blobOf, flagOf, integerOf, orNull, textOf, wordOf } from './row.ts';
import type { Row, Store } from './store.ts';

/** `lapsed`: not alive, so not renewed. `held`: the network holds a newer record from elsewhere. */
export type PublisherState = (typeof PUBLISHER_STATES)[number];
const PUBLISHER_STATES = ['active', 'lapsed', 'held'] as const;

export interface PublisherRow {
  readonly aid: Aid;
  /** The last sequence number that was given out. */
  readonly seq: number;
  /** The next publication may jump ahead of what the network holds: somebody asked for it. */
  readonly claim: boolean;
  readonly state: PublisherState;
  /** When the scheduler looks at it; null never. */
  readonly dueAt: number | null;
  /** Attempts in a row that nobody acknowledged. */
  readonly failures: number;
}

/** A record that is kept on the network. */
export interface Publication {
  readonly type: RecordType;
  /** The service name of a service record; empty for the others. */
  readonly name: string;
  /** Empty for endpoints, which are made when they are published. */
  readonly payload: Uint8Array;
  /** Seconds. */
  readonly ttl: number;
}

export interface PublicationRow extends Publication {
  readonly aid: Aid;
  /** Sequence number of the last acknowledged publication; 0 where there was none. */
  readonly seq: number;
  readonly publishedAt: number | null;
  readonly replicas: number;
  /** Above 0: it has to go out whether or not its time has come. Grows with every change until then. */
  readonly dirty: number;
}

/** A publication that at least one node acknowledged. */
export interface Acknowledgement {
  readonly type: RecordType;
  readonly name: string;
  readonly seq: number;
  readonly publishedAt: number;
  readonly replicas: number;
  /** `dirty` of the row that went out: where it has changed since, it has to go out again. */
  readonly dirty: number;
  /** As many nodes as there are to have keep it: it need not go out again when the network grows. */
  readonly settled: boolean;
}

const PUBLISHER = 'aid, seq, claim, state, due_at, failures';
const PUBLICATION = 'aid, type, name, payload, ttl, seq, published_at, replicas, dirty';

function publisherOf(row: Row): PublisherRow {
  return {
    aid: aidFromRow(row, 'aid'),
    seq: integerOf(row, 'seq'),
    claim: flagOf(row, 'claim'),
    state: wordOf(row, 'state', PUBLISHER_STATES),
    dueAt: orNull(integerOf, row, 'due_at'),
    failures: integerOf(row, 'failures'),
  };
}

function publicationOf(row: Row): PublicationRow {
  return {
    aid: aidFromRow(row, 'aid'),
    type: integerOf(row, 'type'),
    name: textOf(row, 'name'),
    payload: blobOf(row, 'payload'),
    ttl: integerOf(row, 'ttl'),
    seq: integerOf(row, 'seq'),
    publishedAt: orNull(integerOf, row, 'published_at'),
    replicas: integerOf(row, 'replicas'),
    dirty: integerOf(row, 'dirty'),
  };
}

export class PublicationStore {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  publisher(aid: Aid): PublisherRow | null {
    const row = this.#store.one(`SELECT ${PUBLISHER} FROM publishers WHERE aid = ?`, aid);
    return row === undefined ? null : publisherOf(row);
  }

  /**
   * Notes that somebody asked for a publication: the next one may jump ahead of what the network
   * holds. What was held back goes out anew.
   */
  claim(aid: Aid, dueAt: number | null): void {
    this.#store.transaction(() => {
      this.#store.run(
        `UPDATE publications SET dirty = dirty + 1
         WHERE aid = ?1 AND EXISTS (SELECT 1 FROM publishers WHERE aid = ?1 AND state = 'held')`,
        aid,
      );
      this.#store.run(
        `INSERT INTO publishers (aid, claim, due_at) VALUES (?1, 1, ?2)
         ON CONFLICT (aid) DO UPDATE SET claim = 1, state = 'active', failures = 0,
           due_at = coalesce(min(due_at, ?2), due_at, ?2)`,
        aid,
        dueAt,
      );
    });
  }

  /** Adds a publication, or changes what it says; it has to go out then. The publisher exists. */
  put(aid: Aid, { type, name, payload, ttl }: Publication): void {
    this.#store.run(
      `INSERT INTO publications (aid, type, name, payload, ttl) VALUES (?, ?, ?, ?, ?)
       ON CONFLICT (aid, type, name) DO UPDATE SET payload = excluded.payload, ttl = excluded.ttl, dirty = dirty + 1`,
      aid,
      type,
      name,
      payload,
      ttl,
    );
  }

  /** True where there was such a publication. */
  remove(aid: Aid, type: RecordType, name: string): boolean {
    return this.#store.run('DELETE FROM publications WHERE aid = ? AND type = ? AND name = ?', aid, type, name) > 0;
  }

  publications(aid: Aid): PublicationRow[] {
    return this.#store.all(`SELECT ${PUBLICATION} FROM publications WHERE aid = ?`, aid).map(publicationOf);
  }

  /** Everything that several publishers publish, by AID. */
  publicationsOf(aids: readonly Aid[]): Map<Aid, PublicationRow[]> {
    const rows = this.#store
      .all(
        `SELECT ${PUBLICATION} FROM publications WHERE aid IN (SELECT value FROM json_each(?))`,
        JSON.stringify(aids),
      )
      .map(publicationOf);
    return Map.groupBy(rows, (row) => row.aid);
  }

  publishersOf(aids: readonly Aid[]): Map<Aid, PublisherRow> {
    const rows = this.#store
      .all(`SELECT ${PUBLISHER} FROM publishers WHERE aid IN (SELECT value FROM json_each(?))`, JSON.stringify(aids))
      .map(publisherOf);
    return new Map(rows.map((row) => [row.aid, row]));
  }

  /**
   * Gives out `count` sequence numbers above all that were given out before and above `floor`; they
   * are on disk when this returns. The first of them, or null where the publisher is gone.
   */
  reserve(aid: Aid, floor: number, count: number): number | null {
    const row = this.#store.one(
      'UPDATE publishers SET seq = max(seq, ?) + ? WHERE aid = ? RETURNING seq',
      floor,
      count,
      aid,
    );
    return row === undefined ? null : integerOf(row, 'seq') - count + 1;
  }

  /** Keeps what was acknowledged. A publication that was removed meanwhile stays removed. */
  acknowledge(aid: Aid, acknowledgements: readonly Acknowledgement[]): void {
    for (const { type, name, seq, publishedAt, replicas, dirty, settled } of acknowledgements)
      this.#store.run(
        `UPDATE publications SET seq = ?, published_at = ?, replicas = ?, settled = ?,
           dirty = CASE dirty WHEN ? THEN 0 ELSE dirty END
         WHERE aid = ? AND type = ? AND name = ?`,
        seq,
        publishedAt,
        replicas,
        settled ? 1 : 0,
        dirty,
        aid,
        type,
        name,
      );
  }

  /** Sets how a publisher goes on. */
  schedule(aid: Aid, next: Pick<PublisherRow, 'claim' | 'state' | 'dueAt' | 'failures'>): void {
    this.#store.run(
      'UPDATE publishers SET claim = ?, state = ?, due_at = ?, failures = ? WHERE aid = ?',
      next.claim ? 1 : 0,
      next.state,
      next.dueAt,
      next.failures,
      aid,
    );
  }

  transaction<T>(work: () => T): T {
    return this.#store.transaction(work);
  }

  /** Publishers whose time has come: first those that somebody asked for, then the longest overdue. */
  due(now: number, limit: number): Aid[] {
    const sql = 'SELECT aid FROM publishers WHERE claim = ? AND due_at <= ? ORDER BY due_at LIMIT ?';
    const claimed = this.#store.all(sql, 1, now, limit);
    const others = claimed.length < limit ? this.#store.all(sql, 0, now, limit - claimed.length) : [];
    return [...claimed, ...others].map((row) => aidFromRow(row, 'aid'));
  }

  /** When the next publisher is due after `now`; null where none is. */
  nextDue(now: number): number | null {
    const sql = 'SELECT min(due_at) AS at FROM publishers WHERE claim = ? AND due_at > ?';
    const times = [0, 1]
      .map((claim) => orNull(integerOf, this.#store.one(sql, claim, now), 'at'))
      .filter((at) => at !== null);
    return times.length === 0 ? null : Math.min(...times);
  }

  /** Publishers that are not alive. */
  lapsed(): Aid[] {
    return this.#store.all("SELECT aid FROM publishers WHERE state = 'lapsed'").map((row) => aidFromRow(row, 'aid'));
  }

  /** After a start, or a leap of the clock: what waited for somebody, a key to be unlocked for example, is looked at again. */
  resume(now: number): void {
    this.#store.run("UPDATE publishers SET due_at = ? WHERE state = 'active' AND due_at IS NULL", now);
  }

  /**
   * After the clock was set back: what was published in the future, where no node believes it, goes
   * out again; and whoever waits for a time that the wrong clock showed is looked at now.
   */
  mendTimes(now: number): void {
    this.#store.transaction(() => {
      this.#store.run(
        `UPDATE publishers SET due_at = ?1
         WHERE due_at > ?1 AND (state = 'lapsed' OR state = 'active' AND EXISTS (
           SELECT 1 FROM publications p WHERE p.aid = publishers.aid AND (p.dirty > 0 OR p.published_at IS NULL
             OR p.published_at > ?1 OR p.published_at + p.ttl * 500 < publishers.due_at)))`,
        now,
      );
      this.#store.run('UPDATE publications SET dirty = dirty + 1 WHERE published_at > ?', now);
    });
  }

  /** Lets a lapsed publisher go on. */
  revive(aid: Aid, dueAt: number): void {
    this.#store.run(
      "UPDATE publishers SET state = 'active', due_at = ? WHERE aid = ? AND state = 'lapsed'",
      dueAt,
      aid,
    );
  }

  /** Everything of one publisher has to go out anew. */
  touch(aid: Aid): void {
    this.#store.run('UPDATE publications SET dirty = dirty + 1 WHERE aid = ?', aid);
  }

  /** The endpoint records that are out have to go out anew, that of one publisher or of all. */
  touchEndpoints(dueAt: number, only?: Aid): void {
    this.#store.transaction(() => {
      this.#store.run(
        'UPDATE publications SET dirty = dirty + 1 WHERE type = ?1 AND published_at IS NOT NULL AND (?2 IS NULL OR aid = ?2)',
        RECORD.endpoints,
        only ?? null,
      );
      this.#store.run(
        `UPDATE publishers SET due_at = min(coalesce(due_at, ?1), ?1) WHERE state = 'active' AND (?3 IS NULL OR aid = ?3)
         AND EXISTS (SELECT 1 FROM publications p WHERE p.aid = publishers.aid AND p.type = ?2 AND p.dirty > 0)`,
        dueAt,
        RECORD.endpoints,
        only ?? null,
      );
    });
  }

  /** What fewer nodes keep than could goes out again. */
  touchUnsettled(dueAt: number): void {
    this.#store.transaction(() => {
      this.#store.run(
        `UPDATE publishers SET due_at = min(coalesce(due_at, ?1), ?1)
         WHERE state = 'active' AND aid IN (SELECT aid FROM publications WHERE settled = 0)`,
        dueAt,
      );
      this.#store.run('UPDATE publications SET dirty = dirty + 1 WHERE settled = 0');
    });
  }

  /** Agents that have no endpoint record to keep get one that is due at `dueAt`. Returns how many. */
  adopt(dueAt: number, ttl: number): number {
    const missing = `FROM agents a WHERE NOT EXISTS
      (SELECT 1 FROM publications p WHERE p.aid = a.aid AND p.type = ?1 AND p.name = '')`;
    return this.#store.transaction(() => {
      this.#store.run(
        `INSERT INTO publishers (aid, claim, due_at) SELECT aid, 1, ?2 ${missing}
         ON CONFLICT (aid) DO UPDATE SET claim = 1, due_at = coalesce(min(due_at, ?2), due_at, ?2)`,
        RECORD.endpoints,
        dueAt,
      );
      return this.#store.run(
        `INSERT INTO publications (aid, type, name, payload, ttl) SELECT aid, ?1, '', x'', ?2 ${missing}`,
        RECORD.endpoints,
        ttl,
      );
    });
  }
}
