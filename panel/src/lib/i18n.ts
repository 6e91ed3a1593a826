/**
 * The language that is chosen, with its texts: those of the first view at once, the others with the first other screen,
 * and those of the node with its pages.
 */
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
let later: Partial<LaterWords & NodeWords> = {};
/** A screen that says more than the first view was opened. */
let needsAll = false;
/** A page of the node was opened. */
let needsNode = false;
export let language: Language = 'en';

export function isLanguage(text: string): text is Language {
  return Object.hasOwn(LANGUAGES, text);
}

/** The first language of a list, such as the browser's, that there is. */
export function bestLanguage(wanted: readonly string[]): Language {
  return wanted.map((tag) => tag.slice(0, 2)).find(isLanguage) ?? 'en';
}

/** Loads a language and speaks it from now on. */
export async function speak(wanted: Language): Promise<void> {
  const loaders = LOADERS[wanted];
  const [some, more, ofNode] = await Promise.all([
    loaders.first(),
    needsAll ? loaders.later() : {},
    needsNode ? loaders.node() : {},
  ]);
  [first, later] = [some, { ...more, ...ofNode }];
  language = wanted;
  document.documentElement.lang = wanted;
}

/** Loads what the first view does not say, too. */
export async function speakAll(): Promise<void> {
  if (needsAll) return;
  const more = await LOADERS[language].later();
  later = { ...later, ...more };
  needsAll = true;
}

/** Loads what the pages of the node say, too. */
export async function speakNode(): Promise<void> {
  if (needsNode) return;
  const more = await LOADERS[language].node();
  later = { ...later, ...more };
  needsNode = true;
}

function isFirst(key: string): key is keyof Words {
  return Object.hasOwn(first, key);
}

/** The text of a key as it stands, with places for values. */
export function raw(key: Key): Text {
  return isFirst(key) ? first[key] : (later[key] ?? key);
}

/** A text with its values; `n` chooses its plural form. */
export function t(key: Key, values: Values = {}): string {
  return fill(raw(key), language, values);
}

/** Whether there is such a text in the first view: those of errors are. */
export function isKey(text: string): text is keyof Words {
  return isFirst(text);
}
