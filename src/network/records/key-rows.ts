/**
 * The rows under each key, in memory. Strangers repeat requests with other parts and types, and a database query for
 * each could occupy the event loop.
 */

import { createHash } from 'node:crypto';
import { toHex } from '../../foundation/bytes.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import type { SignedRecord } from '../../foundation/records/record.ts';
import {
  MAX_DATAGRAM_RECORD_BYTES,
  MAX_RECORD_TYPE,
  RECORD,
  RECORD_DIGEST_BYTES,
  type RecordType,
} from '../../foundation/records/types.ts';
import { blobOf, integerOf, textOf } from '../../foundation/store/row.ts';
import type { Row, SqlValue, Store } from '../../foundation/store/store.ts';
import { SourceTally } from '../../foundation/tally.ts';
import type { Part } from './messages.ts';

/** Size of a row without its record, in bytes: columns and indexes. */
export const ROW_OVERHEAD_BYTES = 256;

export interface StoredRecord {
  readonly id: number;
  readonly type: RecordType;
  readonly issuedAt: number;
  readonly seq: number;
  readonly timestamp: number;
  readonly digest: Uint8Array;
  /** Length of its encoding. */
  readonly bytes: number;
}

/** True for types whose records under one key have many publishers. */
export function isOfMany(type: RecordType): boolean {
  return type === RECORD.service || type === RECORD.note;
}

/** Notes of one identity differ by `seq`; other types have one record. */
export function noteOf(record: SignedRecord): number {
  return record.type === RECORD.note ? record.seq : 0;
}

/** Identifies the record of a key; all versions have the same one. */
export function slotOf(key: Uint8Array, record: SignedRecord): SqlValue[] {
  return [key, record.type, record.aid, noteOf(record)];
}

/** Size of a record in the store, in bytes. */
export function sizeOf({ encoded }: SignedRecord): number {
  return encoded.length + ROW_OVERHEAD_BYTES;
}

/** The part number of a record, equal on all nodes. */
export function partOf(record: SignedRecord): number {
  return partNumber(record.type, record.aid, noteOf(record));
}

/** The part number of a record that is not at hand. @param note see `noteOf` */
export function partNumber(type: RecordType, aid: Aid, note = 0): number {
  return createHash('sha256').update(`${type}\0${aid}\0${note}`).digest().readUInt32BE(0);
}

/** The columns that `toStored` reads. */
export const STORED_COLUMNS = 'id, type, issued_at, seq, timestamp, size, digest';

export function toStored(row: Row): StoredRecord {
  return {
    id: integerOf(row, 'id'),
    type: integerOf(row, 'type'),
    issuedAt: integerOf(row, 'issued_at'),
    seq: integerOf(row, 'seq'),
    timestamp: integerOf(row, 'timestamp'),
    digest: blobOf(row, 'digest'),
    bytes: integerOf(row, 'size') - ROW_OVERHEAD_BYTES,
  };
}

/** Memory of a row without its encoding, and of a key without its rows, in bytes. */
const ROW_BYTES = 400;
/** 32-bit numbers in a digest. */
const WORDS = RECORD_DIGEST_BYTES / 4;

export interface Selection {
  /** Empty selects every type. */
  readonly types: readonly RecordType[];
  readonly part?: Part | undefined;
}

/** Summary of the records under a key. Nodes with the same summary have the same records. */
export interface RecordSummary {
  readonly count: number;
  /** XOR of the digests. */
  readonly digest: Uint8Array;
}

export interface KeyRow extends StoredRecord {
  readonly part: number;
  /** Unix seconds. */
  readonly expiresAt: number;
  /** Its encoding, after the first request. Encodings that do not fit a datagram are not kept. */
  encoded?: Uint8Array;
}

/** True for records whose encodings are kept with their rows. */
export function isKept({ bytes }: StoredRecord): boolean {
  return bytes <= MAX_DATAGRAM_RECORD_BYTES;
}

