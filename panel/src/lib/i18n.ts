/**
 * The texts of the chosen language. The texts of the first view load immediately. Other texts load with their screens.
 */
import type { FindingWords, SettingWords } from '../words/daemon-words.ts';
import { en, type Words } from '../words/en.ts';
import type { AgentWords } from '../words/en-agent.ts';
import type { NetworkWords } from '../words/en-network.ts';
import type { NodeWords } from '../words/en-node.ts';
import type { TalkWords } from '../words/en-talk.ts';
import { fill, type Text, type Values } from './text.ts';

type ScreenWords = AgentWords & NodeWords & TalkWords & NetworkWords;
export type Key = keyof Words | keyof ScreenWords;

export const LANGUAGES = { en: 'English', zh: '中文', ja: '日本語', de: 'Deutsch', es: 'Español' } as const;
export type Language = keyof typeof LANGUAGES;

interface Loaders {
  readonly first: () => Promise<Words>;
  readonly agent: () => Promise<AgentWords>;
  readonly node: () => Promise<NodeWords>;
  readonly talk: () => Promise<TalkWords>;
  readonly network: () => Promise<NetworkWords>;
}
type MoreWords = Partial<ScreenWords & SettingWords & FindingWords>;
/** Loads the texts of some screens in a language. */
type Loader = (language: Language) => Promise<MoreWords>;

const LOADERS: Readonly<Record<Language, Loaders>> = {
  en: {
    first: async () => en,
    agent: async () => (await import('../words/en-agent.ts')).enAgent,
    node: async () => (await import('../words/en-node.ts')).enNode,
    talk: async () => (await import('../words/en-talk.ts')).enTalk,
    network: async () => (await import('../words/en-network.ts')).enNetwork,
  },
  zh: {
    first: async () => (await import('../words/zh.ts')).zh,
    agent: async () => (await import('../words/zh-agent.ts')).zhAgent,
    node: async () => (await import('../words/zh-node.ts')).zhNode,
    talk: async () => (await import('../words/zh-talk.ts')).zhTalk,
    network: async () => (await import('../words/zh-network.ts')).zhNetwork,
  },
  ja: {
    first: async () => (await import('../words/ja.ts')).ja,
    agent: async () => (await import('../words/ja-agent.ts')).jaAgent,
    node: async () => (await import('../words/ja-node.ts')).jaNode,
    talk: async () => (await import('../words/ja-talk.ts')).jaTalk,
    network: async () => (await import('../words/ja-network.ts')).jaNetwork,
  },
  de: {
    first: async () => (await import('../words/de.ts')).de,
    agent: async () => (await import('../words/de-agent.ts')).deAgent,
    node: async () => (await import('../words/de-node.ts')).deNode,
    talk: async () => (await import('../words/de-talk.ts')).deTalk,
    network: async () => (await import('../words/de-network.ts')).deNetwork,
  },
  es: {
    first: async () => (await import('../words/es.ts')).es,
    agent: async () => (await import('../words/es-agent.ts')).esAgent,
    node: async () => (await import('../words/es-node.ts')).esNode,
    talk: async () => (await import('../words/es-talk.ts')).esTalk,
    network: async () => (await import('../words/es-network.ts')).esNetwork,
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

/** The texts of agents. All screens but the first view need them. */
export function loadAgent(wanted: Language): Promise<AgentWords> {
  return LOADERS[wanted].agent();
}

/** The texts of the pages of the node. */
export function loadNode(wanted: Language): Promise<NodeWords> {
  return LOADERS[wanted].node();
}

/** The texts of messages and files. */
export function loadTalk(wanted: Language): Promise<TalkWords> {
  return LOADERS[wanted].talk();
}

/** The texts about other agents and nodes, and the hooks and tools of an agent. */
export function loadNetwork(wanted: Language): Promise<NetworkWords> {
  return LOADERS[wanted].network();
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
