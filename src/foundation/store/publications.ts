/** The tables of what is published. Times are Unix milliseconds. */
import type { Aid } from '../identity/aid.ts';
import { Listeners } from '../listeners.ts';
import { RECORD, type RecordType } from '../records/types.ts';
import { GroupCommit } from './group-commit.ts';
import { aidFromRow, blobOf, flagOf, integerOf, orNull, textOf, wordOf } from './row.ts';
import type { Row, Store, WrittenSoon } from './store.ts';

/** `lapsed`: not alive, so not renewed. `held`: the network holds a newer record from elsewhere. */
const PUBLISHER_STATES = ['active', 'lapsed', 'held'] as const;

export type PublisherState = Readonly<ReturnType<typeof stateOf>>;

export type PublisherRow = Readonly<ReturnType<typeof publisherOf>>;

/** Most publications are endpoints, whose rows hold none: an array for each would take a list a fifth of its time. */
const NO_PAYLOAD = new Uint8Array(0);

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

export type PublicationRow = Publication & Readonly<ReturnType<typeof publicationOf>>;

/** Which publication of an agent it was, and which time. */
export type PublishedRow = Pick<PublicationRow, 'type' | 'name' | 'seq'>;

/** A publication that at least one node acknowledged; `dirty` is that of the row that went out. */
export interface Acknowledgement extends PublishedRow, Pick<PublicationRow, 'replicas' | 'dirty'> {
  readonly publishedAt: number;
  /** As many nodes as there are to have keep it: it need not go out again when the network grows. */
  readonly settled: boolean;
  /** What it says of where its node is, in short; null of other records. */
  readonly said: string | null;
}

function stateOf(row: Row) {
  return {
    state: wordOf(row, 'state', PUBLISHER_STATES),
    /** When the scheduler looks at it; null never. */
    dueAt: orNull(integerOf, row, 'due_at'),
  };
}

function publisherOf(row: Row) {
  return {
    ...stateOf(row),
    aid: aidFromRow(row, 'aid'),
    /** The last sequence number that was given out. */
    seq: integerOf(row, 'seq'),
    /** The next publication may jump ahead of what the network holds: somebody asked for it. */
    claim: flagOf(row, 'claim'),
    /** Attempts in a row that nobody acknowledged. */
    failures: integerOf(row, 'failures'),
  };
}

function publicationOf(row: Row) {
  return {
    aid: aidFromRow(row, 'aid'),
    type: integerOf(row, 'type'),
    name: textOf(row, 'name'),
    payload: orNull(blobOf, row, 'payload') ?? NO_PAYLOAD,
    ttl: integerOf(row, 'ttl'),
    /** Sequence number of the last acknowledged publication; 0 where there was none. */
    seq: integerOf(row, 'seq'),
    publishedAt: orNull(integerOf, row, 'published_at'),
    replicas: integerOf(row, 'replicas'),
    /** Above 0: it has to go out whether or not its time has come. Grows with every change until then. */
    dirty: integerOf(row, 'dirty'),
  };
}

export class PublicationStore {
  /** Told of whose rows change; null where they may be anybody's. */
  readonly changed: Listeners<[Aid | null]> = new Listeners();
  readonly #store: Store;
  readonly #commits: GroupCommit;

  /** @param commits what others write at the same time is made sure together with that of this one */
  constructor(store: Store, commits: GroupCommit = new GroupCommit((work) => store.transaction(work))) {
    this.#store = store;
    this.#commits = commits;
  }

  publisher(aid: Aid): PublisherRow | null {
    const row = this.#store.one`SELECT * FROM publishers WHERE aid = ${aid}`;
    return row === undefined ? null : publisherOf(row);
  }