/** The selected types, one byte per possible type; null for all. */
function typesOf({ types }: Selection): Uint8Array | null {
  if (types.length === 0) return null;
  const wanted = new Uint8Array(MAX_RECORD_TYPE + 1);
  for (const type of types) wanted[type] = 1;
  return wanted;
}

/** The rows under one key, by columns. Each answer scans all rows of a key, so a scan must be fast. */
export class RowTable {
  readonly rows: readonly KeyRow[];
  /** Maximum memory of the rows with their encodings. */
  readonly bytes: number;
  readonly #types: Uint8Array;
  readonly #parts: Uint32Array;
  readonly #expiresAt: Float64Array;
  readonly #digests: Int32Array;

  /** @param rows in the order of their parts */
  constructor(rows: readonly KeyRow[]) {
    this.rows = rows;
    this.bytes = rows.reduce((sum, row) => sum + ROW_BYTES + (isKept(row) ? row.bytes : 0), ROW_BYTES);
    this.#types = Uint8Array.from(rows, ({ type }) => type);
    this.#parts = Uint32Array.from(rows, ({ part }) => part);
    this.#expiresAt = Float64Array.from(rows, ({ expiresAt }) => expiresAt);
    const digests = new Uint8Array(rows.length * RECORD_DIGEST_BYTES);
    rows.forEach(({ digest }, i) => {
      digests.set(digest.subarray(0, RECORD_DIGEST_BYTES), i * RECORD_DIGEST_BYTES);
    });
    this.#digests = new Int32Array(digests.buffer);
  }

  /** Index of the next selected row from `from` that has not expired; -1 without one. */
  #next(from: number, types: Uint8Array | null, { part }: Selection, now: number): number {
    const [all, expiresAt, parts] = [this.#types, this.#expiresAt, this.#parts];
    // As 32 bits, because the remainder of larger numbers is several times slower.
    const [index, of] = part === undefined ? [0, 1] : [part.index >>> 0, part.of >>> 0];
    for (let i = from; i < all.length; i++) {
      if ((expiresAt[i] ?? 0) < now || (types !== null && types[all[i] ?? 0] === 0)) continue;
      if (((parts[i] ?? 0) >>> 0) % of === index) return i;
    }
    return -1;
  }

  /** The selected rows that have not expired, in the order of their parts. @param now Unix seconds */
  *select(selection: Selection, now: number): Generator<KeyRow> {
    const types = typesOf(selection);
    for (let i = this.#next(0, types, selection, now); i >= 0; i = this.#next(i + 1, types, selection, now)) {
      const row = this.rows[i];
      if (row !== undefined) yield row;
    }
  }

  /** @param now Unix seconds */
  summarize(selection: Selection, now: number): RecordSummary {
    const types = typesOf(selection);
    const sum = new Int32Array(WORDS);
    const digests = this.#digests;
    let count = 0;
    for (let i = this.#next(0, types, selection, now); i >= 0; i = this.#next(i + 1, types, selection, now)) {
      for (let word = 0; word < WORDS; word++) sum[word] = (sum[word] ?? 0) ^ (digests[i * WORDS + word] ?? 0);
      count++;
    }
    return { count, digest: new Uint8Array(sum.buffer) };
  }
}

/** Maximum memory of the rows of large keys with their encodings, in bytes … */
const MAX_CACHED_BYTES = 16 * 1024 * 1024;
/** … and of small keys, which large ones cannot evict. */
const MAX_SMALL_CACHED_BYTES = 4 * 1024 * 1024;
/** Memory of the rows of the largest small key, in bytes. */
const SMALL_KEY_BYTES = 64 * 1024;

/** The rows of all empty keys. */
const NO_ROWS = new RowTable([]);

/** The rows of some keys, within a limit of memory. */
class RowCache {
  readonly #maxBytes: number;
  /** By key, in hex, least recently used first. */
  readonly #tables = new Map<string, RowTable>();
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get(name: string): RowTable | undefined {
    return this.#tables.get(name);
  }

  delete(name: string): void {
    this.#bytes -= this.#tables.get(name)?.bytes ?? 0;
    this.#tables.delete(name);
  }

