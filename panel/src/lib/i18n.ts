/**
 * The texts of the chosen language. Those of the first view load at once. The others load with the screens that need
 * them.
 */
import type { FindingWords, SettingWords } from '../words/daemon-words.ts';
import { en, type Words } from '../words/en.ts';
import type { LaterWords } from '../words/en-later.ts';
import type { NodeWords } from '../words/en-node.ts';
import { fill, type Text, type Values } from './text.ts';

export type Key = keyof Words | keyof LaterWords | keyof NodeWords;

export const LANGUAGES = { en: 'English', zh: '中文', ja: '日本語', de: 'Deutsch', es: 'Español' } as const;
export type Language = keyof typeof LANGUAGES;

/** The texts by when they load. The daemon has those of `settings` and `doctor` in English. */
interface Loaders {
  readonly first: () => Promise<Words>;
  readonly later: () => Promise<LaterWords>;
  readonly node: () => Promise<NodeWords>;
  readonly settings: () => Promise<Partial<SettingWords>>;
  readonly doctor: () => Promise<Partial<FindingWords>>;
}
type Part = Exclude<keyof Loaders, 'first'>;

const LOADERS: Readonly<Record<Language, Loaders>> = {
  en: {
    first: async () => en,
    later: async () => (await import('../words/en-later.ts')).enLater,
    node: async () => (await import('../words/en-node.ts')).enNode,
    settings: async () => ({}),
    doctor: async () => ({}),
  },
  zh: {
    first: async () => (await import('../words/zh.ts')).zh,
    later: async () => (await import('../words/zh-later.ts')).zhLater,
    node: async () => (await import('../words/zh-node.ts')).zhNode,
    settings: async () => (await import('../words/zh-settings.ts')).zhSettings,
    doctor: async () => (await import('../words/zh-doctor.ts')).zhDoctor,
  },
  ja: {
    first: async () => (await import('../words/ja.ts')).ja,
    later: async () => (await import('../words/ja-later.ts')).jaLater,
    node: async () => (await import('../words/ja-node.ts')).jaNode,
    settings: async () => (await import('../words/ja-settings.ts')).jaSettings,
    doctor: async () => (await import('../words/ja-doctor.ts')).jaDoctor,
  },
  de: {
    first: async () => (await import('../words/de.ts')).de,
    later: async () => (await import('../words/de-later.ts')).deLater,
    node: async () => (await import('../words/de-node.ts')).deNode,
    settings: async () => (await import('../words/de-settings.ts')).deSettings,
    doctor: async () => (await import('../words/de-doctor.ts')).deDoctor,
  },
  es: {
    first: async () => (await import('../words/es.ts')).es,
    later: async () => (await import('../words/es-later.ts')).esLater,
    node: async () => (await import('../words/es-node.ts')).esNode,
    settings: async () => (await import('../words/es-settings.ts')).esSettings,
    doctor: async () => (await import('../words/es-doctor.ts')).esDoctor,
  },
};

let first: Words = en;
let loaded: Partial<LaterWords & NodeWords & SettingWords & FindingWords> = {};
/** The parts that the opened screens need. */
const needed = new Set<Part>();
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
  const loaders = LOADERS[wanted];
  const [words, ...parts] = await Promise.all([loaders.first(), ...[...needed].map((part) => loaders[part]())]);
  first = words;
  loaded = Object.assign({}, ...parts);
  language = wanted;
  document.documentElement.lang = wanted;
}

/** Loads a part of the texts. It stays loaded when the language changes. */
export async function loadTexts(part: Part): Promise<void> {
  if (needed.has(part)) return;
  const texts = await LOADERS[language][part]();
  loaded = { ...loaded, ...texts };
  needed.add(part);
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

function isLoaded(key: string): key is keyof typeof loaded {
  return Object.hasOwn(loaded, key);
}

/** The translation of a text of the daemon. Undefined in English, and for a text of a newer daemon. */
export function translated(key: keyof SettingWords | keyof FindingWords | (string & {}), values: Values = {}) {
  return isLoaded(key) ? fill(loaded[key] ?? '', language, values) : undefined;
}

/** True if the first view has a text with this key. The texts of errors are among them. */
export function isKey(text: string): text is keyof Words {
  return isFirst(text);
}
