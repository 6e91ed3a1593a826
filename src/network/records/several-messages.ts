/**
 * Several records of one key to one node in one datagram, and what became of them. What is told of each is one byte: who
 * wants to know more of one that was not kept hands it over by itself.
 */
import { encodeCbor, isBytes } from '../../foundation/cbor.ts';
import { MAX_DATAGRAM_RECORD_BYTES } from '../../foundation/records/types.ts';
import { DATAGRAM_OVERHEAD_BYTES, MAX_DATAGRAM_BYTES, readMap, STORE_CODES, type StoreCode } from './messages.ts';

/** Most records in one datagram: so many are put into the database in one step. */
export const MAX_SEVERAL = 4;
/** What stands around all records, and what before each, bytes. */
const FRAME_BYTES = 4;
const EACH_BYTES = 3;
/** Bytes of a request's value that a datagram holds. */
const MAX_VALUE_BYTES: number = MAX_DATAGRAM_BYTES - DATAGRAM_OVERHEAD_BYTES;

/** How many of the records, from the first on, go together in one datagram; 1 where the first goes alone. */
export function fitting(records: readonly { readonly encoded: Uint8Array }[]): number {
  let bytes = FRAME_BYTES;
  let count = 0;
  for (const { encoded } of records.slice(0, MAX_SEVERAL)) {
    bytes += encoded.length + EACH_BYTES;
    if (bytes > MAX_VALUE_BYTES) break;
    count++;
  }
  return Math.max(1, count);
}

export function encodeSeveralRequest(records: readonly { readonly encoded: Uint8Array }[]): Uint8Array {
  return encodeCbor({ r: records.map(({ encoded }) => encoded) });
}

function isRecord(value: unknown): value is Uint8Array {
  return isBytes(value) && value.length <= MAX_DATAGRAM_RECORD_BYTES;
}

export function decodeSeveralRequest(bytes: Uint8Array): readonly Uint8Array[] | null {
  const records = readMap(bytes, MAX_VALUE_BYTES, ['r'])?.['r'];
  if (!Array.isArray(records) || records.length === 0 || records.length > MAX_SEVERAL) return null;
  return records.every(isRecord) ? records : null;
}

/** @param codes what became of each record, in their order */
export function encodeSeveralReply(codes: readonly StoreCode[]): Uint8Array {
  return encodeCbor({ c: Uint8Array.from(codes, (code) => STORE_CODES.indexOf(code)) });
}

export function decodeSeveralReply(bytes: Uint8Array): readonly StoreCode[] | null {
  const numbers = readMap(bytes, MAX_VALUE_BYTES, ['c'])?.['c'];
  if (!isBytes(numbers) || numbers.length === 0 || numbers.length > MAX_SEVERAL) return null;
  const codes = [...numbers].map((number) => STORE_CODES[number]).filter((code) => code !== undefined);
  return codes.length === numbers.length ? codes : null;
}
