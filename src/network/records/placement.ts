/** How many of the nodes closest to its key are given a record, and how many have to keep it. */
import type { SignedRecord } from '../../foundation/records/record.ts';
import { MAX_DATAGRAM_RECORD_BYTES } from '../../foundation/records/types.ts';

/** How many of the closest nodes are given a record: with a third of them dead, enough are left. */
export const STORE_WIDTH = 16;
/** As many for a record that goes over QUIC. */
export const LARGE_STORE_WIDTH = 10;

/** How many of the closest nodes are given this record. */
export function widthFor({ encoded }: SignedRecord): number {
  return encoded.length <= MAX_DATAGRAM_RECORD_BYTES ? STORE_WIDTH : LARGE_STORE_WIDTH;
}
