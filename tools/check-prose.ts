/**
 * Finds stilted English in pages, comments and messages, see docs/decisions/0085. Without arguments it checks
 * everything; with files or folders it prints every hit in them: `npm run -s check:prose -- src/surfaces/cli`.
 */
import { globSync, readFileSync } from 'node:fs';
import { type Hit, hitsIn, positionOf, sentencesIn } from './prose/check.ts';
import { areaOf, proseFiles, readProse } from './prose/files.ts';
import { countWords } from './prose/passage.ts';

const MAX_HITS_PER_1000_WORDS = 1;
/** Average of a page. */
const MAX_SENTENCE_WORDS = 25;
/** README and docs, as `wc -w` counts. */
const MAX_DOCS_WORDS = 63_000;
const SHOWN_PATTERNS = 40;
/** A run without paths lists hits up to this number, and the most frequent patterns above it. */
const MAX_LISTED_HITS = 300;

interface Count {
  words: number;
  hits: number;
}

interface Finding {
  readonly hit: Hit;
  readonly place: string;
}

function rate({ words, hits }: Count): number {
  return words === 0 ? 0 : (hits * 1000) / words;
}

function addTo(counts: Map<string, Count>, name: string, words: number, hits: number): void {
  const count = counts.get(name) ?? { words: 0, hits: 0 };
  counts.set(name, { words: count.words + words, hits: count.hits + hits });
}

function table(counts: ReadonlyMap<string, Count>): string[] {
  return [...counts].map(
    ([name, count]) =>
      `${rate(count).toFixed(1).padStart(6)} per 1,000 words  ${String(count.hits).padStart(6)} hits  ${String(count.words).padStart(7)} words  ${name}`,
  );
}

function frequent(findings: readonly Finding[]): string[] {
  const counts = new Map<string, number>();
  for (const { hit } of findings) {
    const pattern = `${hit.rule.name}: ${hit.matched.toLowerCase()}`;
    counts.set(pattern, (counts.get(pattern) ?? 0) + 1);
  }
  return [...counts]
    .sort(([, a], [, b]) => b - a)
    .slice(0, SHOWN_PATTERNS)
    .map(([pattern, count]) => `${String(count).padStart(6)}  ${pattern}`);
}

function docsWords(): number {
  return globSync(['README.md', 'docs/**/*.md'])
    .map((path) => readFileSync(path, 'utf8').split(/\s+/).filter(Boolean).length)
    .reduce((sum, words) => sum + words, 0);
}

function main(paths: readonly string[]): void {
  const selected = paths.length > 0;
  const files = proseFiles(paths);
  if (files.length === 0)
    throw new Error(`No checked files at ${paths.join(', ')}. Name files or folders of this repository.`);
  const areas = new Map<string, Count>();
  const byFile = new Map<string, Count>();
  const findings: Finding[] = [];
  const failures: string[] = [];
  for (const path of files) {
    const { text, passages } = readProse(path);
    const words = passages.reduce((sum, passage) => sum + countWords(passage.text), 0);
    const hits = passages.flatMap(hitsIn).sort((a, b) => a.offset - b.offset);
    addTo(areas, areaOf(path), words, hits.length);
    addTo(byFile, path, words, hits.length);
    findings.push(...hits.map((hit) => ({ hit, place: `${path}:${positionOf(text, hit.offset)}` })));
    if (path !== 'README.md' && !/^docs\/.*\.md$/.test(path)) continue;
    const { sentences, words: inSentences } = sentencesIn(passages);
    if (inSentences > sentences * MAX_SENTENCE_WORDS)
      failures.push(
        `${path}: ${(inSentences / sentences).toFixed(1)} words per sentence on average, more than ${MAX_SENTENCE_WORDS}. Split sentences.`,
      );
  }
  const over = [...areas].filter(([, count]) => rate(count) > MAX_HITS_PER_1000_WORDS).map(([area]) => area);
  failures.push(
    ...over.map(
      (area) => `${area}: more than ${MAX_HITS_PER_1000_WORDS} hit per 1,000 words. Rewrite the sentences found.`,
    ),
  );
  if (!selected && docsWords() > MAX_DOCS_WORDS)
    failures.push(`README and hand-written docs have ${docsWords()} words, more than ${MAX_DOCS_WORDS}. Shorten them.`);

  const byRate = new Map([...(selected ? byFile : areas)].sort(([, a], [, b]) => rate(b) - rate(a)));
  const listed = selected || findings.length <= MAX_LISTED_HITS;
  const lines = listed
    ? findings.map(({ hit, place }) => `${place} ${hit.rule.name}: ${hit.text} → ${hit.rule.hint}`)
    : [];
  if (!listed) lines.push('Most frequent:', ...frequent(findings), '');
  lines.push(...table(byRate));
  console.log([...lines, '', ...failures].join('\n'));
  if (failures.length > 0) process.exitCode = 1;
}

main(process.argv.slice(2));
