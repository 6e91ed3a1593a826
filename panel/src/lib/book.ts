/** Changes of the address book: it is read at once before, and where somebody else wrote meanwhile, read and changed again. */
import { type Output, request } from './api.ts';
import { asFailure } from './failure.ts';
import { here } from './place.ts';

export type Book = Output<'addressBookGet'>;

const PATH = '/node/address-book';
/** Another writer came between so often: it is said. */
const MAX_TRIES = 4;
/** HTTP: the book is no longer the one that was read. */
const CHANGED = 412;

interface Changed {
  readonly aliases: Book['aliases'];
  readonly favorites: readonly ({ readonly aid: string } & Partial<Omit<Book['favorites'][number], 'aid'>>)[];
}

async function change(by: (book: Book) => Changed, base = here().base, tries = MAX_TRIES): Promise<void> {
  const path = `${base}${PATH}`;
  const read = await request(path, {});
  const book: Book = await read.json();
  const tag = read.headers.get('etag');
  const { aliases, favorites } = by(book);
  try {
    await request(path, {
      method: 'PUT',
      headers: { 'content-type': 'application/json', ...(tag === null ? {} : { 'if-match': tag }) },
      body: JSON.stringify({
        aliases,
        favorites: favorites.map(({ aid, skill, protocols, addedAt }) => ({ aid, skill, protocols, addedAt })),
      }),
    });
  } catch (error) {
    if (asFailure(error).status !== CHANGED || tries === 1) throw error;
    await change(by, base, tries - 1);
  }
}

function aliasesWithout(aliases: Book['aliases'], gone: string): Book['aliases'] {
  return Object.fromEntries(Object.entries(aliases).filter(([aid]) => aid !== gone));
}

/**
 * Calls an agent so from now on; an empty name takes its name away.
 * @throws Failure
 */
export function named(aid: string, alias: string): Promise<void> {
  return change(({ aliases, favorites }) => {
    const others = aliasesWithout(aliases, aid);
    return { aliases: alias === '' ? others : { ...others, [aid]: alias }, favorites };
  });
}

/**
 * Stars an agent, or takes its star away.
 * @throws Failure
 */
export function starred(aid: string, isStar: boolean): Promise<void> {
  return change(({ aliases, favorites }) => {
    const others = favorites.filter((favorite) => favorite.aid !== aid);
    return { aliases, favorites: isStar ? [...others, { aid }] : others };
  });
}

/**
 * Takes an agent out of the book.
 * @param base of the node whose book it is
 * @throws Failure
 */
export function without(gone: string, base: string): Promise<void> {
  return change(
    ({ aliases, favorites }) => ({
      aliases: aliasesWithout(aliases, gone),
      favorites: favorites.filter(({ aid }) => aid !== gone),
    }),
    base,
  );
}
