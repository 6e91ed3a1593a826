/**
 * The entries of groups. IDs are lower-case hex in the interface and 32 bytes in the database; times are Unix
 * milliseconds.
 */
import { toHex } from '../bytes.ts';
import { HASH_BYTES } from '../domain/groups.ts';
import { SvcError } from '../errors.ts';
import type { Aid } from '../identity/aid.ts';
import { hexToBlob } from './groups.ts';
import { aidFromRow, blobOf, flagOf, integerOf, orNull, orZero } from './row.ts';
import { rowSum } from './row-sum.ts';
import type { Row, SqlValue, Store } from './store.ts';
import { aid, blob, type Column, flag, hex, integer, named, nullable, type RowOf, Table, text } from './table.ts';

/** Maximum number of entries that a filtered page scans. */
export const MAX_SCANNED = 20_000;

/** An entry as lists return it. */
export type StoredEntry = Readonly<ReturnType<typeof storedOf>>;

/** Selects entries. Omitted fields match all. */
export interface EntryFilter {
  readonly kind?: string | undefined;
  readonly author?: Aid | undefined;
  readonly sinceAt?: number | undefined;
  readonly untilAt?: number | undefined;
  readonly to?: Aid | undefined;
  readonly replyTo?: string | undefined;
}

function packFrontier(places: readonly number[]): Uint8Array {
  const bytes = Buffer.alloc(places.length * 4);
  places.forEach((place, i) => bytes.writeUInt32BE(place, i * 4));
  return bytes;
}

function unpackFrontier(packed: Uint8Array): number[] {
  const bytes = Buffer.from(packed);
  return Array.from({ length: bytes.length / 4 }, (_, i) => bytes.readUInt32BE(i * 4));
}

const frontier: Column<readonly number[]> = {
  read: (row, column) => unpackFrontier(blobOf(row, column)),
  write: packFrontier,
};

/** The concatenated IDs of entries. */
const hashes: Column<readonly string[]> = {
  read: (row, column) => unpackParents(blobOf(row, column)),
  write: (ids) => hexToBlob(ids.join('')),
};

/** The columns of an entry that its children need. */
const FACT = new Table('group_entries', {
  seq: integer,
  depth: integer,
  at: integer,
  controlNo: nullable(integer),
  frontier,
});
const ENTRY = new Table('group_entries', {
  ...FACT.columns,
  lid: integer,
  id: named('entry_id', hex),
  parents: hashes,
  author: aid,
  kind: text,
  replyTo: nullable(hex),
  counts: flag,
  void: flag,
  retracted: flag,
  bytes: blob,
  sum: integer,
});

export interface NewEntryRow extends Omit<RowOf<typeof ENTRY>, 'lid' | 'seq' | 'retracted' | 'sum'> {
  readonly to: readonly Aid[];
}

export type EntryFact = RowOf<typeof FACT>;

function unpackParents(packed: Uint8Array): string[] {
  return Array.from({ length: packed.length / HASH_BYTES }, (_, i) =>
    toHex(packed.subarray(i * HASH_BYTES, (i + 1) * HASH_BYTES)),
  );
}

