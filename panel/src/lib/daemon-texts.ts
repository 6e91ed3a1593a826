/**
 * Translations of texts that the daemon has in English: the descriptions of its settings and the findings of the
 * doctor. English has none.
 */
import type { FindingWords, SettingWords } from '../words/daemon-words.ts';
import type { Language } from './i18n.ts';

interface Loaders {
  readonly settings: () => Promise<SettingWords>;
  readonly findings: () => Promise<FindingWords>;
}

const LOADERS: Readonly<Record<Exclude<Language, 'en'>, Loaders>> = {
  zh: {
    settings: async () => (await import('../words/zh-settings.ts')).zhSettings,
    findings: async () => (await import('../words/zh-doctor.ts')).zhDoctor,
  },
  ja: {
    settings: async () => (await import('../words/ja-settings.ts')).jaSettings,
    findings: async () => (await import('../words/ja-doctor.ts')).jaDoctor,
  },
  de: {
    settings: async () => (await import('../words/de-settings.ts')).deSettings,
    findings: async () => (await import('../words/de-doctor.ts')).deDoctor,
  },
  es: {
    settings: async () => (await import('../words/es-settings.ts')).esSettings,
    findings: async () => (await import('../words/es-doctor.ts')).esDoctor,
  },
};

export async function loadSettingTexts(wanted: Language): Promise<Partial<SettingWords>> {
  return wanted === 'en' ? {} : LOADERS[wanted].settings();
}

export async function loadFindingTexts(wanted: Language): Promise<Partial<FindingWords>> {
  return wanted === 'en' ? {} : LOADERS[wanted].findings();
}
