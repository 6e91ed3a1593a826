/** The English dictionary of cspell with its terms of computing, and the words of the project. */
import { readFileSync } from 'node:fs';
import { finalizeSettings, getDefaultBundledSettingsAsync, getDictionary, mergeSettings } from 'cspell-lib';
import type { Passage } from './passage.ts';

const DICTIONARIES = [
  'en_us',
  'softwareTerms',
  'computing-acronyms',
  'networking-terms',
  'typescript',
  'node',
  'npm',
  'css',
  'html',
  'bash',
  'filetypes',
  'companies',
  'public-licenses',
];
const SUGGESTIONS = 3;
/** A word of prose: not part of a path, an address, an option or an identifier. */
const PROSE_WORD = /(?<![\p{L}\d_./\\@:#$~&%=+-])\p{L}[\p{L}'’]*(?![\p{L}\d_@\\/=(]|[.:][\p{L}\d_/])/gu;
/** Identifiers, and words of other alphabets and languages. */
const NO_ENGLISH_WORD = /\p{Ll}\p{Lu}|[^A-Za-z'’]/u;

export interface Misspelling {
  readonly word: string;
  /** Offset in the file. */
  readonly offset: number;
}

export interface Speller {
  readonly misspelled: (passage: Passage) => readonly Misspelling[];
  readonly suggestions: (word: string) => readonly string[];
}

/** One word a line; lines that begin with `#` are headings. */
function projectWords(): string[] {
  const lines = readFileSync(new URL('dictionary.txt', import.meta.url), 'utf8').split('\n');
  return lines.map((line) => line.trim()).filter((line) => line !== '' && !line.startsWith('#'));
}

export async function loadSpeller(words: readonly string[] = projectWords()): Promise<Speller> {
  const settings = mergeSettings(await getDefaultBundledSettingsAsync(), {
    language: 'en',
    dictionaries: DICTIONARIES,
    words: [...words],
  });
  const dictionary = await getDictionary(finalizeSettings(settings));
  const known = new Map<string, boolean>();
  const suggested = new Map<string, readonly string[]>();
  const isKnown = (word: string): boolean => {
    const plain = word.replaceAll('’', "'").replace(/'s?$/, '');
    const answer = known.get(plain) ?? dictionary.has(plain, { ignoreCase: true });
    known.set(plain, answer);
    return answer;
  };
  return {
    misspelled: ({ text, offsets }) =>
      [...text.matchAll(PROSE_WORD)]
        .filter(({ 0: word }) => word.length > 2 && !NO_ENGLISH_WORD.test(word) && !isKnown(word))
        .map(({ 0: word, index }) => ({ word, offset: offsets[index] ?? 0 })),
    suggestions: (word) => {
      const found =
        suggested.get(word) ??
        dictionary.suggest(word, { numSuggestions: SUGGESTIONS }).map(({ word: other }) => other);
      suggested.set(word, found);
      return found;
    },
  };
}
