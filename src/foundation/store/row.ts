/** Reads columns of a row in their own type. What a column cannot hold is a fault of ours, or damage: a TypeError. */
import type { Aid } from '../identity/aid.ts';
import type { Row } from './store.ts';

type Reader<T> = (row: Row | undefined, column: string) => T;

function wrong(column: string, expected: string): TypeError {
  return new TypeError(`the column ${column} holds no ${expected}`);
}

export function textOf(row: Row | undefined, column: string): string {
  const value = row?.[column];
  if (typeof value !== 'string') throw wrong(column, 'text');
  return value;
}

export function integerOf(row: Row | undefined, column: string): number {
  const value = row?.[column];
  if (typeof value !== 'number') throw wrong(column, 'integer');
  return value;
}

export function blobOf(row: Row | undefined, column: string): Uint8Array {
  const value = row?.[column];
  if (!(value instanceof Uint8Array)) throw wrong(column, 'blob');
  return value;
}

/** A truth value, which SQLite keeps as 0 or 1. */
export function flagOf(row: Row | undefined, column: string): boolean {
  return integerOf(row, column) === 1;
}

/** An AID that was checked before it was stored. */
export function aidFromRow(row: Row | undefined, column: string): Aid {
  return textOf(row, column) as Aid;
}

/** AIDs that were checked before they were stored, with blanks between them. */
export function aidsOf(row: Row | undefined, column: string): readonly Aid[] {
  return textOf(row, column).split(' ').filter(Boolean) as Aid[];
}

/** One of several words. */
export function wordOf<T extends string>(row: Row | undefined, column: string, words: readonly T[]): T {
  const value = row?.[column];
  const word = words.find((one) => one === value);
  if (word === undefined) throw wrong(column, words.join(' or '));
  return word;
}

/** What a reader reads; null where the column holds NULL, and where there is no row. */
export function orNull<T>(read: Reader<T>, row: Row | undefined, column: string): T | null {
  return row === undefined || row[column] === null ? null : read(row, column);
}

/** An integer; 0 where the column holds NULL, as a sum over nothing is, and where there is no row. */
export function orZero(row: Row | undefined, column: string): number {
  return orNull(integerOf, row, column) ?? 0;
}

/** The first rows whose column adds up to no more than `max`; at least one where there is one. */
export function within(rows: readonly Row[], column: string, max: number): Row[] {
  let sum = 0;
  const end = rows.findIndex((row, index) => {
    sum += integerOf(row, column);
    return sum > max && index > 0;
  });
  return end < 0 ? [...rows] : rows.slice(0, end);
}