  /** Stores a table as the most recently used one, and evicts the least recently used ones. */
  set(name: string, table: RowTable): void {
    this.delete(name);
    this.#tables.set(name, table);
    this.#bytes += table.bytes;
    for (const oldest of this.#tables.keys()) {
      if (oldest === name || this.#bytes <= this.#maxBytes) return;
      this.delete(oldest);
    }
  }
}

export class KeyRows {
  readonly #store: () => Store;
  readonly #small = new RowCache(MAX_SMALL_CACHED_BYTES);
  readonly #large = new RowCache(MAX_CACHED_BYTES);

  constructor(store: () => Store) {
    this.#store = store;
  }

  /** True if the rows of a key are in memory, so that an answer needs no database query. */
  has(key: Uint8Array): boolean {
    return this.#cached(toHex(key)) !== undefined;
  }

  /** Reads the rows of a key into memory. Returns their number. */
  read(key: Uint8Array): number {
    return this.#table(key).rows.length;
  }

  /** Call this if the records under a key change. */
  forget(key: Uint8Array): void {
    const name = toHex(key);
    this.#small.delete(name);
    this.#large.delete(name);
  }

  /** The selected rows that have not expired, in the order of their parts. @param now Unix seconds */
  select(key: Uint8Array, selection: Selection, now: number): Generator<KeyRow> {
    return this.#table(key).select(selection, now);
  }

  /** @param now Unix seconds */
  summarize(key: Uint8Array, selection: Selection, now: number): RecordSummary {
    return this.#table(key).summarize(selection, now);
  }

  #table(key: Uint8Array): RowTable {
    const name = toHex(key);
    const table = this.#cached(name) ?? this.#read(key);
    (table.bytes <= SMALL_KEY_BYTES ? this.#small : this.#large).set(name, table);
    return table;
  }

  #cached(name: string): RowTable | undefined {
    return this.#small.get(name) ?? this.#large.get(name);
  }

  #read(key: Uint8Array): RowTable {
    const rows = this.#store().all(
      `SELECT ${STORED_COLUMNS}, part, expires_at FROM records WHERE key = ? ORDER BY part`,
      key,
    );
    if (rows.length === 0) return NO_ROWS;
    return new RowTable(
      rows.map((row) => ({
        ...toStored(row),
        part: integerOf(row, 'part'),
        expiresAt: integerOf(row, 'expires_at'),
      })),
    );
  }
}

/** Keys whose numbers are kept in memory. */
const MAX_CACHED_KEYS = 64;

function nameOf(key: Uint8Array, type: RecordType): string {
  return `${type} ${toHex(key)}`;
}

/**
 * Number of records per publisher under one key, in memory. Each new record needs it, and counting up to a thousand
 * rows each time would occupy the event loop.
 */
export class KeyShares {
  readonly #store: () => Store;
  readonly #cached = new LruCache<string, SourceTally>({ maxEntries: MAX_CACHED_KEYS });

  constructor(store: () => Store) {
    this.#store = store;
  }

  /** Records of one type under a key, by publisher. */
  of(key: Uint8Array, type: RecordType): SourceTally {
    const name = nameOf(key, type);
    const known = this.#cached.get(name);
    if (known !== undefined) return known;
    const tally = new SourceTally();
    const rows = this.#store().all(
      'SELECT publisher, COUNT(*) AS n FROM records WHERE key = ? AND +type = ? GROUP BY publisher',
      key,
      type,
    );
    for (const row of rows) tally.add(textOf(row, 'publisher'), integerOf(row, 'n'));
    this.#cached.set(name, tally);
    return tally;
  }

  /** Call this for each added (1) or removed (-1) record. */
  add(key: Uint8Array, type: RecordType, publisher: string, change: 1 | -1): void {
    this.#cached.peek(nameOf(key, type))?.add(publisher, change);
  }

  /** Call this if a transaction was rolled back. */
  clear(): void {
    this.#cached.clear();
  }
}
