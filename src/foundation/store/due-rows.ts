/** The rows of a table as the items of a `DueQueue`. Times are Unix milliseconds. */
import type { Due, DueTable } from '../due-queue.ts';
import { integerOf, orNull, textOf } from './row.ts';
import type { Row, Store } from './store.ts';

/** Constant parts of the SQL. */
export interface DueColumns {
  readonly table: string;
  /** The column of the due time. It needs an index. NULL: never due. */
  readonly dueAt: string;
  /** SQL of a text that differs for each item. */
  readonly id: string;
  /** SQL of the text that `Due.key` describes. */
  readonly key: string;
  /** SQL condition of the rows whose due time `makeDue` may change. `?1` is the new due time. Default: all. */
  readonly movable?: string;
}

/**
 * @param read reads the item of a row
 * @param postpone see `DueTable.postpone`
 */
export function dueRows<T>(
  store: Store,
  { table, dueAt, id, key, movable = 'TRUE' }: DueColumns,
  read: (row: Row) => T,
  postpone: (item: T, at: number) => void,
): DueTable<T> {
  const due = `SELECT *, ${id} AS due_id, ${key} AS due_key FROM ${table}
    WHERE ${dueAt} <= ? AND ${key} NOT IN (SELECT value FROM json_each(?)) ORDER BY ${dueAt} LIMIT ?`;
  const next = `SELECT min(${dueAt}) AS at FROM ${table} WHERE ${dueAt} > ?`;
  const move = `UPDATE ${table} SET ${dueAt} = ?1 WHERE ${dueAt} > ?2 AND ${dueAt} <= ?3 AND (${movable})`;
  const dueOf = (row: Row): Due<T> => ({
    id: textOf(row, 'due_id'),
    key: textOf(row, 'due_key'),
    attempts: integerOf(row, 'attempts'),
    item: read(row),
  });
  return {
    due: (now, limit, except) => store.all(due, now, JSON.stringify(except), limit).map(dueOf),
    nextDue: (after) => orNull(integerOf, store.one(next, after), 'at'),
    postpone: ({ item }, at) => store.commit(() => postpone(item, at), 'soon'),
    makeDue: (now, after, until) => {
      store.commit(() => store.run(move, now, after, until), 'soon');
    },
  };
}