export class GroupEntryStore {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** Appends an entry to a log. */
  add(lid: number, seq: number, entry: NewEntryRow): void {
    const { parents, author, at, bytes } = entry;
    const id = hexToBlob(entry.id);
    const isRetracted = this.#isRetracted(lid, id, author);
    ENTRY.insert(this.#store, { ...entry, lid, seq, retracted: isRetracted, sum: rowSum(id, bytes) });
    this.#store.run`UPDATE group_logs SET max_seq = ${seq}, last_at = max(last_at, ${at}) WHERE lid = ${lid}`;
    for (const parent of parents)
      this.#store.run`DELETE FROM group_heads WHERE lid = ${lid} AND entry_id = ${hexToBlob(parent)}`;
    this.#store.run`INSERT INTO group_heads (lid, entry_id) VALUES (${lid}, ${id})`;
    for (const aid of entry.to)
      this.#store.run`INSERT INTO group_mentions (lid, aid, seq) VALUES (${lid}, ${aid}, ${seq})`;
    if (entry.counts && !entry.void && !isRetracted) this.#count(lid, seq, author, 1, entry.to.length > 0);
  }

  addRetract(lid: number, target: string, seq: number, byAdmin: boolean): void {
    const id = hexToBlob(target);
    this.#store.run`
      INSERT INTO group_retracts (lid, target, seq, by_admin) VALUES (${lid}, ${id}, ${seq}, ${byAdmin ? 1 : 0})`;
    this.#updateRetracted(lid, id);
  }

  fact(lid: number, id: string): EntryFact | null {
    return FACT.one(this.#store)`WHERE lid = ${lid} AND entry_id = ${hexToBlob(id)}`;
  }

  has(lid: number, id: string): boolean {
    return (
      this.#store.one`SELECT 1 FROM group_entries WHERE lid = ${lid} AND entry_id = ${hexToBlob(id)}` !== undefined
    );
  }

  /** Also null if the disk damaged the entry. */
  bytes(lid: number, id: string): Uint8Array | null {
    return this.#intact(
      lid,
      this.#store.one`
        SELECT seq, entry_id, bytes, sum FROM group_entries WHERE lid = ${lid} AND entry_id = ${hexToBlob(id)}`,
    );
  }

  parents(lid: number, id: string): string[] {
    const row = this.#store.one`SELECT parents FROM group_entries WHERE lid = ${lid} AND entry_id = ${hexToBlob(id)}`;
    return row === undefined ? [] : unpackParents(blobOf(row, 'parents'));
  }

  /** True if an entry with a time up to `latest` names this entry, with the number `seq`, as a parent. */
  hasChild(lid: number, id: string, seq: number, latest: number): boolean {
    const child = this.#store.one`
      SELECT 1 FROM group_entries
      WHERE lid = ${lid} AND seq > ${seq} AND at <= ${latest} AND instr(parents, ${hexToBlob(id)}) > 0 LIMIT 1`;
    return child !== undefined;
  }

  /** The position of the last entry of a log. */
  lastSeq(lid: number): number {
    return orZero(this.#store.one`SELECT max_seq FROM group_logs WHERE lid = ${lid}`, 'max_seq');
  }

  /** IDs of the entries without children, ascending. */
  heads(lid: number, limit: number): string[] {
    const rows = this.#store.all`SELECT entry_id FROM group_heads WHERE lid = ${lid} ORDER BY entry_id LIMIT ${limit}`;
    return rows.map((row) => toHex(blobOf(row, 'entry_id')));
  }

  /**
   * The control entries in order of arrival.
   * @throws SvcError `store_corrupt` if an entry is damaged: without it, other members would have wrong roles
   */
  control(lid: number): { bytes: Uint8Array; frontier: number[] }[] {
    const rows = this.#store.all`
      SELECT seq, entry_id, bytes, sum, frontier FROM group_entries
      WHERE lid = ${lid} AND control_no IS NOT NULL ORDER BY control_no`;
    return rows.map((row) => {
      const bytes = this.#intact(lid, row);
      if (bytes === null)
        throw new SvcError('store_corrupt', {
          message: 'Cannot read the members of this group: an entry is damaged on disk. Restore a backup.',
        });
      return { bytes, frontier: unpackFrontier(blobOf(row, 'frontier')) };
    });
  }

  /** The control entry with the given number. */
  controlAt(lid: number, place: number): Uint8Array | null {
    return this.#intact(
      lid,
      this.#store.one`SELECT seq, entry_id, bytes, sum FROM group_entries WHERE lid = ${lid} AND control_no = ${place}`,
    );
  }

  /** IDs in order of arrival. */
  idsAfter(lid: number, after: number, limit: number): { seq: number; id: string }[] {
    const rows = this.#store.all`
      SELECT seq, entry_id FROM group_entries WHERE lid = ${lid} AND seq > ${after} ORDER BY seq LIMIT ${limit}`;
    return rows.map((row) => ({ seq: integerOf(row, 'seq'), id: toHex(blobOf(row, 'entry_id')) }));
  }

  /** Complete entries in order of arrival. The bytes of a damaged entry are null. */
  bytesAfter(lid: number, after: number, limit: number): { seq: number; bytes: Uint8Array | null }[] {
    const rows = this.#store.all`
      SELECT seq, entry_id, bytes, sum FROM group_entries WHERE lid = ${lid} AND seq > ${after} ORDER BY seq LIMIT ${limit}`;
    return rows.map((row) => ({ seq: integerOf(row, 'seq'), bytes: this.#intact(lid, row) }));
  }

  /** The newest entries before `before`, newest first, with the columns for a walk over the graph. */
  before(lid: number, before: number, limit: number): { seq: number; id: string; parents: string[]; author: Aid }[] {
    const rows = this.#store.all`
      SELECT seq, entry_id, parents, author FROM group_entries WHERE lid = ${lid} AND seq < ${before}
      ORDER BY seq DESC LIMIT ${limit}`;
    return rows.map((row) => ({
      seq: integerOf(row, 'seq'),
      id: toHex(blobOf(row, 'entry_id')),
      parents: unpackParents(blobOf(row, 'parents')),
      author: aidFromRow(row, 'author'),
    }));
  }

  addConflict(lid: number, removalNo: number, seq: number): void {
    this.#store.run`INSERT OR IGNORE INTO group_conflicts (lid, removal_no, seq) VALUES (${lid}, ${removalNo}, ${seq})`;
  }

  /** Entries concurrent with a removal, each with all removals that it is concurrent with. */
  conflictsOf(lid: number, removalNo: number): { seq: number; removals: number[] }[] {
    const rows = this.#store.all`
      SELECT c.seq AS seq, o.removal_no AS removal_no FROM group_conflicts c
      JOIN group_conflicts o ON o.lid = c.lid AND o.seq = c.seq WHERE c.lid = ${lid} AND c.removal_no = ${removalNo}`;
    const bySeq = Map.groupBy(rows, (row) => integerOf(row, 'seq'));
    return [...bySeq].map(([seq, all]) => ({ seq, removals: all.map((row) => integerOf(row, 'removal_no')) }));
  }

  /** Marks an entry as void or valid. */
  setVoid(lid: number, seq: number, isVoid: boolean): void {
    if (!this.#hide(lid, seq, 'void', isVoid)) return;
    const retraction = this.#store.one`SELECT target FROM group_retracts WHERE lid = ${lid} AND seq = ${seq}`;
    if (retraction !== undefined) this.#updateRetracted(lid, blobOf(retraction, 'target'));
  }

  /** True if a valid retraction by the author or an admin applies to an entry. */
  #isRetracted(lid: number, id: Uint8Array, author: Aid): boolean {
    const effective = this.#store.one`
      SELECT 1 FROM group_retracts r JOIN group_entries x ON x.lid = r.lid AND x.seq = r.seq
      WHERE r.lid = ${lid} AND r.target = ${id} AND x.void = 0 AND (r.by_admin = 1 OR x.author = ${author}) LIMIT 1`;
    return effective !== undefined;
  }

  /** Updates the retracted flag of an entry after its retractions changed. */
  #updateRetracted(lid: number, target: Uint8Array): void {
    const row = this.#store.one`SELECT seq, author FROM group_entries WHERE lid = ${lid} AND entry_id = ${target}`;
    if (row === undefined) return;
    this.#hide(lid, integerOf(row, 'seq'), 'retracted', this.#isRetracted(lid, target, aidFromRow(row, 'author')));
  }

  /** Sets one of the two flags that hide an entry from the unread count; false if it was already set to this value. */
  #hide(lid: number, seq: number, flag: 'void' | 'retracted', value: boolean): boolean {
    const row = this.#store.one(
      `UPDATE group_entries SET ${flag} = ?1 WHERE lid = ?2 AND seq = ?3 AND ${flag} <> ?1
       RETURNING counts, author, void + retracted - ?1 AS others`,
      value ? 1 : 0,
      lid,
      seq,
    );
    if (row === undefined) return false;
    if (flagOf(row, 'counts') && integerOf(row, 'others') === 0)
      this.#count(lid, seq, aidFromRow(row, 'author'), value ? -1 : 1);
    return true;
  }

  /** Changes the unread counts of the local members that have not read an entry. */
  #count(lid: number, seq: number, author: Aid, change: 1 | -1, mentions = true): void {
    this.#store.run`
      UPDATE groups SET unread = unread + ${change} WHERE lid = ${lid} AND aid <> ${author}
        AND read_seq < ${seq} AND (up_to IS NULL OR up_to >= ${seq})`;
    if (!mentions) return;
    this.#store.run`
      UPDATE groups SET mentions = mentions + ${change} WHERE lid = ${lid} AND aid <> ${author}
        AND read_seq < ${seq} AND (up_to IS NULL OR up_to >= ${seq})
        AND EXISTS (SELECT 1 FROM group_mentions m WHERE m.lid = groups.lid AND m.aid = groups.aid AND m.seq = ${seq})`;
  }

  /** The latest valid title entry; null if the title never changed. */
  lastTitle(lid: number): Uint8Array | null {
    const row = this.#store.one`
      SELECT seq, entry_id, bytes, sum FROM group_entries WHERE lid = ${lid} AND kind = 'title' AND void = 0
      ORDER BY depth DESC, entry_id DESC LIMIT 1`;
    return this.#intact(lid, row);
  }

  entry(lid: number, id: string): StoredEntry | null {
    const row = this.#store.one`
      SELECT seq, entry_id, bytes, retracted, sum FROM group_entries
      WHERE lid = ${lid} AND entry_id = ${hexToBlob(id)} AND void = 0`;
    const stored = row === undefined ? null : this.#checked(lid, row);
    return stored?.isDamaged === true ? null : stored;
  }

  /** Entries after `after` up to `upTo` that match a filter, in order of arrival. */
  page(lid: number, after: number, upTo: number, limit: number, filter: EntryFilter): StoredEntry[] {
    const { sql, values } = pageQuery(lid, after, upTo, limit, filter);
    return this.#store.all(sql, ...values).map((row) => this.#checked(lid, row));
  }

  /** The newest entries before a position, in order of arrival. */
  pageBefore(lid: number, before: number, limit: number): StoredEntry[] {
    const rows = this.#store.all`
      SELECT seq, entry_id, bytes, retracted, sum FROM group_entries WHERE lid = ${lid} AND seq < ${before} AND void = 0
      ORDER BY seq DESC LIMIT ${limit}`;
    return rows.map((row) => this.#checked(lid, row)).reverse();
  }

  #checked(lid: number, row: Row): StoredEntry {
    const stored = storedOf(row);
    if (stored.isDamaged) this.#reportDamage(lid, row);
    return stored;
  }

  /** The bytes of an entry; null if there is none or it is damaged. */
  #intact(lid: number, row: Row | undefined): Uint8Array | null {
    if (row === undefined) return null;
    if (!isDamaged(row)) return blobOf(row, 'bytes');
    this.#reportDamage(lid, row);
    return null;
  }

  #reportDamage(lid: number, row: Row): void {
    this.#store.reportDamage(`group_entries ${lid} ${integerOf(row, 'seq')}`);
  }
}

function isDamaged(row: Row): boolean {
  const sum = orNull(integerOf, row, 'sum');
  return sum !== null && sum !== rowSum(blobOf(row, 'entry_id'), blobOf(row, 'bytes'));
}

function storedOf(row: Row) {
  return {
    seq: integerOf(row, 'seq'),
    bytes: blobOf(row, 'bytes'),
    retracted: flagOf(row, 'retracted'),
    /** The disk changed the entry, so its content must not be shown. */
    isDamaged: isDamaged(row),
  };
}

/** Builds the statement of a page: constant text for each set of filters. */
export function pageQuery(
  lid: number,
  after: number,
  upTo: number,
  limit: number,
  filter: EntryFilter,
): { sql: string; values: SqlValue[] } {
  const where = ['e.lid = ?', 'e.seq > ?', 'e.seq <= ?', 'e.void = 0'];
  const values: SqlValue[] = [lid, after, upTo];
  const add = (condition: string, value: SqlValue | undefined, ...more: SqlValue[]): void => {
    if (value === undefined) return;
    where.push(condition);
    values.push(value, ...more);
  };
  add('e.kind = ?', filter.kind);
  add('e.author = ?', filter.author);
  add('e.at >= ?', filter.sinceAt);
  add('e.at <= ?', filter.untilAt);
  add('e.reply_to = ?', filter.replyTo === undefined ? undefined : hexToBlob(filter.replyTo));
  // The bounds are repeated, because SQLite materializes the list first.
  const mentions = 'SELECT m.seq FROM group_mentions m WHERE m.aid = ? AND m.lid = ? AND m.seq > ? AND m.seq <= ?';
  add(`e.seq IN (${mentions})`, filter.to, lid, after, upTo);
  return {
    sql: `SELECT e.seq, e.entry_id, e.bytes, e.retracted, e.sum FROM group_entries e WHERE ${where.join(' AND ')} ORDER BY e.seq LIMIT ?`,
    values: [...values, limit],
  };
}
