/**
 * Changes to the address book. Each change reads the book first. If another writer changed it meanwhile, the change
 * starts again.
 */
import { type Output, request } from './api.ts';
import { asFailure } from './failure.ts';
import { here } from './place.ts';

export type Book = Output<'addressBookGet'>;

const PATH = '/node/address-book';
/** Tries before the conflict is reported. */
const MAX_TRIES = 4;
/** HTTP status: the book has changed since it was read. */
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
        favorites: favorites.map(({ id, aid, skill, protocols, addedAt }) => ({ id, aid, skill, protocols, addedAt })),
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
 * Sets the shown label of an agent. An empty label removes it: the next label of the agent is shown, if there is one.
 *
 * @throws Failure
 */
export function setLabel(aid: string, alias: string): Promise<void> {
  return change(({ aliases, other_labels: further = {}, favorites }) => {
    const shown = alias === '' ? further[aid]?.[0] : alias;
    const others = aliasesWithout(aliases, aid);
    return { aliases: shown === undefined ? others : { ...others, [aid]: shown }, favorites };
  });
}

/**
 * Adds or removes the star of an agent.
 *
 * @throws Failure
 */
export function setStar(aid: string, isStar: boolean): Promise<void> {
  return change(({ aliases, favorites }) => {
    const others = favorites.filter((favorite) => favorite.aid !== aid);
    return { aliases, favorites: isStar ? [...others, { aid }] : others };
  });
}

/**
 * Removes an agent from the book.
 *
 * @param base the base path of the node that has the book
 * @throws Failure
 */
export function removeFromBook(gone: string, base: string): Promise<void> {
  return change(
    ({ aliases, favorites }) => ({
      aliases: aliasesWithout(aliases, gone),
      favorites: favorites.filter(({ aid }) => aid !== gone),
    }),
    base,
  );
}
