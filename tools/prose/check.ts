/** Finds the constructions of rules.ts in passages, and counts sentences. */
import { countWords, type Passage } from './passage.ts';
import { RULES, type Rule } from './rules.ts';

export interface Hit {
  readonly rule: Rule;
  /** The words that matched. */
  readonly matched: string;
  /** With a few words around them. */
  readonly text: string;
  /** Offset in the file. */
  readonly offset: number;
}

const AROUND_CHARS = 40;

function around(text: string, start: number, end: number): string {
  const from = start <= AROUND_CHARS ? 0 : text.indexOf(' ', start - AROUND_CHARS) + 1;
  const space = text.lastIndexOf(' ', end + AROUND_CHARS);
  const to = text.length - end <= AROUND_CHARS || space <= end ? text.length : space;
  return `${from > 0 ? '…' : ''}${text.slice(Math.min(from, start), to)}${to < text.length ? '…' : ''}`;
}

/** Words that several rules match count once, for the first rule. */
export function hitsIn({ kind, text, offsets }: Passage): Hit[] {
  const hits: (Hit & { readonly start: number; readonly end: number })[] = [];
  for (const rule of RULES) {
    if (rule.kinds !== undefined && !rule.kinds.includes(kind)) continue;
    for (const { 0: found, index } of text.matchAll(rule.pattern)) {
      const start = index + found.length - found.trimStart().length;
      const end = index + found.length;
      if (hits.some((hit) => hit.start < end && start < hit.end)) continue;
      const matched = text.slice(start, end).trim();
      hits.push({ rule, matched, text: around(text, start, end), offset: offsets[start] ?? 0, start, end });
    }
  }
  return hits.sort((a, b) => a.start - b.start);
}

const SENTENCE_END = /[.!?](?=["'”)]*(?:\s|$))/g;

/** Paragraphs and list items; headings and cells are no sentences. */
export function sentencesIn(passages: readonly Passage[]): { readonly sentences: number; readonly words: number } {
  const texts = passages.filter(({ kind }) => kind === 'text').map(({ text }) => text);
  const parts = texts.flatMap((text) => text.split(SENTENCE_END)).filter((part) => countWords(part) > 0);
  return { sentences: parts.length, words: parts.reduce((sum, part) => sum + countWords(part), 0) };
}

export function positionOf(text: string, offset: number): string {
  const before = text.slice(0, offset);
  return `${before.split('\n').length}:${offset - before.lastIndexOf('\n')}`;
}
