/**
 * What answers need of the rows under a key, in memory: strangers ask the same again and again, in other parts and
 * for other types, and a look into the database for each would let one of them take the event loop.
 */
import { toHex } from '../../foundation/bytes.ts';
import { integerOf } from '../../foundation/store/row.ts';
import type { Store } from '../../foundation/store/store.ts';
import { type KeyRow, type RecordSummary, RowTable, type Selection } from './row-table.ts';
import { STORED_COLUMNS, toStored } from './stored-record.ts';

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
