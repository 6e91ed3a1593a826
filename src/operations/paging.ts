/** Pages of lists that are read completely: groups, contacts, access lists, tunnels. */
import { type Static, Type } from 'typebox';
import { closed } from './schemas.ts';

/** Largest page. */
const MAX_LISTED = 1000;
/** Longest cursor, characters. It contains the name of an entry. */
const MAX_CURSOR_CHARS = 512;

export const PageQuery = closed({
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: MAX_LISTED, description: 'Maximum number of items. Default: all.' }),
  ),
  cursor: Type.Optional(
    Type.String({ maxLength: MAX_CURSOR_CHARS, description: '`next_cursor` of the previous page.' }),
  ),
});

/** Omitted in tools: the contract fixes their parameters, and an assistant needs the whole list. */
export const PAGE_MEMBERS = Object.keys(PageQuery.properties);

/** Member of a response. */
export const NextCursor = Type.Optional(Type.String({ description: 'Absent on the last page.' }));

/** The sort key of an entry. It never changes, and no two entries have the same. */
interface SortableEntry<E> {
  readonly sortKey: string;
  readonly entry: E;
}

interface ListPage<E> {
  readonly entries: readonly E[];
  readonly next_cursor: string | undefined;
}

/** Compares by code units, as cursors do, independent of the locale. */
function compareEntries({ sortKey: one }: SortableEntry<unknown>, { sortKey: other }: SortableEntry<unknown>): number {
  return one === other ? 0 : one < other ? -1 : 1;
}

/** A page of a list. Entries added or removed since the previous page do not move others. */
export function listPage<E>(
  list: readonly SortableEntry<E>[],
  { limit, cursor = '' }: Static<typeof PageQuery>,
): ListPage<E> {
  const remaining = list.filter(({ sortKey }) => sortKey > cursor).sort(compareEntries);
  const page = remaining.slice(0, limit);
  return {
    entries: page.map(({ entry }) => entry),
    next_cursor: page.length < remaining.length ? page.at(-1)?.sortKey : undefined,
  };
}

/** Digits of the largest numeric cursor. */
const CURSOR_DIGITS = String(Number.MAX_SAFE_INTEGER).length;

/** Converts a numeric cursor. */
export function numberCursor(count: number): string {
  return String(count).padStart(CURSOR_DIGITS, '0');
}
