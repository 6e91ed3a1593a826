/** Detects rows that the disk changed. SQLite itself has no checksums. */
import { crc32 } from 'node:zlib';
import type { SqlValue } from './store.ts';

/** Separates two values, so that moving bytes between them changes the sum. */
const SEPARATOR = '\x1f';

/** A checksum over the values of a row, as they are read. */
export function rowSum(...values: readonly SqlValue[]): number {
  return values.reduce<number>((sum, value) => {
    const bytes = value instanceof Uint8Array ? value : value === null ? '' : String(value);
    return crc32(bytes, crc32(SEPARATOR, sum));
  }, 0);
}
