/** Settings of the panel in the browser: language, theme, shortcuts. */
import { bestLanguage, isLanguage, type Language } from './i18n.ts';
import { sharedStorage } from './storage.ts';

const THEME = 'svcd-theme';
const LANGUAGE = 'svcd-language';
const LETTERS = 'svcd-letters';
export const THEMES = ['auto', 'light', 'dark'] as const;
export type Theme = (typeof THEMES)[number];

export function savedTheme(): Theme {
  const saved = sharedStorage.get(THEME);
  return THEMES.find((theme) => theme === saved) ?? 'auto';
}

/** Applies a theme and stores it. */
export function setTheme(theme: Theme): void {
  sharedStorage.set(THEME, theme === 'auto' ? '' : theme);
  if (theme === 'auto') delete document.documentElement.dataset['theme'];
  else document.documentElement.dataset['theme'] = theme;
}

export function savedLanguage(): Language {
  const saved = sharedStorage.get(LANGUAGE);
  return isLanguage(saved) ? saved : bestLanguage(navigator.languages);
}

export function saveLanguage(language: Language): void {
  sharedStorage.set(LANGUAGE, language);
}

/** True if single-letter shortcuts are on. People who use speech input may turn them off. */
export function lettersAct(): boolean {
  return sharedStorage.get(LETTERS) !== 'off';
}

export function saveLettersAct(act: boolean): void {
  sharedStorage.set(LETTERS, act ? '' : 'off');
}
