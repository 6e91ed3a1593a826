/** The tables of published records. Times are Unix milliseconds. */
import type { DueTable } from '../due-queue.ts';
import type { Aid } from '../identity/aid.ts';
import { Listeners } from '../listeners.ts';
import { RECORD, type RecordType } from '../records/types.ts';
import { aidFromRow, blobOf, integerOf, orNull, textOf } from './row.ts';
import type { Row, Store } from './store.ts';
import { aid, type Column, flag, integer, nullable, type RowOf, Table, text, word } from './table.ts';

/** `held`: the network has a newer record that another node published, so this node does not renew. */
const PUBLISHER_STATES = ['active', 'held'] as const;

const PUBLISHER_STATE = new Table('publishers', {
  aid,
  state: word(PUBLISHER_STATES),
  /** Next time that the scheduler handles it; null: never. */
  dueAt: nullable(integer),
});

const PUBLISHER = new Table('publishers', {
  ...PUBLISHER_STATE.columns,
  /** The last sequence number that was assigned. */
  seq: integer,
  /** The user requested it, so the next publication may exceed the sequence number of the network. */
  claim: flag,
  /** Consecutive attempts without an acknowledgment. */
  failures: integer,
});

export type PublisherState = Omit<RowOf<typeof PUBLISHER_STATE>, 'aid'>;
export type PublisherRow = RowOf<typeof PUBLISHER>;

/** Most publications are endpoints, which have no payload. A shared empty array saves a fifth of the time of a list. */
const NO_PAYLOAD = new Uint8Array(0);

const payload: Column<Uint8Array> = {
  read: (row, column) => orNull(blobOf, row, column) ?? NO_PAYLOAD,
  write: (bytes) => bytes,
};

const PUBLICATION = new Table('publications', {
  aid,
  type: integer,
  /** The service name of a service record; empty for other types. */
  name: text,
  /** Empty for endpoints, which are built when they are published. */
  payload,
  /** Seconds. */
  ttl: integer,
  /** Sequence number of the last acknowledged publication; 0 if there was none. */
  seq: integer,
  publishedAt: nullable(integer),
  replicas: integer,
  /** Above 0: it must be published now, even if no renewal is due. Increases with every change until then. */
  dirty: integer,
});

export type PublicationRow = RowOf<typeof PUBLICATION>;

/** A record that this node publishes. */
export type Publication = Pick<PublicationRow, 'type' | 'name' | 'payload' | 'ttl'>;

/** Identifies one publication of a record. */
export type PublishedRow = Pick<PublicationRow, 'type' | 'name' | 'seq'>;

/** A publication that at least one node acknowledged. `dirty` is the value of the row that was published. */
export interface Acknowledgement extends PublishedRow, Pick<PublicationRow, 'replicas' | 'dirty'> {
  readonly publishedAt: number;
  /** Enough nodes store the record, so a larger network needs no new publication. */
  readonly settled: boolean;
  /** Digest of the node's addresses in an endpoint record; null for other records. */
  readonly digest: string | null;
}

