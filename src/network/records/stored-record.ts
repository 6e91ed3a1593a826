/** Rows of the record store: what they are made of, and what is read of them. */
import { createHash } from 'node:crypto';
import type { SignedRecord } from '../../foundation/records/record.ts';
import { RECORD, type RecordType } from '../../foundation/records/types.ts';
import { blobOf, integerOf } from '../../foundation/store/row.ts';
import type { Row, SqlValue } from '../../foundation/store/store.ts';

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
