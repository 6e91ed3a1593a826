/** The objects of local agents, and other agents that were seen to hold an object. */
import { MAX_HOLDERS_PER_OBJECT } from '../domain/objects.ts';
import type { Aid } from '../identity/aid.ts';
import { aidFromRow, blobOf, orZero, textOf } from './row.ts';
import type { Store } from './store.ts';
import { aid, integer, nullable, type RowOf, Table, text } from './table.ts';

/** Holders of all objects together. The least recently seen are evicted first. */
const MAX_HOLDERS = 20_000;
/** Insertions between two evictions, because each eviction scans all holders. */
const INSERTS_PER_SWEEP = 256;

const OBJECT = new Table('objects', {
  aid,
  /** SHA-256 of the bytes, lower-case hex. */
  objectId: text,
  name: text,
  size: integer,
  /** Milliseconds since the Unix epoch. */
  createdAt: integer,
  /** Path below files_root; null if the bytes are stored under their ID. */
  path: nullable(text),
  /** Metadata of the file when its bytes were hashed. */
  fingerprint: text,
  /** The time of the hash, milliseconds since the Unix epoch. */
  hashedAt: integer,
});

export type ObjectRow = RowOf<typeof OBJECT>;

export interface ObjectUsage {
  readonly count: number;
  /** Bytes of stored objects. Files that are registered in place use no space here. */
  readonly bytes: number;
}

export class ObjectRepository {
  readonly #store: Store;
  #noted = 0;

  constructor(store: Store) {
    this.#store = store;
  }

  get(aid: Aid, objectId: string): ObjectRow | null {
    return OBJECT.one(this.#store)`WHERE aid = ${aid} AND object_id = ${objectId}`;
  }

  /** The registered object of an agent at a path, or null. */
  at(aid: Aid, path: string): ObjectRow | null {
    return OBJECT.one(this.#store)`WHERE aid = ${aid} AND path = ${path} ORDER BY hashed_at DESC, object_id LIMIT 1`;
  }

  /** The prefix hashes of an object, or null. */
  prefixes(objectId: string): Buffer | null {
    const row = this.#store.one`SELECT hashes FROM object_prefixes WHERE object_id = ${objectId}`;
    return row === undefined ? null : Buffer.from(blobOf(row, 'hashes'));
  }

  /**
   * Adds an object of an agent, or replaces its data except for its creation time.
   * @param prefixes see `PrefixHash.list`
   */
  put(object: ObjectRow, prefixes: Buffer): void {
    this.#store.transaction(() => {
      this.#store.run`
        INSERT OR IGNORE INTO object_prefixes (object_id, hashes) VALUES (${object.objectId}, ${prefixes})`;
      OBJECT.insert(
        this.#store,
        object,
        `ON CONFLICT (aid, object_id) DO UPDATE SET
          name = excluded.name, path = excluded.path, fingerprint = excluded.fingerprint, hashed_at = excluded.hashed_at`,
      );
      // All agents share one file of stored bytes.
      if (object.path === null) this.setFingerprint(object, object.fingerprint, object.hashedAt);
    });
  }

  /** Records that a file was hashed again and did not change. */
  setFingerprint(object: Pick<ObjectRow, 'objectId' | 'path'>, fingerprint: string, hashedAt: number): void {
    this.#store.run`
      UPDATE objects SET fingerprint = ${fingerprint}, hashed_at = ${hashedAt}
      WHERE object_id = ${object.objectId} AND path IS ${object.path}`;
  }

  /** Deletes an object of an agent; false if it has no such object. */
  delete(aid: Aid, objectId: string): boolean {
    return this.#store.run`DELETE FROM objects WHERE aid = ${aid} AND object_id = ${objectId}` > 0;
  }

  /** True if the bytes of this object are stored under its ID for some agent. */
  isStored(objectId: string): boolean {
    return this.#store.one`SELECT 1 FROM objects WHERE object_id = ${objectId} AND path IS NULL LIMIT 1` !== undefined;
  }

  /** Registers bytes that are about to be stored before their object exists. Without an object they will be deleted. */
  expectBytes(objectId: string): void {
    if (!this.isStored(objectId))
      this.#store.run`INSERT OR IGNORE INTO retired_objects (object_id) VALUES (${objectId})`;
  }

  /** IDs of stored bytes without an object. */
  retired(): string[] {
    return this.#store.all('SELECT object_id FROM retired_objects').map((row) => textOf(row, 'object_id'));
  }

  /** Removes a retired ID after its bytes were deleted. */
  removeRetired(objectId: string): void {
    this.#store.run`DELETE FROM retired_objects WHERE object_id = ${objectId}`;
  }

  /** Objects of an agent, ordered by ID, starting after `after`. */
  list(aid: Aid, limit: number, after = ''): ObjectRow[] {
    return OBJECT.all(this.#store)`WHERE aid = ${aid} AND object_id > ${after} ORDER BY object_id LIMIT ${limit}`;
  }

  usage(aid: Aid): ObjectUsage {
    const row = this.#store.one`
      SELECT count(*) AS count, sum(size) FILTER (WHERE path IS NULL) AS bytes FROM objects WHERE aid = ${aid}`;
    return { count: orZero(row, 'count'), bytes: orZero(row, 'bytes') };
  }

  /** The number of objects of all agents. */
  count(): number {
    return orZero(this.#store.one`SELECT count(*) AS count FROM objects`, 'count');
  }

  /** Local agents that have an object. */
  agentsWith(objectId: string, limit: number): Aid[] {
    const rows = this.#store.all`SELECT aid FROM objects WHERE object_id = ${objectId} ORDER BY aid LIMIT ${limit}`;
    return rows.map((row) => aidFromRow(row, 'aid'));
  }

  /**
   * Records that an agent holds an object, or claims to.
   * @param at Unix milliseconds
   */
  addHolder(objectId: string, holder: Aid, at: number): void {
    this.#store.transaction(() => {
      this.#store.run`
        INSERT INTO object_holders (object_id, holder, seen_at) VALUES (${objectId}, ${holder}, ${at})
        ON CONFLICT (object_id, holder) DO UPDATE SET seen_at = max(seen_at, excluded.seen_at)`;
      this.#store.run`
        DELETE FROM object_holders WHERE object_id = ${objectId} AND holder IN
          (SELECT holder FROM object_holders WHERE object_id = ${objectId}
           ORDER BY seen_at DESC, holder LIMIT -1 OFFSET ${MAX_HOLDERS_PER_OBJECT})`;
      if (++this.#noted % INSERTS_PER_SWEEP === 0) this.#sweepHolders();
    });
  }

  #sweepHolders(): void {
    this.#store.run`
      DELETE FROM object_holders WHERE (object_id, holder) IN
        (SELECT object_id, holder FROM object_holders ORDER BY seen_at DESC LIMIT -1 OFFSET ${MAX_HOLDERS})`;
  }

  removeHolder(objectId: string, holder: Aid): void {
    this.#store.run`DELETE FROM object_holders WHERE object_id = ${objectId} AND holder = ${holder}`;
  }

  /** Agents that hold an object, the most recently seen first. */
  holders(objectId: string): Aid[] {
    const rows = this.#store.all`
      SELECT holder FROM object_holders WHERE object_id = ${objectId} ORDER BY seen_at DESC, holder`;
    return rows.map((row) => aidFromRow(row, 'holder'));
  }
}
