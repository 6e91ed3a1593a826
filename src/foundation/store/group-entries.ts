/**
 * The entries of groups. IDs are lower-case hex in the interface and 32 bytes in the database; times are Unix
 * milliseconds.
 */
import { toHex } from '../bytes.ts';
import { HASH_BYTES } from '../domain/groups.ts';
import { SvcError } from '../errors.ts';
import type { Aid } from '../identity/aid.ts';
import { hexToBlob } from './groups.ts';
import { aidFromRow, blobOf, flagOf, integerOf, orNull } from './row.ts';
import { rowSum } from './row-sum.ts';
import type { Row, SqlValue, Store } from './store.ts';

/** Maximum number of entries that a filtered page scans. */
export const MAX_SCANNED = 20_000;

export interface NewEntryRow {
  readonly id: string;
  readonly parents: readonly string[];
  readonly depth: number;
  readonly author: Aid;
  readonly kind: string;
  readonly at: number;
  readonly replyTo: string | null;
  readonly controlNo: number | null;
  readonly frontier: readonly number[];
  readonly counts: boolean;
  readonly mention: boolean;
  readonly void: boolean;
  readonly to: readonly Aid[];
  readonly bytes: Uint8Array;
}

/** The columns of an entry that its children need. */
export type EntryFact = Readonly<ReturnType<typeof factOf>>;

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

function unpackParents(packed: Uint8Array): string[] {
  return Array.from({ length: packed.length / HASH_BYTES }, (_, i) =>
    toHex(packed.subarray(i * HASH_BYTES, (i + 1) * HASH_BYTES)),
  );
}

function factOf(row: Row) {
  return {
    seq: integerOf(row, 'seq'),
    depth: integerOf(row, 'depth'),
    at: integerOf(row, 'at'),
    controlNo: orNull(integerOf, row, 'control_no'),
    frontier: unpackFrontier(blobOf(row, 'frontier')),
  };
}

