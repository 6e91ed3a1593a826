/**
 * The texts of the chosen language. The texts of the first view load immediately. Other texts load with their screens.
 */
import type { FindingWords, SettingWords } from '../words/daemon-words.ts';
import { en, type Words } from '../words/en.ts';
import type { LaterWords } from '../words/en-later.ts';
import type { NodeWords } from '../words/en-node.ts';
import { fill, type Text, type Values } from './text.ts';

export type Key = keyof Words | keyof LaterWords | keyof NodeWords;

export const LANGUAGES = { en: 'English', zh: '中文', ja: '日本語', de: 'Deutsch', es: 'Español' } as const;
export type Language = keyof typeof LANGUAGES;

interface Loaders {
  readonly first: () => Promise<Words>;
  readonly later: () => Promise<LaterWords>;
  readonly node: () => Promise<NodeWords>;
}
type MoreWords = Partial<LaterWords & NodeWords & SettingWords & FindingWords>;
/** Loads the texts of some screens in a language. */
type Loader = (language: Language) => Promise<MoreWords>;

const LOADERS: Readonly<Record<Language, Loaders>> = {
  en: {
    first: async () => en,
    later: async () => (await import('../words/en-later.ts')).enLater,
    node: async () => (await import('../words/en-node.ts')).enNode,
  },
  zh: {
    first: async () => (await import('../words/zh.ts')).zh,
    later: async () => (await import('../words/zh-later.ts')).zhLater,
    node: async () => (await import('../words/zh-node.ts')).zhNode,
  },
  ja: {
    first: async () => (await import('../words/ja.ts')).ja,
    later: async () => (await import('../words/ja-later.ts')).jaLater,
    node: async () => (await import('../words/ja-node.ts')).jaNode,
  },
  de: {
    first: async () => (await import('../words/de.ts')).de,
    later: async () => (await import('../words/de-later.ts')).deLater,
    node: async () => (await import('../words/de-node.ts')).deNode,
  },
  es: {
    first: async () => (await import('../words/es.ts')).es,
    later: async () => (await import('../words/es-later.ts')).esLater,
    node: async () => (await import('../words/es-node.ts')).esNode,
  },
};

let first: Words = en;
let loaded: MoreWords = {};
/** The texts that the opened screens need. */
const needed = new Set<Loader>();
export let language: Language = 'en';

export function isLanguage(text: string): text is Language {
  return Object.hasOwn(LANGUAGES, text);
}

/** The first available language of a list, such as that of the browser. */
export function bestLanguage(wanted: readonly string[]): Language {
  return wanted.map((tag) => tag.slice(0, 2)).find(isLanguage) ?? 'en';
}

/** Loads a language and switches to it. */
export async function setLanguage(wanted: Language): Promise<void> {
  const [words, ...parts] = await Promise.all([LOADERS[wanted].first(), ...[...needed].map((load) => load(wanted))]);
  first = words;
  loaded = Object.assign({}, ...parts);
  language = wanted;
  document.documentElement.lang = wanted;
}

/** The texts of all screens but the first view. */
export function loadLater(wanted: Language): Promise<LaterWords> {
  return LOADERS[wanted].later();
}

/** The texts of the pages of the node. */
export function loadNode(wanted: Language): Promise<NodeWords> {
  return LOADERS[wanted].node();
}

/** Loads more texts now, and again when the language changes. */
export async function loadTexts(load: Loader): Promise<void> {
  if (needed.has(load)) return;
  const texts = await load(language);
  loaded = { ...loaded, ...texts };
  needed.add(load);
}

function isFirst(key: string): key is keyof Words {
  return Object.hasOwn(first, key);
}

/** The text of a key, with the places for its values. */
export function raw(key: Key): Text {
  return isFirst(key) ? first[key] : (loaded[key] ?? key);
}

/** A text with its values. `n` selects its plural form. */
export function t(key: Key, values: Values = {}): string {
  return fill(raw(key), language, values);
}

/** A loaded text by a key that may not exist, such as one of a newer daemon. */
export function optionalText(key: string, values: Values = {}): string | undefined {
  const texts: Readonly<Record<string, Text | undefined>> = loaded;
  const text = Object.hasOwn(texts, key) ? texts[key] : undefined;
  return text === undefined ? undefined : fill(text, language, values);
}

/** True if the first view has a text with this key. The texts of errors are among them. */
export function isKey(text: string): text is keyof Words {
  return isFirst(text);
}
