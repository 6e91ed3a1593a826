/** Pages of lists that are read completely: groups, contacts, access lists, tunnels. */
import { type Static, Type } from 'typebox';
import { closed } from './schemas.ts';

/** Largest page. */
const MAX_LISTED = 1000;
/** Longest cursor, characters. It contains the name of an entry. */
const MAX_PLACE_CHARS = 512;

export const PageQuery = closed({
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_LISTED, description: 'Default: all entries.' })),
  cursor: Type.Optional(
    Type.String({ maxLength: MAX_PLACE_CHARS, description: '`next_cursor` of the previous page.' }),
  ),
});

/** Omitted in tools: the contract fixes their parameters, and an assistant needs the whole list. */
export const PAGE_MEMBERS = Object.keys(PageQuery.properties);

/** Member of a response. */
export const NextCursor = Type.Optional(Type.String({ description: 'Absent on the last page.' }));

/** The sort key of an entry. It never changes, and no two entries have the same. */
interface Placed<E> {
  readonly place: string;
  readonly entry: E;
}

interface ListPage<E> {
  readonly entries: readonly E[];
  readonly next_cursor: string | undefined;
}

/** Compares by code units, as cursors do, independent of the locale. */
function inOrder({ place: one }: Placed<unknown>, { place: other }: Placed<unknown>): number {
  return one === other ? 0 : one < other ? -1 : 1;
}

/** A page of a list. Entries added or removed since the previous page do not move others. */
export function listPage<E>(list: readonly Placed<E>[], { limit, cursor = '' }: Static<typeof PageQuery>): ListPage<E> {
  const behind = list.filter(({ place }) => place > cursor).sort(inOrder);
  const page = behind.slice(0, limit);
  return {
    entries: page.map(({ entry }) => entry),
    next_cursor: page.length < behind.length ? page.at(-1)?.place : undefined,
  };
}

/** Digits of the largest numeric cursor. */
const PLACE_DIGITS = String(Number.MAX_SAFE_INTEGER).length;

/** Converts a numeric cursor. */
export function numberPlace(count: number): string {
  return String(count).padStart(PLACE_DIGITS, '0');
}
