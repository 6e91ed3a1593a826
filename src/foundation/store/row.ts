/** Typed access to the columns of a row. A value of the wrong type is a bug or damage, and throws a TypeError. */
import type { Aid } from '../identity/aid.ts';
import type { Row } from './store.ts';

type Reader<T> = (row: Row | undefined, column: string) => T;

function columnError(column: string, expected: string): TypeError {
  return new TypeError(`column ${column} has no ${expected}`);
}

export function textOf(row: Row | undefined, column: string): string {
  const value = row?.[column];
  if (typeof value !== 'string') throw columnError(column, 'text');
  return value;
}

export function integerOf(row: Row | undefined, column: string): number {
  const value = row?.[column];
  if (typeof value !== 'number') throw columnError(column, 'integer');
  return value;
}

export function blobOf(row: Row | undefined, column: string): Uint8Array {
  const value = row?.[column];
  if (!(value instanceof Uint8Array)) throw columnError(column, 'blob');
  return value;
}

/** A boolean, which SQLite stores as 0 or 1. */
export function flagOf(row: Row | undefined, column: string): boolean {
  return integerOf(row, column) === 1;
}

/** An AID that was validated before it was stored. */
export function aidFromRow(row: Row | undefined, column: string): Aid {
  return textOf(row, column) as Aid;
}

/** AIDs that were validated before they were stored, separated by blanks. */
export function aidsOf(row: Row | undefined, column: string): readonly Aid[] {
  return textOf(row, column).split(' ').filter(Boolean) as Aid[];
}

/** One of several strings. */
export function wordOf<T extends string>(row: Row | undefined, column: string, words: readonly T[]): T {
  const value = row?.[column];
  const word = words.find((one) => one === value);
  if (word === undefined) throw columnError(column, words.join(' or '));
  return word;
}

/** Reads a column with `read`; null if the column is NULL or there is no row. */
export function orNull<T>(read: Reader<T>, row: Row | undefined, column: string): T | null {
  return row === undefined || row[column] === null ? null : read(row, column);
}

/** An integer; 0 if the column is NULL, as a sum over no rows is, or if there is no row. */
export function orZero(row: Row | undefined, column: string): number {
  return orNull(integerOf, row, column) ?? 0;
}

/** The first rows with a sum of `column` up to `max`, but at least one. */
export function takeWithin<R extends Row | { readonly [C in K]: number }, K extends string>(
  rows: readonly R[],
  column: K,
  max: number,
): R[] {
  let sum = 0;
  const end = rows.findIndex((row, index) => {
    sum += Number(row[column]);
    return sum > max && index > 0;
  });
  return end < 0 ? [...rows] : rows.slice(0, end);
}
