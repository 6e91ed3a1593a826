/**
 * What answers need of the rows under a key, in memory: strangers ask the same again and again, in other parts and
 * for other types, and a look into the database for each would let one of them take the event loop.
 */
import { toHex } from '../../foundation/bytes.ts';
import { addDigest } from '../../foundation/records/digest.ts';
import { RECORD_DIGEST_BYTES, type RecordType } from '../../foundation/records/types.ts';
import { integerOf } from '../../foundation/store/row.ts';
import type { Store } from '../../foundation/store/store.ts';
import type { Part } from './messages.ts';
import { STORED_COLUMNS, type StoredRecord, toStored } from './stored-record.ts';

/** Rows that are kept in memory, of all keys together: some 300 bytes each. */
const MAX_CACHED_ROWS = 32_768;
/** Keys whose rows are kept, those of which there are none included. */
const MAX_CACHED_KEYS = 16_384;

export interface Selection {
  /** Empty selects every type. */
  readonly types: readonly RecordType[];
  readonly part?: Part;
}

export interface KeyRow extends StoredRecord {
  readonly part: number;
  /** Unix seconds. */
  readonly expiresAt: number;
}

/** What a node holds under a key: others that say the same hold the same. */
export interface RecordSummary {
  readonly count: number;
  /** XOR of the digests. */
  readonly digest: Uint8Array;
}

export class KeyRows {
  readonly #store: () => Store;
  /** By key, in hex; the one that was asked for longest ago first. */
  readonly #cached = new Map<string, readonly KeyRow[]>();
  #count = 0;

  constructor(store: () => Store) {
    this.#store = store;
  }

  /** True where the rows of a key are in memory: an answer costs no look into the database. */
  has(key: Uint8Array): boolean {
    return this.#cached.has(toHex(key));
  }

  /** Takes the rows of a key into memory; how many there are. */
  read(key: Uint8Array): number {
    return this.#rows(key).length;
  }

  /** To be called when something changes under a key. */
  forget(key: Uint8Array): void {
    const name = toHex(key);
    this.#count -= this.#cached.get(name)?.length ?? 0;
    this.#cached.delete(name);
  }

  /** The rows of a selection that have not expired, in the order of their parts. @param now Unix seconds */
  *select(key: Uint8Array, { types, part }: Selection, now: number): Generator<KeyRow> {
    for (const row of this.#rows(key)) {
      if (row.expiresAt < now || (types.length > 0 && !types.includes(row.type))) continue;
      if (part === undefined || row.part % part.of === part.index) yield row;
    }
  }

  summarize(key: Uint8Array, selection: Selection, now: number): RecordSummary {
    const digest = new Uint8Array(RECORD_DIGEST_BYTES);
    let count = 0;
    for (const row of this.select(key, selection, now)) {
      addDigest(digest, row.digest);
      count++;
    }
    return { count, digest };
  }

  #rows(key: Uint8Array): readonly KeyRow[] {
    const name = toHex(key);
    const rows = this.#cached.get(name) ?? this.#read(key);
    if (!this.#cached.delete(name)) this.#count += rows.length;
    this.#cached.set(name, rows);
    for (const [oldest, { length }] of this.#cached) {
      if (oldest === name || (this.#count <= MAX_CACHED_ROWS && this.#cached.size <= MAX_CACHED_KEYS)) break;
      this.#cached.delete(oldest);
      this.#count -= length;
    }
    return rows;
  }

  #read(key: Uint8Array): KeyRow[] {
    return this.#store()
      .all(`SELECT ${STORED_COLUMNS}, part, expires_at FROM records WHERE key = ? ORDER BY part`, key)
      .map((row) => ({ ...toStored(row), part: integerOf(row, 'part'), expiresAt: integerOf(row, 'expires_at') }));
  }
}
