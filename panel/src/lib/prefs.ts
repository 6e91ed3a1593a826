/** What the panel keeps in the browser: how it looks, and nothing else. */
import { bestLanguage, isLanguage, type Language } from './i18n.ts';

const THEME = 'svcd-theme';
const LANGUAGE = 'svcd-language';
const LETTERS = 'svcd-letters';
export const THEMES = ['auto', 'light', 'dark'] as const;
export type Theme = (typeof THEMES)[number];

export function savedTheme(): Theme {
  const saved = localStorage.getItem(THEME);
  return THEMES.find((theme) => theme === saved) ?? 'auto';
}

/** Shows a theme and keeps it. */
export function setTheme(theme: Theme): void {
  if (theme === 'auto') {
    localStorage.removeItem(THEME);
    delete document.documentElement.dataset['theme'];
  } else {
    localStorage.setItem(THEME, theme);
    document.documentElement.dataset['theme'] = theme;
  }
}

export function savedLanguage(): Language {
  const saved = localStorage.getItem(LANGUAGE) ?? '';
  return isLanguage(saved) ? saved : bestLanguage(navigator.languages);
}

export function saveLanguage(language: Language): void {
  localStorage.setItem(LANGUAGE, language);
}

/** Whether single letters act as keys: who speaks to the computer, or strikes keys by chance, does without. */
export function lettersAct(): boolean {
  return localStorage.getItem(LETTERS) !== 'off';
}

export function saveLettersAct(act: boolean): void {
  if (act) localStorage.removeItem(LETTERS);
  else localStorage.setItem(LETTERS, 'off');
}