  /**
   * Notes that somebody asked for a publication: the next one may jump ahead of what the network
   * holds. What was held back goes out anew.
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

  /** Adds a publication, or changes what it says; it has to go out then. The publisher exists. */
  put(aid: Aid, { type, name, payload, ttl }: Publication): void {
    this.changed.notify(aid);
    this.#store.run`
      INSERT INTO publications (aid, type, name, payload, ttl) VALUES (${aid}, ${type}, ${name}, ${payload}, ${ttl})
      ON CONFLICT (aid, type, name) DO UPDATE SET payload = excluded.payload, ttl = excluded.ttl, dirty = dirty + 1`;
  }

  /** True where there was such a publication. */
  remove(aid: Aid, type: RecordType, name: string): boolean {
    this.changed.notify(aid);
    return this.#store.run`DELETE FROM publications WHERE aid = ${aid} AND type = ${type} AND name = ${name}` > 0;
  }

  publications(aid: Aid): PublicationRow[] {
    return this.#store.all`SELECT * FROM publications WHERE aid = ${aid}`.map(publicationOf);
  }

  /** What several publishers publish of some types, by AID. */
  publicationsOf(aids: readonly Aid[], types: readonly RecordType[]): Map<Aid, PublicationRow[]> {
    const rows = this.#store.all`
      SELECT aid, type, name, nullif(payload, x'') AS payload, ttl, seq, published_at, replicas, dirty
      FROM publications WHERE aid IN (SELECT value FROM json_each(${JSON.stringify(aids)}))
        AND type IN (SELECT value FROM json_each(${JSON.stringify(types)}))`;
    return Map.groupBy(rows.map(publicationOf), (row) => row.aid);
  }

  /** How several publishers go on, by AID. */
  publishersOf(aids: readonly Aid[]): Map<Aid, PublisherState> {
    const rows = this.#store.all`
      SELECT aid, state, due_at FROM publishers WHERE aid IN (SELECT value FROM json_each(${JSON.stringify(aids)}))`;
    return new Map(rows.map((row) => [aidFromRow(row, 'aid'), stateOf(row)]));
  }

  /**
   * Gives out `count` sequence numbers above all that were given out before and above `floor`; they are on disk when
   * this returns, or the transaction around it ends. The first of them, or null where the publisher is gone.
   */
  reserve(aid: Aid, floor: number, count: number): number | null {
    const row = this.#store.one`
      UPDATE publishers SET seq = max(seq, ${floor}) + ${count} WHERE aid = ${aid} RETURNING seq`;
    return row === undefined ? null : integerOf(row, 'seq') - count + 1;
  }

  /**
   * Keeps what was acknowledged. A publication that was removed meanwhile stays removed, and one that has
   * changed since has to go out again.
   */
  acknowledge(aid: Aid, acknowledgements: readonly Acknowledgement[]): void {
    this.changed.notify(aid);
    for (const { type, name, seq, publishedAt, replicas, dirty, settled, said } of acknowledgements)
      this.#store.run`
        UPDATE publications SET seq = ${seq}, published_at = ${publishedAt}, replicas = ${replicas},
          settled = ${settled ? 1 : 0}, said = ${said}, dirty = CASE dirty WHEN ${dirty} THEN 0 ELSE dirty END
        WHERE aid = ${aid} AND type = ${type} AND name = ${name}`;
  }

  /** Keeps what came to light after a publication was acknowledged, unless another one was since. */
  complete(
    aid: Aid,
    { type, name, seq, replicas, settled }: Omit<Acknowledgement, 'publishedAt' | 'dirty' | 'said'>,
  ): void {
    this.changed.notify(aid);
    this.#store.run`
      UPDATE publications SET replicas = ${replicas}, settled = ${settled ? 1 : 0}
      WHERE aid = ${aid} AND type = ${type} AND name = ${name} AND seq = ${seq}`;
  }

  /** A publication was beaten by a newer one after it was acknowledged: it has to go out again, unless another one did. */
  beaten(aid: Aid, { type, name, seq }: PublishedRow, dueAt: number): void {
    const changes = this.#store.run`
      UPDATE publications SET dirty = dirty + 1
      WHERE aid = ${aid} AND type = ${type} AND name = ${name} AND seq = ${seq}`;
    if (changes > 0) this.claim(aid, dueAt);
  }

  /** Sets how a publisher goes on. */
  schedule(aid: Aid, next: Pick<PublisherRow, 'claim' | 'state' | 'dueAt' | 'failures'>): void {
    this.changed.notify(aid);
    this.#store.run`
      UPDATE publishers SET claim = ${next.claim ? 1 : 0}, state = ${next.state}, due_at = ${next.dueAt},
        failures = ${next.failures} WHERE aid = ${aid}`;
  }

  transaction<T>(work: () => T): T {
    return this.#store.transaction(work);
  }

  /** As `Store.transactionSoon`. */
  transactionSoon<T>(work: () => T): WrittenSoon<T> {
    return this.#store.transactionSoon(work);
  }

  /** As `GroupCommit.run`. */
  together<T>(work: () => T): Promise<T> {
    return this.#commits.run(work);
  }

  /** As `transaction`; nobody waits until it is on disk. */
  later(work: () => void): void {
    this.#store.transaction(work, 'normal');
    this.#store.syncSoon();
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
    this.changed.notify(null);
    this.#store.run`UPDATE publishers SET due_at = ${now} WHERE state = 'active' AND due_at IS NULL`;
  }

  /**
   * After the clock was set back: what was published in the future, where no node believes it, goes
   * out again; and whoever waits for a time that the wrong clock showed is looked at now.
   */
  mendTimes(now: number): void {
    this.changed.notify(null);
    this.#store.transaction(() => {
      this.#store.run`
        UPDATE publishers SET due_at = ${now}
        WHERE due_at > ${now} AND (state = 'lapsed' OR state = 'active' AND EXISTS (
          SELECT 1 FROM publications p WHERE p.aid = publishers.aid AND (p.dirty > 0 OR p.published_at IS NULL
            OR p.published_at > ${now} OR p.published_at + p.ttl * 500 < publishers.due_at)))`;
      this.#store.run`UPDATE publications SET dirty = dirty + 1 WHERE published_at > ${now}`;
    });
  }

  /** Lets a lapsed publisher go on. */
  revive(aid: Aid, dueAt: number): void {
    this.changed.notify(aid);
    this.#store.run`
      UPDATE publishers SET state = 'active', due_at = ${dueAt} WHERE aid = ${aid} AND state = 'lapsed'`;
  }

  /** Everything of one publisher has to go out anew. */
  touch(aid: Aid): void {
    this.changed.notify(aid);
    this.#store.run`UPDATE publications SET dirty = dirty + 1 WHERE aid = ${aid}`;
  }

  /** The endpoint record of a publisher has to go out anew, where it is out. */
  touchEndpoints(aid: Aid, dueAt: number): void {
    this.changed.notify(aid);
    this.#store.transaction(() => {
      this.#store.run`
        UPDATE publications SET dirty = dirty + 1
        WHERE type = ${RECORD.endpoints} AND published_at IS NOT NULL AND aid = ${aid}`;
      this.#hurry(dueAt, aid, null);
    });
  }

  /**
   * The endpoint records that are out have to go out anew where what they say of their node does not begin so, or may not.
   * @param first whose goes out before those of all others
   */
  touchMoved(now: string, dueAt: number, first: Aid): void {
    this.changed.notify(null);
    this.#store.transaction(() => {
      const others = this.#store.run`
        UPDATE publications SET dirty = dirty + 1, said = NULL
        WHERE type = ${RECORD.endpoints} AND published_at IS NOT NULL
          AND substr(said, 1, ${now.length}) IS NOT ${now}`;
      if (others > 0) this.#hurry(dueAt, null, first);
    });
  }

  /** Active publishers whose endpoint record has to go out, one or all of them, are due at `dueAt` at the latest. */
  #hurry(dueAt: number, only: Aid | null, first: Aid | null): void {
    this.#store.run`
      UPDATE publishers SET due_at = CASE WHEN aid IS ${first} THEN 0 ELSE min(coalesce(due_at, ${dueAt}), ${dueAt}) END
      WHERE state = 'active' AND (${only} IS NULL OR aid = ${only}) AND EXISTS (SELECT 1 FROM publications p
        WHERE p.aid = publishers.aid AND p.type = ${RECORD.endpoints} AND p.dirty > 0)`;
  }

  /**
   * An endpoint record is about to go out that says this of where its node is. Where the one that is out says something
   * else, it is not known from now on which of them the network has: that is on disk when this returns.
   */
  says(aid: Aid, said: string): void {
    this.#store.run`
      UPDATE publications SET said = NULL
      WHERE aid = ${aid} AND type = ${RECORD.endpoints} AND said IS NOT NULL AND said <> ${said}`;
  }

  /** Publishers whose endpoint records should be where they are looked for, and do not run out until then. */
  kept(now: number, until: number, limit: number): Aid[] {
    const sql = `SELECT aid FROM publications WHERE type = ? AND settled = 1 AND dirty = 0
      AND published_at <= ? AND published_at + ttl * 1000 > ? LIMIT ?`;
    return this.#store.all(sql, RECORD.endpoints, now, until, limit).map((row) => aidFromRow(row, 'aid'));
  }

  /** Everything that is out has to go out anew: the network does not know it. */
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
   * Renewals whose time is over, but whose records have not run out, are spread over a part of the time until they do:
   * after a pause all of them would be due at once. What changed meanwhile, and what failed, stays due.
   * @param part of the time that is left, 0 to 1
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

  /** Everything of one publisher goes out again when there is a network: see `touchUnsettled`. */
  unsettle(aid: Aid): void {
    this.#store.run`UPDATE publications SET settled = 0 WHERE aid = ${aid} AND settled = 1`;
  }

  /** What fewer nodes keep than could goes out again. */
  touchUnsettled(dueAt: number): void {
    this.changed.notify(null);
    this.#store.transaction(() => {
      this.#store.run`
        UPDATE publishers SET due_at = min(coalesce(due_at, ${dueAt}), ${dueAt})
        WHERE state = 'active' AND aid IN (SELECT aid FROM publications WHERE settled = 0)`;
      this.#store.run('UPDATE publications SET dirty = dirty + 1 WHERE settled = 0');
    });
  }

  /** Agents that have no endpoint record to keep, and are not held back, get one that is due at `dueAt`. Returns how many. */
  adopt(dueAt: number, ttl: number): number {
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
