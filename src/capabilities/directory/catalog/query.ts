/**
 * Searches in plain language, answered by a network that knows names: which names a text may mean, and how well what
 * is found under them fits the text.
 */
import { MAX_NAMES_PER_CALL, MAX_SCORE } from '../../../foundation/domain/directory.ts';
import { isServiceName } from '../../../foundation/domain/services.ts';
import type { CatalogEntry, CatalogOffer } from './entries.ts';

/** Words that say nothing of what is sought. */
const FILLERS: ReadonlySet<string> = new Set(
  (
    'a an the this that any some all me my we i you it is are be do does can could would please find search get give show ' +
    'need want look looking for to of in on at by with from and or who which what where how help use using ' +
    'agent agents tool tools service services server servers api apis'
  ).split(' '),
);

/** By field path: values of which one has to be there. */
export type Filter = Readonly<Record<string, string | readonly string[]>>;

/** The words of a text that say something, in lower case and in their order. */
export function wordsOf(text: string): string[] {
  const words = text.toLowerCase().match(/[\p{L}\p{N}][\p{L}\p{N}._-]*/gu) ?? [];
  return [...new Set(words.map((word) => word.replace(/[._-]+$/, '')))].filter((word) => !FILLERS.has(word));
}

/**
 * Service names that a text may mean, the likeliest first: those that stand in it, its words, and pairs of them as
 * `category.name`.
 */
export function namesIn(text: string): string[] {
  const words = wordsOf(text);
  const [written, plain] = [words.filter((word) => word.includes('.')), words.filter((word) => !word.includes('.'))];
  const neighbours = plain.slice(1).flatMap((word, i) => [`${plain[i]}.${word}`, `${word}.${plain[i]}`]);
  const pairs = plain.flatMap((a) => plain.filter((b) => b !== a).map((b) => `${a}.${b}`));
  const names = new Set([...written, ...neighbours, ...plain, ...pairs]);
  return [...names].filter(isServiceName).slice(0, MAX_NAMES_PER_CALL);
}

/** How much of a text an offer answers: 0 to `MAX_SCORE`. An offer under a name that stands in the text answers all of it. */
export function scoreOf(offer: CatalogOffer, text: string): number {
  const words = wordsOf(text);
  if (words.length === 0) return 0;
  if (offer.service !== null && words.includes(offer.service)) return MAX_SCORE;
  const told = [offer.service ?? '', offer.name, offer.brief, ...offer.tags, ...offer.protocols].join(' ');
  const known = new Set(wordsOf(told.replaceAll('.', ' ')));
  return Math.round((MAX_SCORE * words.filter((word) => known.has(word)).length) / words.length);
}

/** The texts at a path of an entry; of lists, those of each element. */
function textsAt(value: unknown, path: readonly string[]): string[] {
  if (Array.isArray(value)) return value.flatMap((element) => textsAt(element, path));
  const [first, ...rest] = path;
  if (first === undefined) return typeof value === 'string' ? [value] : [];
  return typeof value === 'object' && value !== null && Object.hasOwn(value, first)
    ? textsAt(Reflect.get(value, first), rest)
    : [];
}

/** The publisher that an identifier names: a DID, or the segment behind `urn:air:`. */
function publisherOf({ identifier, trustManifest }: CatalogEntry): string {
  return trustManifest.identityType === 'did' ? trustManifest.identity : (identifier.split(':')[2] ?? '');
}

/** True where an entry has one of the values at each path. */
export function fits(entry: CatalogEntry, filter: Filter): boolean {
  return Object.entries(filter).every(([path, wanted]) => {
    const texts = path === 'publisher' ? [publisherOf(entry)] : textsAt(entry, path.split('.'));
    const values = (typeof wanted === 'string' ? [wanted] : wanted).map((text) => text.toLowerCase());
    return texts.some((text) => values.includes(text.toLowerCase()));
  });
}