export class PublicationStore {
  /** Notified of the agent with changed rows; null if any agent may have changed. */
  readonly changed: Listeners<[Aid | null]> = new Listeners();
  readonly #store: Store;
  /**
   * The publishers: first those with a request of the user, then the most overdue. After a clock was ahead, all times are
   * repaired, because records from the future must be published again too.
   */
  readonly publishers: DueTable<Aid> = {
    due: (now, limit) => {
      const claimed = this.#due(1, now, limit);
      const rows = claimed.length < limit ? [...claimed, ...this.#due(0, now, limit - claimed.length)] : claimed;
      return rows.map((row) => {
        const aid = aidFromRow(row, 'aid');
        return { id: aid, key: aid, attempts: integerOf(row, 'failures'), item: aid };
      });
    },
    nextDue: (after) => {
      const sql = 'SELECT min(due_at) AS at FROM publishers WHERE claim = ? AND due_at > ?';
      const times = [0, 1].map((claim) => orNull(integerOf, this.#store.one(sql, claim, after), 'at'));
      return times.reduce((a, b) => (a === null || b === null ? (a ?? b) : Math.min(a, b)), null);
    },
    postpone: ({ item }, at) => {
      this.changed.notify(item);
      this.#store.run`UPDATE publishers SET due_at = ${at}, failures = failures + 1 WHERE aid = ${item}`;
    },
    makeDue: (now) => this.repairTimes(now),
  };
  /** See `Store.commit`. */
  readonly commit: Store['commit'];

  constructor(store: Store) {
    this.#store = store;
    this.commit = store.commit.bind(store);
  }

  publisher(aid: Aid): PublisherRow | null {
    return PUBLISHER.one(this.#store)`WHERE aid = ${aid}`;
  }

  /**
   * Records that the user requested a publication: the next one may exceed the sequence number of the network. A held
   * publisher publishes again.
   */
  claim(aid: Aid, dueAt: number | null): void {
    this.changed.notify(aid);
    this.#store.transaction(() => {
      this.#store.run`
        UPDATE publications SET dirty = dirty + 1
        WHERE aid = ${aid} AND EXISTS (SELECT 1 FROM publishers WHERE aid = ${aid} AND state = 'held')`;
      this.#store.run`
        INSERT INTO publishers (aid, claim, due_at) VALUES (${aid}, 1, ${dueAt})
        ON CONFLICT (aid) DO UPDATE SET claim = 1, state = 'active', failures = 0,
          due_at = coalesce(min(due_at, excluded.due_at), due_at, excluded.due_at)`;
    });
  }

  /** Adds a publication or changes its content, and marks it for publication. The publisher must exist. */
  put(aid: Aid, { type, name, payload, ttl }: Publication): void {
    this.changed.notify(aid);
    PUBLICATION.insert(
      this.#store,
      { aid, type, name, payload, ttl },
      `ON CONFLICT (aid, type, name) DO UPDATE SET payload = excluded.payload, ttl = excluded.ttl, dirty = dirty + 1`,
    );
  }

  /** True if the publication existed. */
  remove(aid: Aid, type: RecordType, name: string): boolean {
    this.changed.notify(aid);
    return this.#store.run`DELETE FROM publications WHERE aid = ${aid} AND type = ${type} AND name = ${name}` > 0;
  }

  publications(aid: Aid): PublicationRow[] {
    return PUBLICATION.all(this.#store)`WHERE aid = ${aid}`;
  }

  /** The publications of several agents with the given types, by AID. */
  publicationsOf(aids: readonly Aid[], types: readonly RecordType[]): Map<Aid, PublicationRow[]> {
    const rows = this.#store.all`
      SELECT aid, type, name, nullif(payload, x'') AS payload, ttl, seq, published_at, replicas, dirty
      FROM publications WHERE aid IN (SELECT value FROM json_each(${JSON.stringify(aids)}))
        AND type IN (SELECT value FROM json_each(${JSON.stringify(types)}))`;
    return Map.groupBy(rows.map(PUBLICATION.read), (row) => row.aid);
  }

  /** The states of several publishers, by AID. */
  publishersOf(aids: readonly Aid[]): Map<Aid, PublisherState> {
    const states = PUBLISHER_STATE.all(
      this.#store,
    )`WHERE aid IN (SELECT value FROM json_each(${JSON.stringify(aids)}))`;
    return new Map(states.map((one) => [one.aid, one]));
  }

  /**
   * Assigns `count` sequence numbers above `floor` and above all assigned ones. They are on disk when this returns or
   * when the enclosing transaction ends. Returns the first number; null if the publisher was deleted.
   */
  reserve(aid: Aid, floor: number, count: number): number | null {
    const row = this.#store.one`
      UPDATE publishers SET seq = max(seq, ${floor}) + ${count} WHERE aid = ${aid} RETURNING seq`;
    return row === undefined ? null : integerOf(row, 'seq') - count + 1;
  }

  /**
   * Stores acknowledgments. A publication that was removed meanwhile stays removed, and one that changed meanwhile
   * remains marked.
   */
  acknowledge(aid: Aid, acknowledgements: readonly Acknowledgement[]): void {
    this.changed.notify(aid);
    for (const { type, name, seq, publishedAt, replicas, dirty, settled, digest } of acknowledgements)
      this.#store.run`
        UPDATE publications SET seq = ${seq}, published_at = ${publishedAt}, replicas = ${replicas},
          settled = ${settled ? 1 : 0}, digest = ${digest}, dirty = CASE dirty WHEN ${dirty} THEN 0 ELSE dirty END
        WHERE aid = ${aid} AND type = ${type} AND name = ${name}`;
  }

  /** Stores results that arrived after the acknowledgment, unless the record was published again. */
  complete(
    aid: Aid,
    { type, name, seq, replicas, settled }: Omit<Acknowledgement, 'publishedAt' | 'dirty' | 'digest'>,
  ): void {
    this.changed.notify(aid);
    this.#store.run`
      UPDATE publications SET replicas = ${replicas}, settled = ${settled ? 1 : 0}
      WHERE aid = ${aid} AND type = ${type} AND name = ${name} AND seq = ${seq}`;
  }

  /**
   * A newer record replaced an acknowledged publication: marks it for publication, unless it was already published
   * again.
   */
  superseded(aid: Aid, { type, name, seq }: PublishedRow, dueAt: number): void {
    const changes = this.#store.run`
      UPDATE publications SET dirty = dirty + 1
      WHERE aid = ${aid} AND type = ${type} AND name = ${name} AND seq = ${seq}`;
    if (changes > 0) this.claim(aid, dueAt);
  }

  /** Sets the next step of a publisher. */
  schedule(aid: Aid, { claim, state, dueAt, failures }: Omit<PublisherRow, 'aid' | 'seq'>): void {
    this.changed.notify(aid);
    PUBLISHER.update(this.#store, { claim, state, dueAt, failures }, 'WHERE aid = ?', aid);
  }

  transaction<T>(work: () => T): T {
    return this.#store.transaction(work);
  }

  #due(claim: 0 | 1, now: number, limit: number): Row[] {
    const sql = 'SELECT aid, failures FROM publishers WHERE claim = ? AND due_at <= ? ORDER BY due_at LIMIT ?';
    return this.#store.all(sql, claim, now, limit);
  }

  /**
   * Makes waiting publishers due after a start or a clock change, for example if they wait for a key to be unlocked.
   */
  resume(now: number): void {
    this.changed.notify(null);
    this.#store.run`UPDATE publishers SET due_at = ${now} WHERE state = 'active' AND due_at IS NULL`;
  }

  /**
   * Repairs due times after the clock was set back. Records published in the future are published again, because no
   * node accepts them. Publishers that wait for a time of the wrong clock are due now.
   */
  repairTimes(now: number): void {
    this.changed.notify(null);
    this.#store.transaction(() => {
      this.#store.run`
        UPDATE publishers SET due_at = ${now}
        WHERE due_at > ${now} AND state = 'active' AND EXISTS (
          SELECT 1 FROM publications p WHERE p.aid = publishers.aid AND (p.dirty > 0 OR p.published_at IS NULL
            OR p.published_at > ${now} OR p.published_at + p.ttl * 500 < publishers.due_at))`;
      this.#store.run`UPDATE publications SET dirty = dirty + 1 WHERE published_at > ${now}`;
    });
  }

  /** Marks all publications of one publisher. */
  touch(aid: Aid): void {
    this.changed.notify(aid);
    this.#store.run`UPDATE publications SET dirty = dirty + 1 WHERE aid = ${aid}`;
  }

  /** Marks the endpoint record of a publisher if it is published. */
  touchEndpoints(aid: Aid, dueAt: number): void {
    this.changed.notify(aid);
    this.#store.transaction(() => {
      this.#store.run`
        UPDATE publications SET dirty = dirty + 1
        WHERE type = ${RECORD.endpoints} AND published_at IS NOT NULL AND aid = ${aid}`;
      this.#advanceDueTime(dueAt, aid, null);
    });
  }

  /**
   * Marks published endpoint records with an unknown digest or a digest that does not start with `now`.
   * @param first its record is published before all others
   */
  touchMoved(now: string, dueAt: number, first: Aid): void {
    this.changed.notify(null);
    this.#store.transaction(() => {
      const others = this.#store.run`
        UPDATE publications SET dirty = dirty + 1, digest = NULL
        WHERE type = ${RECORD.endpoints} AND published_at IS NOT NULL
          AND substr(digest, 1, ${now.length}) IS NOT ${now}`;
      if (others > 0) this.#advanceDueTime(dueAt, null, first);
    });
  }

  /** Makes active publishers with a marked endpoint record, one or all of them, due at `dueAt` at the latest. */
  #advanceDueTime(dueAt: number, only: Aid | null, first: Aid | null): void {
    this.#store.run`
      UPDATE publishers SET due_at = CASE WHEN aid IS ${first} THEN 0 ELSE min(coalesce(due_at, ${dueAt}), ${dueAt}) END
      WHERE state = 'active' AND (${only} IS NULL OR aid = ${only}) AND EXISTS (SELECT 1 FROM publications p
        WHERE p.aid = publishers.aid AND p.type = ${RECORD.endpoints} AND p.dirty > 0)`;
  }

  /**
   * Called before an endpoint record with this digest is published. If the published record has another digest, the
   * network may have either of them after this call. The row then has no digest, which is on disk when this returns.
   */
  clearOtherDigest(aid: Aid, digest: string): void {
    this.#store.run`
      UPDATE publications SET digest = NULL
      WHERE aid = ${aid} AND type = ${RECORD.endpoints} AND digest IS NOT NULL AND digest <> ${digest}`;
  }

  /** Records, newest first, that enough nodes store and that do not expire before `until`. @param now none are newer */
  newestSettled(now: number, until: number, limit: number): (Pick<PublicationRow, 'aid'> & PublishedRow)[] {
    const rows = this.#store.all`
      SELECT aid, type, name, seq FROM publications
      WHERE settled = 1 AND dirty = 0 AND published_at <= ${now} AND published_at + ttl * 1000 > ${until}
      ORDER BY published_at DESC LIMIT ${limit}`;
    return rows.map((row) => ({
      aid: aidFromRow(row, 'aid'),
      type: integerOf(row, 'type'),
      name: textOf(row, 'name'),
      seq: integerOf(row, 'seq'),
    }));
  }

  /** Marks all published records, because the network does not know them. */
  touchAll(dueAt: number): void {
    this.changed.notify(null);
    this.#store.transaction(() => {
      this.#store.run('UPDATE publications SET dirty = dirty + 1 WHERE published_at IS NOT NULL');
      this.#store.run`
        UPDATE publishers SET due_at = min(coalesce(due_at, ${dueAt}), ${dueAt})
        WHERE state = 'active' AND EXISTS (SELECT 1 FROM publications p
          WHERE p.aid = publishers.aid AND p.published_at IS NOT NULL)`;
    });
  }

  /**
   * Spreads overdue renewals of records that have not expired over a part of the remaining time. Otherwise all of them
   * would be due together after a pause. Changed and failed publications remain due.
   * @param part of the remaining time, 0 to 1
   */
  spreadOverdue(now: number, part: number): void {
    this.changed.notify(null);
    this.#store.run`
      WITH ends AS (
        SELECT aid, min(published_at + ttl * 1000) AS at FROM publications
        GROUP BY aid HAVING max(dirty) = 0 AND count(published_at) = count(*) AND max(published_at) <= ${now}
      ), late AS (
        SELECT aid, ends.at, row_number() OVER (ORDER BY ends.at, aid) AS place, count(*) OVER () AS total
        FROM ends JOIN publishers USING (aid)
        WHERE state = 'active' AND claim = 0 AND failures = 0 AND due_at <= ${now} AND ends.at > ${now}
      )
      UPDATE publishers SET due_at = ${now} + CAST((late.at - ${now}) * ${part} * late.place / late.total AS INTEGER)
      FROM late WHERE publishers.aid = late.aid`;
  }

  /** Marks all records of one publisher for publication when a network is available: see `touchUnsettled`. */
  unsettle(aid: Aid): void {
    this.#store.run`UPDATE publications SET settled = 0 WHERE aid = ${aid} AND settled = 1`;
  }

  /** Marks records that fewer nodes store than possible. */
  touchUnsettled(dueAt: number): void {
    this.changed.notify(null);
    this.#store.transaction(() => {
      this.#store.run`
        UPDATE publishers SET due_at = min(coalesce(due_at, ${dueAt}), ${dueAt})
        WHERE state = 'active' AND aid IN (SELECT aid FROM publications WHERE settled = 0)`;
      this.#store.run('UPDATE publications SET dirty = dirty + 1 WHERE settled = 0');
    });
  }

  /** Creates a due endpoint record for agents that have none and are published automatically. Returns their number. */
  createMissingEndpoints(dueAt: number, ttl: number): number {
    this.changed.notify(null);
    const missing = `FROM agents a WHERE a.is_held = 0 AND NOT EXISTS
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
