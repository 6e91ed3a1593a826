/**
 * The rows under one key, by columns: strangers ask for other parts and types each time, and each answer looks at all
 * rows of a key, which have to cost next to nothing.
 */
import {
  MAX_DATAGRAM_RECORD_BYTES,
  MAX_RECORD_TYPE,
  RECORD_DIGEST_BYTES,
  type RecordType,
} from '../../foundation/records/types.ts';
import type { Part } from './messages.ts';
import type { StoredRecord } from './stored-record.ts';

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