export class GroupEntryStore {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** Appends an entry to a replica. */
  add(rid: number, seq: number, entry: NewEntryRow): void {
    const { parents, author, kind, at, mention } = entry;
    const id = hexToBlob(entry.id);
    const replyTo = entry.replyTo === null ? null : hexToBlob(entry.replyTo);
    const isRetracted = this.#isRetracted(rid, id, author);
    this.#store.run`
      INSERT INTO room_entries (rid, seq, entry_id, parents, depth, author, kind, at, reply_to, control_no, frontier,
        counts, mention, void, retracted, bytes, sum)
      VALUES (${rid}, ${seq}, ${id}, ${hexToBlob(parents.join(''))}, ${entry.depth}, ${author}, ${kind}, ${at},
        ${replyTo}, ${entry.controlNo}, ${packFrontier(entry.frontier)}, ${entry.counts ? 1 : 0}, ${mention ? 1 : 0},
        ${entry.void ? 1 : 0}, ${isRetracted ? 1 : 0}, ${entry.bytes}, ${rowSum(id, entry.bytes)})`;
    this.#store.run`UPDATE rooms SET max_seq = ${seq}, last_at = max(last_at, ${at}) WHERE rid = ${rid}`;
    if (entry.counts && !entry.void && !isRetracted) this.#count(rid, seq, 1, mention);
    for (const parent of parents)
      this.#store.run`DELETE FROM room_heads WHERE rid = ${rid} AND entry_id = ${hexToBlob(parent)}`;
    this.#store.run`INSERT INTO room_heads (rid, entry_id) VALUES (${rid}, ${id})`;
    for (const aid of entry.to)
      this.#store.run`INSERT INTO room_mentions (rid, aid, seq) VALUES (${rid}, ${aid}, ${seq})`;
  }

  addRetract(rid: number, target: string, seq: number, byAdmin: boolean): void {
    const id = hexToBlob(target);
    this.#store.run`
      INSERT INTO room_retracts (rid, target, seq, by_admin) VALUES (${rid}, ${id}, ${seq}, ${byAdmin ? 1 : 0})`;
    this.#updateRetracted(rid, id);
  }

  fact(rid: number, id: string): EntryFact | null {
    const row = this.#store.one`
      SELECT seq, depth, at, control_no, frontier FROM room_entries WHERE rid = ${rid} AND entry_id = ${hexToBlob(id)}`;
    return row === undefined ? null : factOf(row);
  }

  has(rid: number, id: string): boolean {
    return this.#store.one`SELECT 1 FROM room_entries WHERE rid = ${rid} AND entry_id = ${hexToBlob(id)}` !== undefined;
  }

  /** Also null if the disk damaged the entry. */
  bytes(rid: number, id: string): Uint8Array | null {
    return this.#intact(
      rid,
      this.#store.one`
        SELECT seq, entry_id, bytes, sum FROM room_entries WHERE rid = ${rid} AND entry_id = ${hexToBlob(id)}`,
    );
  }

  parents(rid: number, id: string): string[] {
    const row = this.#store.one`SELECT parents FROM room_entries WHERE rid = ${rid} AND entry_id = ${hexToBlob(id)}`;
    return row === undefined ? [] : unpackParents(blobOf(row, 'parents'));
  }

  /** True if an entry with a time up to `latest` names this entry, with the number `seq`, as a parent. */
  hasChild(rid: number, id: string, seq: number, latest: number): boolean {
    const child = this.#store.one`
      SELECT 1 FROM room_entries
      WHERE rid = ${rid} AND seq > ${seq} AND at <= ${latest} AND instr(parents, ${hexToBlob(id)}) > 0 LIMIT 1`;
    return child !== undefined;
  }

  /** IDs of the entries without children, ascending. */
  heads(rid: number, limit: number): string[] {
    const rows = this.#store.all`SELECT entry_id FROM room_heads WHERE rid = ${rid} ORDER BY entry_id LIMIT ${limit}`;
    return rows.map((row) => toHex(blobOf(row, 'entry_id')));
  }

  /**
   * The control entries in order of arrival.
   * @throws SvcError `store_corrupt` if an entry is damaged: without it, other members would have wrong roles
   */
  control(rid: number): { bytes: Uint8Array; frontier: number[] }[] {
    const rows = this.#store.all`
      SELECT seq, entry_id, bytes, sum, frontier FROM room_entries
      WHERE rid = ${rid} AND control_no IS NOT NULL ORDER BY control_no`;
    return rows.map((row) => {
      const bytes = this.#intact(rid, row);
      if (bytes === null)
        throw new SvcError('store_corrupt', {
          message: 'Cannot read the members of this group: an entry is damaged on disk. Restore a backup.',
        });
      return { bytes, frontier: unpackFrontier(blobOf(row, 'frontier')) };
    });
  }

  /** The control entry with the given number. */
  controlAt(rid: number, place: number): Uint8Array | null {
    return this.#intact(
      rid,
      this.#store.one`SELECT seq, entry_id, bytes, sum FROM room_entries WHERE rid = ${rid} AND control_no = ${place}`,
    );
  }

  /** IDs in order of arrival. */
  idsAfter(rid: number, after: number, limit: number): { seq: number; id: string }[] {
    const rows = this.#store.all`
      SELECT seq, entry_id FROM room_entries WHERE rid = ${rid} AND seq > ${after} ORDER BY seq LIMIT ${limit}`;
    return rows.map((row) => ({ seq: integerOf(row, 'seq'), id: toHex(blobOf(row, 'entry_id')) }));
  }

  /** Complete entries in order of arrival. The bytes of a damaged entry are null. */
  bytesAfter(rid: number, after: number, limit: number): { seq: number; bytes: Uint8Array | null }[] {
    const rows = this.#store.all`
      SELECT seq, entry_id, bytes, sum FROM room_entries WHERE rid = ${rid} AND seq > ${after} ORDER BY seq LIMIT ${limit}`;
    return rows.map((row) => ({ seq: integerOf(row, 'seq'), bytes: this.#intact(rid, row) }));
  }

  /** The newest entries before `before`, newest first, with the columns for a walk over the graph. */
  before(rid: number, before: number, limit: number): { seq: number; id: string; parents: string[]; author: Aid }[] {
    const rows = this.#store.all`
      SELECT seq, entry_id, parents, author FROM room_entries WHERE rid = ${rid} AND seq < ${before}
      ORDER BY seq DESC LIMIT ${limit}`;
    return rows.map((row) => ({
      seq: integerOf(row, 'seq'),
      id: toHex(blobOf(row, 'entry_id')),
      parents: unpackParents(blobOf(row, 'parents')),
      author: aidFromRow(row, 'author'),
    }));
  }

  addConflict(rid: number, removalNo: number, seq: number): void {
    this.#store.run`INSERT OR IGNORE INTO room_conflicts (rid, removal_no, seq) VALUES (${rid}, ${removalNo}, ${seq})`;
  }

  /** Entries concurrent with a removal, each with all removals that it is concurrent with. */
  conflictsOf(rid: number, removalNo: number): { seq: number; removals: number[] }[] {
    const rows = this.#store.all`
      SELECT c.seq AS seq, o.removal_no AS removal_no FROM room_conflicts c
      JOIN room_conflicts o ON o.rid = c.rid AND o.seq = c.seq WHERE c.rid = ${rid} AND c.removal_no = ${removalNo}`;
    const bySeq = Map.groupBy(rows, (row) => integerOf(row, 'seq'));
    return [...bySeq].map(([seq, all]) => ({ seq, removals: all.map((row) => integerOf(row, 'removal_no')) }));
  }

  /** Marks an entry as void or valid. */
  setVoid(rid: number, seq: number, isVoid: boolean): void {
    if (!this.#hide(rid, seq, 'void', isVoid)) return;
    const retraction = this.#store.one`SELECT target FROM room_retracts WHERE rid = ${rid} AND seq = ${seq}`;
    if (retraction !== undefined) this.#updateRetracted(rid, blobOf(retraction, 'target'));
  }

  /** True if a valid retraction by the author or an admin applies to an entry. */
  #isRetracted(rid: number, id: Uint8Array, author: Aid): boolean {
    const effective = this.#store.one`
      SELECT 1 FROM room_retracts r JOIN room_entries x ON x.rid = r.rid AND x.seq = r.seq
      WHERE r.rid = ${rid} AND r.target = ${id} AND x.void = 0 AND (r.by_admin = 1 OR x.author = ${author}) LIMIT 1`;
    return effective !== undefined;
  }

  /** Updates the retracted flag of an entry after its retractions changed. */
  #updateRetracted(rid: number, target: Uint8Array): void {
    const row = this.#store.one`SELECT seq, author FROM room_entries WHERE rid = ${rid} AND entry_id = ${target}`;
    if (row === undefined) return;
    this.#hide(rid, integerOf(row, 'seq'), 'retracted', this.#isRetracted(rid, target, aidFromRow(row, 'author')));
  }

  /** Sets one of the two flags that hide an entry from the unread count; false if it was already set to this value. */
  #hide(rid: number, seq: number, flag: 'void' | 'retracted', value: boolean): boolean {
    const row = this.#store.one(
      `UPDATE room_entries SET ${flag} = ?1 WHERE rid = ?2 AND seq = ?3 AND ${flag} <> ?1
       RETURNING counts, mention, void + retracted - ?1 AS others`,
      value ? 1 : 0,
      rid,
      seq,
    );
    if (row === undefined) return false;
    if (flagOf(row, 'counts') && integerOf(row, 'others') === 0)
      this.#count(rid, seq, value ? -1 : 1, flagOf(row, 'mention'));
    return true;
  }

  /** Changes the unread count if the entry is after the read cursor. */
  #count(rid: number, seq: number, change: 1 | -1, mention: boolean): void {
    this.#store.run`
      UPDATE rooms SET unread = unread + ${change}, mentions = mentions + ${mention ? change : 0}
      WHERE rid = ${rid} AND read_seq < ${seq}`;
  }

  /** The latest valid title entry; null if the title never changed. */
  lastTitle(rid: number): Uint8Array | null {
    const row = this.#store.one`
      SELECT seq, entry_id, bytes, sum FROM room_entries WHERE rid = ${rid} AND kind = 'title' AND void = 0
      ORDER BY depth DESC, entry_id DESC LIMIT 1`;
    return this.#intact(rid, row);
  }

  entry(rid: number, id: string): StoredEntry | null {
    const row = this.#store.one`
      SELECT seq, entry_id, bytes, retracted, sum FROM room_entries
      WHERE rid = ${rid} AND entry_id = ${hexToBlob(id)} AND void = 0`;
    const stored = row === undefined ? null : this.#checked(rid, row);
    return stored?.isDamaged === true ? null : stored;
  }

  /** Entries after `after` up to `upTo` that match a filter, in order of arrival. */
  page(rid: number, after: number, upTo: number, limit: number, filter: EntryFilter): StoredEntry[] {
    const { sql, values } = pageQuery(rid, after, upTo, limit, filter);
    return this.#store.all(sql, ...values).map((row) => this.#checked(rid, row));
  }

  /** The newest entries before a position, in order of arrival. */
  pageBefore(rid: number, before: number, limit: number): StoredEntry[] {
    const rows = this.#store.all`
      SELECT seq, entry_id, bytes, retracted, sum FROM room_entries WHERE rid = ${rid} AND seq < ${before} AND void = 0
      ORDER BY seq DESC LIMIT ${limit}`;
    return rows.map((row) => this.#checked(rid, row)).reverse();
  }

  #checked(rid: number, row: Row): StoredEntry {
    const stored = storedOf(row);
    if (stored.isDamaged) this.#reportDamage(rid, row);
    return stored;
  }

  /** The bytes of an entry; null if there is none or it is damaged. */
  #intact(rid: number, row: Row | undefined): Uint8Array | null {
    if (row === undefined) return null;
    if (!isDamaged(row)) return blobOf(row, 'bytes');
    this.#reportDamage(rid, row);
    return null;
  }

  #reportDamage(rid: number, row: Row): void {
    this.#store.reportDamage(`room_entries ${rid} ${integerOf(row, 'seq')}`);
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
  rid: number,
  after: number,
  upTo: number,
  limit: number,
  filter: EntryFilter,
): { sql: string; values: SqlValue[] } {
  const where = ['e.rid = ?', 'e.seq > ?', 'e.seq <= ?', 'e.void = 0'];
  const values: SqlValue[] = [rid, after, upTo];
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
  const mentions = 'SELECT m.seq FROM room_mentions m WHERE m.aid = ? AND m.rid = ? AND m.seq > ? AND m.seq <= ?';
  add(`e.seq IN (${mentions})`, filter.to, rid, after, upTo);
  return {
    sql: `SELECT e.seq, e.entry_id, e.bytes, e.retracted, e.sum FROM room_entries e WHERE ${where.join(' AND ')} ORDER BY e.seq LIMIT ?`,
    values: [...values, limit],
  };
}
