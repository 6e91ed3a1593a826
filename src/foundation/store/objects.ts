/** Which agent here has which objects, and which other agents were seen to hold one. */
import { MAX_HOLDERS_PER_OBJECT } from '../domain/objects.ts';
import type { Aid } from '../identity/aid.ts';
import { aidFromRow, integerOf, orNull, orZero, textOf } from './row.ts';
import type { Row, Store } from './store.ts';

/** Holders that are remembered, all objects together; those not seen for longest go first. */
const MAX_HOLDERS = 20_000;
/** How often it is looked whether there are more: a look walks all of them. */
const NOTES_PER_SWEEP = 256;

export type ObjectRow = Readonly<ReturnType<typeof objectOf>>;

export interface ObjectUsage {
  readonly count: number;
  /** Of the objects whose bytes are stored here; files registered in place take no room of ours. */
  readonly bytes: number;
}

function objectOf(row: Row) {
  return {
    aid: aidFromRow(row, 'aid'),
    /** SHA-256 of the bytes, lower-case hex. */
    objectId: textOf(row, 'object_id'),
    name: textOf(row, 'name'),
    size: integerOf(row, 'size'),
    /** Milliseconds since the Unix epoch. */
    createdAt: integerOf(row, 'created_at'),
    /** Below files_root; null where the bytes are stored under their id. */
    path: orNull(textOf, row, 'path'),
    /** What the file looked like when its bytes were hashed. */
    fingerprint: textOf(row, 'fingerprint'),
    /** When that was, milliseconds since the Unix epoch. */
    hashedAt: integerOf(row, 'hashed_at'),
  };
}

export class ObjectRepository {
  readonly #store: Store;
  #noted = 0;

  constructor(store: Store) {
    this.#store = store;
  }

  get(aid: Aid, objectId: string): ObjectRow | null {
    const row = this.#store.one`SELECT * FROM objects WHERE aid = ${aid} AND object_id = ${objectId}`;
    return row === undefined ? null : objectOf(row);
  }

  /** Adds an object of an agent, or replaces what was known of it; the day it came stays. */
  put({ aid, objectId, name, size, createdAt, path, fingerprint, hashedAt }: ObjectRow): void {
    this.#store.transaction(() => {
      this.#store.run`
        INSERT INTO objects (aid, object_id, name, size, created_at, path, fingerprint, hashed_at)
        VALUES (${aid}, ${objectId}, ${name}, ${size}, ${createdAt}, ${path}, ${fingerprint}, ${hashedAt})
        ON CONFLICT (aid, object_id) DO UPDATE SET
          name = excluded.name, path = excluded.path, fingerprint = excluded.fingerprint, hashed_at = excluded.hashed_at`;
      // The stored bytes are one file for all agents.
      if (path === null) this.setFingerprint({ objectId, path }, fingerprint, hashedAt);
    });
  }

  /** Notes that a file was hashed again and is what it was. */
  setFingerprint(object: Pick<ObjectRow, 'objectId' | 'path'>, fingerprint: string, hashedAt: number): void {
    this.#store.run`
      UPDATE objects SET fingerprint = ${fingerprint}, hashed_at = ${hashedAt}
      WHERE object_id = ${object.objectId} AND path IS ${object.path}`;
  }

  /** Forgets an object of an agent; false where it had none such. */
  delete(aid: Aid, objectId: string): boolean {
    return this.#store.run`DELETE FROM objects WHERE aid = ${aid} AND object_id = ${objectId}` > 0;
  }

  /** True where some agent has this object with its bytes stored under their id. */
  isStored(objectId: string): boolean {
    return this.#store.one`SELECT 1 FROM objects WHERE object_id = ${objectId} AND path IS NULL LIMIT 1` !== undefined;
  }

  /** Notes bytes that are about to be stored and that no object has yet: should it stay so, they are to be deleted. */
  expectBytes(objectId: string): void {
    if (!this.isStored(objectId))
      this.#store.run`INSERT OR IGNORE INTO retired_objects (object_id) VALUES (${objectId})`;
  }

  /** Ids under which bytes lie that no object has any more, or yet. */
  retired(): string[] {
    return this.#store.all('SELECT object_id FROM retired_objects').map((row) => textOf(row, 'object_id'));
  }

  /** Notes that the bytes of a retired id have been deleted. */
  bytesDeleted(objectId: string): void {
    this.#store.run`DELETE FROM retired_objects WHERE object_id = ${objectId}`;
  }

  /** Objects of an agent by id; `after` goes on behind one. */
  list(aid: Aid, limit: number, after = ''): ObjectRow[] {
    const rows = this.#store.all`
      SELECT * FROM objects WHERE aid = ${aid} AND object_id > ${after} ORDER BY object_id LIMIT ${limit}`;
    return rows.map(objectOf);
  }

  usage(aid: Aid): ObjectUsage {
    const row = this.#store.one`
      SELECT count(*) AS count, sum(size) FILTER (WHERE path IS NULL) AS bytes FROM objects WHERE aid = ${aid}`;
    return { count: orZero(row, 'count'), bytes: orZero(row, 'bytes') };
  }

  /** Objects of all agents. */
  count(): number {
    return orZero(this.#store.one`SELECT count(*) AS count FROM objects`, 'count');
  }

  /** Agents here that have an object. */
  agentsWith(objectId: string, limit: number): Aid[] {
    const rows = this.#store.all`SELECT aid FROM objects WHERE object_id = ${objectId} ORDER BY aid LIMIT ${limit}`;
    return rows.map((row) => aidFromRow(row, 'aid'));
  }

  /**
   * Notes that an agent holds an object, or says so.
   * @param at Unix milliseconds
   */
  noteHolder(objectId: string, holder: Aid, at: number): void {
    this.#store.transaction(() => {
      this.#store.run`
        INSERT INTO object_holders (object_id, holder, seen_at) VALUES (${objectId}, ${holder}, ${at})
        ON CONFLICT (object_id, holder) DO UPDATE SET seen_at = max(seen_at, excluded.seen_at)`;
      this.#store.run`
        DELETE FROM object_holders WHERE object_id = ${objectId} AND holder IN
          (SELECT holder FROM object_holders WHERE object_id = ${objectId}
           ORDER BY seen_at DESC, holder LIMIT -1 OFFSET ${MAX_HOLDERS_PER_OBJECT})`;
      if (++this.#noted % NOTES_PER_SWEEP === 0) this.#sweepHolders();
    });
  }

  #sweepHolders(): void {
    this.#store.run`
      DELETE FROM object_holders WHERE (object_id, holder) IN
        (SELECT object_id, holder FROM object_holders ORDER BY seen_at DESC LIMIT -1 OFFSET ${MAX_HOLDERS})`;
  }

  forgetHolder(objectId: string, holder: Aid): void {
    this.#store.run`DELETE FROM object_holders WHERE object_id = ${objectId} AND holder = ${holder}`;
  }

  /** Agents that hold an object, those seen last first. */
  holders(objectId: string): Aid[] {
    const rows = this.#store.all`
      SELECT holder FROM object_holders WHERE object_id = ${objectId} ORDER BY seen_at DESC, holder`;
    return rows.map((row) => aidFromRow(row, 'holder'));
  }
}
