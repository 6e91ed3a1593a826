/**
 * What answers need of the rows under a key, in memory: strangers ask the same again and again, in other parts and
 * for other types, and a look into the database for each would let one of them take the event loop.
 */

import { createHash } from 'node:crypto';
import { toHex } from '../../foundation/bytes.ts';
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

/** Rows of the record store: what they are made of, and what is read of them. */

/** What a row costs beside its record, bytes: columns and indexes. */
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

/** True for the types of which a key holds the records of many publishers. */
export function isOfMany(type: RecordType): boolean {
  return type === RECORD.service || type === RECORD.note;
}

/** Notes of one identity are told apart by their `seq`; of everything else there is one. */
export function noteOf(record: SignedRecord): number {
  return record.type === RECORD.note ? record.seq : 0;
}

/** Which record of a key it is a version of: what the table tells them apart by. */
export function slotOf(key: Uint8Array, record: SignedRecord): SqlValue[] {
  return [key, record.type, record.aid, noteOf(record)];
}

/** What a record costs us, bytes. */
export function sizeOf({ encoded }: SignedRecord): number {
  return encoded.length + ROW_OVERHEAD_BYTES;
}

/** Into which part a record falls when a key's records are asked for in parts: the same on every node. */
export function partOf(record: SignedRecord): number {
  return createHash('sha256')
    .update(`${record.type}\0${record.aid}\0${noteOf(record)}`)
    .digest()
    .readUInt32BE(0);
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

/**
 * The rows under one key, by columns: strangers ask for other parts and types each time, and each answer looks at all
 * rows of a key, which have to cost next to nothing.
 */

/** What a row takes in memory beside its encoding, and a key beside its rows, bytes. */
const ROW_BYTES = 400;
/** 32-bit numbers in a digest. */
const WORDS = RECORD_DIGEST_BYTES / 4;

export interface Selection {
  /** Empty selects every type. */
  readonly types: readonly RecordType[];
  readonly part?: Part;
}

/** What a node holds under a key: others that say the same hold the same. */
export interface RecordSummary {
  readonly count: number;
  /** XOR of the digests. */
  readonly digest: Uint8Array;
}

export interface KeyRow extends StoredRecord {
  readonly part: number;
  /** Unix seconds. */
  readonly expiresAt: number;
  /** Its encoding, once it was asked for; those that no datagram holds are not kept. */
  encoded?: Uint8Array;
}

/** True for records whose encodings are kept with their rows. */
export function isKept({ bytes }: StoredRecord): boolean {
  return bytes <= MAX_DATAGRAM_RECORD_BYTES;
}

/** Which types a selection has, one byte for each type that there can be; null for all. */
function typesOf({ types }: Selection): Uint8Array | null {
  if (types.length === 0) return null;
  const wanted = new Uint8Array(MAX_RECORD_TYPE + 1);
  for (const type of types) wanted[type] = 1;
  return wanted;
}

export class RowTable {
  readonly rows: readonly KeyRow[];
  /** What it takes in memory at most, the encodings included. */
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

  /** Where the next row of a selection stands that has not expired, from a place on; -1 where there is none. */
  #next(from: number, types: Uint8Array | null, { part }: Selection, now: number): number {
    const [all, expiresAt, parts] = [this.#types, this.#expiresAt, this.#parts];
    // As 32 bits: the remainder of larger numbers takes several times as long.
    const [index, of] = part === undefined ? [0, 1] : [part.index >>> 0, part.of >>> 0];
    for (let i = from; i < all.length; i++) {
      if ((expiresAt[i] ?? 0) < now || (types !== null && types[all[i] ?? 0] === 0)) continue;
      if (((parts[i] ?? 0) >>> 0) % of === index) return i;
    }
    return -1;
  }

  /** The rows of a selection that have not expired, in the order of their parts. @param now Unix seconds */
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

/** Rows that are kept in memory, of all keys together, with the encodings that datagrams hold: bytes. */
const MAX_CACHED_BYTES = 16 * 1024 * 1024;

/** The rows of all keys under which there is nothing. */
const NO_ROWS = new RowTable([]);

export class KeyRows {
  readonly #store: () => Store;
  /** By key, in hex; the one that was asked for longest ago first. */
  readonly #cached = new Map<string, RowTable>();
  #bytes = 0;

  constructor(store: () => Store) {
    this.#store = store;
  }

  /** True where the rows of a key are in memory: an answer costs no look into the database. */
  has(key: Uint8Array): boolean {
    return this.#cached.has(toHex(key));
  }

  /** Takes the rows of a key into memory; how many there are. */
  read(key: Uint8Array): number {
    return this.#table(key).rows.length;
  }

  /** To be called when something changes under a key. */
  forget(key: Uint8Array): void {
    const name = toHex(key);
    this.#bytes -= this.#cached.get(name)?.bytes ?? 0;
    this.#cached.delete(name);
  }

  /** The rows of a selection that have not expired, in the order of their parts. @param now Unix seconds */
  select(key: Uint8Array, selection: Selection, now: number): Generator<KeyRow> {
    return this.#table(key).select(selection, now);
  }

  /** @param now Unix seconds */
  summarize(key: Uint8Array, selection: Selection, now: number): RecordSummary {
    return this.#table(key).summarize(selection, now);
  }

  #table(key: Uint8Array): RowTable {
    const name = toHex(key);
    const table = this.#cached.get(name) ?? this.#read(key);
    if (!this.#cached.delete(name)) this.#bytes += table.bytes;
    this.#cached.set(name, table);
    for (const [oldest, { bytes }] of this.#cached) {
      if (oldest === name || this.#bytes <= MAX_CACHED_BYTES) break;
      this.#cached.delete(oldest);
      this.#bytes -= bytes;
    }
    return table;
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

/**
 * Who has how many of the records that many publishers store under one key, in memory: each record that comes asks for
 * it, and to count up to a thousand rows each time would let a burst of records take the event loop.
 */

/** Keys whose shares are kept in memory. */
const MAX_CACHED_KEYS = 64;

function nameOf(key: Uint8Array, type: RecordType): string {
  return `${type} ${toHex(key)}`;
}

export class KeyShares {
  readonly #store: () => Store;
  readonly #cached = new LruCache<string, SourceTally>({ maxEntries: MAX_CACHED_KEYS });

  constructor(store: () => Store) {
    this.#store = store;
  }

  /** Records of one type under a key, by their publishers. */
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

  /** To be called for each record that comes or, with -1, goes. */
  add(key: Uint8Array, type: RecordType, publisher: string, change: 1 | -1): void {
    this.#cached.peek(nameOf(key, type))?.add(publisher, change);
  }

  /** To be called where what was added did not happen after all. */
  clear(): void {
    this.#cached.clear();
  }
}
