/** Pages of lists that are read as a whole: groups, contacts, access lists, tunnels. */
import { type Static, Type } from 'typebox';
import { closed } from './schemas.ts';

/** Most entries of a page. */
const MAX_LISTED = 1000;
/** Longest cursor, characters: it holds what an entry is called. */
const MAX_PLACE_CHARS = 512;

export const PageQuery = closed({
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_LISTED, description: 'Left out: all of them.' })),
  cursor: Type.Optional(Type.String({ maxLength: MAX_PLACE_CHARS, description: '`next_cursor` of the page before.' })),
});

/** What tools leave out: the contract names all parameters of a tool, and an assistant wants the whole list. */
export const PAGE_MEMBERS = Object.keys(PageQuery.properties);

/** Of an answer. */
export const NextCursor = Type.Optional(Type.String({ description: 'Present where more entries follow.' }));

/** An entry of a list, by a text that never changes and that no other entry has: entries stand in the order of it. */
interface Placed<E> {
  readonly place: string;
  readonly entry: E;
}

interface ListPage<E> {
  readonly entries: readonly E[];
  readonly next_cursor: string | undefined;
}

/** By code units, as a cursor is compared: another alphabet has no other order. */
function inOrder({ place: one }: Placed<unknown>, { place: other }: Placed<unknown>): number {
  return one === other ? 0 : one < other ? -1 : 1;
}

/** A page of a list. What was removed or added since the page before moves no other entry. */
export function listPage<E>(list: readonly Placed<E>[], { limit, cursor = '' }: Static<typeof PageQuery>): ListPage<E> {
  const behind = list.filter(({ place }) => place > cursor).sort(inOrder);
  const page = behind.slice(0, limit);
  return {
    entries: page.map(({ entry }) => entry),
    next_cursor: page.length < behind.length ? page.at(-1)?.place : undefined,
  };
}

/** Digits of the largest number that a place may begin with. */
const PLACE_DIGITS = String(Number.MAX_SAFE_INTEGER).length;

/** The place of what is counted. */
export function numberPlace(count: number): string {
  return String(count).padStart(PLACE_DIGITS, '0');
}
