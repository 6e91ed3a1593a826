/**
 * Writes docs/limits.md: every limit and timeout of the sources. These are top-level numeric constants that start with
 * `MAX_` or `MIN_` or end with a unit. Format sizes (`KEY_BYTES`) and rates (`NS_PER_S`) count only if they have a
 * docstring. `--check` compares only.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { countText, sizeText, timeText } from '../src/foundation/quantities.ts';

/** A top-level numeric constant. */
interface Constant {
  readonly name: string;
  /** As written: `64 * 1024`. */
  readonly source: string;
  /** Its docstring, or empty. */
  readonly meaning: string;
  readonly isExported: boolean;
}

/** An optional docstring, the name and the assigned value. */
const CONSTANT =
  /^(?:\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\n)?(export )?const ([A-Z][A-Z0-9_]*)(?:: \w+)? =\s+([\w\s.*+()-]+);$/gm;
const IS_LIMIT = /^(MAX|MIN)_|_(BYTES|MS|S|COUNT)$/;
const IS_OTHER = /^(?!MAX_|MIN_).*_(BYTES|PER_S)$/;

/** The constants of a source text, in order. */
export function constantsIn(text: string): Constant[] {
  return [...text.matchAll(CONSTANT)].map(([, docstring = '', exported, name = '', source = '']) => ({
    name,
    source: source.replace(/\s+/g, ' '),
    meaning: docstring
      .replace(/^\s*\*/gm, ' ')
      .replace(/\s+/g, ' ')
      .trim(),
    isExported: exported !== undefined,
  }));
}

export function isLimit({ name, meaning }: Constant): boolean {
  return IS_LIMIT.test(name) && (meaning !== '' || !IS_OTHER.test(name));
}

/** Evaluates products, sums and differences of numbers and named constants. Undefined for anything else. */
export function evaluate(source: string, named: ReadonlyMap<string, string>, depth = 0): number | undefined {
  if (depth > 5) return undefined;
  let sum = 0;
  for (const term of source.replace(/ - /g, '+-1*').split('+')) {
    let product = 1;
    for (const factor of term.replaceAll('**', '^').split('*')) {
      const [base = '', exponent = '1'] = factor.split('^').map((part) => part.trim());
      const other = named.get(base);
      const value = /^-?(0x[\da-f_]+|0o[0-7_]+|[\d_]+(\.\d+)?)$/i.test(base)
        ? Number(base.replaceAll('_', ''))
        : other === undefined
          ? undefined
          : evaluate(other, named, depth + 1);
      if (value === undefined) return undefined;
      product *= value ** Number(exponent);
    }
    sum += product;
  }
  return Number.isNaN(sum) ? undefined : sum;
}

/** A number in the largest unit that keeps it whole. */
export function withUnit(name: string, value: number): string {
  if (name.endsWith('_PER_S')) return `${value} per s`;
  if (name.endsWith('_BYTES')) return sizeText(value);
  if (name.endsWith('_MS')) return timeText(value);
  return name.endsWith('_S') ? timeText(value * 1000) : countText(value);
}

function sourceFiles(root: string): string[] {
  return readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => join(root, name))
    .sort((a, b) => (a < b ? -1 : 1));
}

const INTRODUCTION = `# Limits

Every limit and time-out of the sources, written by \`node tools/limits-doc.ts\`. Nothing is cut silently: over a size
the answer is \`413 too_large\`, over a quota \`413 quota_exceeded\`, over a rate \`429 rate_limited\`, over a time
\`504 timeout\`.
`;

/** Exported constants by name, without names that have several values. */
export function unambiguous(constants: readonly Constant[]): Map<string, string> {
  const named = new Map<string, string>();
  const several = new Set<string>();
  for (const { name, source, isExported } of constants) {
    if (!isExported) continue;
    if (named.has(name) && named.get(name) !== source) several.add(name);
    named.set(name, source);
  }
  for (const name of several) named.delete(name);
  return named;
}

function page(repository: string): string {
  const files = sourceFiles(join(repository, 'src')).map((file) => ({
    path: relative(repository, file).replaceAll('\\', '/'),
    constants: constantsIn(readFileSync(file, 'utf8')),
  }));
  const everywhere = unambiguous(files.flatMap(({ constants }) => constants));
  const sections = new Map<string, string[]>();
  for (const { path, constants } of files) {
    const named = new Map([...everywhere, ...constants.map(({ name, source }) => [name, source] as const)]);
    const rows = constants.filter(isLimit).map(({ name, source, meaning }) => {
      const value = evaluate(source, named);
      const shown = value === undefined ? `\`${source}\`` : withUnit(name, value);
      return `| \`${name}\` | ${shown} | ${meaning.replaceAll('|', '\\|')} | [${basename(path)}](../${path}) |`;
    });
    const section = dirname(path);
    if (rows.length > 0) sections.set(section, [...(sections.get(section) ?? []), ...rows]);
  }
  const tables = [...sections].map(
    ([section, rows]) => `## ${section}\n\n| Name | Value | Meaning | File |\n|---|---|---|---|\n${rows.join('\n')}\n`,
  );
  return [INTRODUCTION, ...tables].join('\n');
}

if (import.meta.main) {
  const repository = join(import.meta.dirname, '..');
  const file = join(repository, 'docs', 'limits.md');
  const text = page(repository);
  if (!process.argv.includes('--check')) {
    writeFileSync(file, text);
  } else if (!existsSync(file) || readFileSync(file, 'utf8') !== text) {
    console.error('docs/limits.md is out of date. Run "npm run docs".');
    process.exitCode = 1;
  }
}
