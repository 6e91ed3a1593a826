/** The language that is chosen, with its texts. */
import { en, type Words } from '../words/en.ts';
import { fill, type Text, type Values } from './text.ts';

export type Key = keyof typeof en;

export const LANGUAGES = { en: 'English', zh: '中文', ja: '日本語', de: 'Deutsch', es: 'Español' } as const;
export type Language = keyof typeof LANGUAGES;

const LOADERS: Readonly<Record<Language, () => Promise<Words>>> = {
  en: async () => en,
  zh: async () => (await import('../words/zh.ts')).zh,
  ja: async () => (await import('../words/ja.ts')).ja,
  de: async () => (await import('../words/de.ts')).de,
  es: async () => (await import('../words/es.ts')).es,
};

let current: Words = en;
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
  current = await LOADERS[wanted]();
  language = wanted;
  document.documentElement.lang = wanted;
}

/** The text of a key as it stands, with places for values. */
export function raw(key: Key): Text {
  return current[key];
}

/** A text with its values; `n` chooses its plural form. */
export function t(key: Key, values: Values = {}): string {
  return fill(current[key], language, values);
}

export function isKey(text: string): text is Key {
  return Object.hasOwn(en, text);
}
