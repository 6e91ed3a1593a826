/**
 * Writes docs/limits.md from tools/limits-page.md, and docs/limits.json, every limit and timeout. These are top-level numeric constants that start with
 * `MAX_` or `MIN_` or end with a unit. Format sizes (`KEY_BYTES`) and rates (`NS_PER_S`) count only if they have a
 * docstring. `--check` compares only.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { countText, sizeText, timeText } from '../src/foundation/display-text.ts';
import { USER_LIMITS } from './user-limits.ts';

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
  if (/_BYTES(_PER_\w+)?$/.test(name)) return sizeText(value);
  if (name.endsWith('_MS')) return timeText(value);
  return name.endsWith('_S') ? timeText(value * 1000) : countText(value);
}

/** The text of docs/limits.md, with names of constants in braces. */
const TEMPLATE = 'tools/limits-page.md';

function sourceFiles(root: string): string[] {
  return readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => join(root, name))
    .sort((a, b) => (a < b ? -1 : 1));
}

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

/** A limit with its value; the value is null if it is not a sum or product of numbers. */
interface Limit {
  readonly name: string;
  readonly value: number | null;
  readonly unit: string;
  /** Path below `src`. */
  readonly file: string;
}

function unitOf(name: string): string {
  if (name.endsWith('_PER_S')) return 'per second';
  if (/_BYTES(_PER_\w+)?$/.test(name)) return 'bytes';
  if (name.endsWith('_MS')) return 'ms';
  if (name.endsWith('_S')) return 's';
  return name.endsWith('_CHARS') ? 'characters' : 'count';
}

interface SourceFile {
  readonly path: string;
  readonly constants: readonly Constant[];
  readonly valueOf: (constant: Constant) => number | undefined;
}

function readSources(repository: string): SourceFile[] {
  const root = join(repository, 'src');
  const files = sourceFiles(root).map((file) => ({
    path: relative(root, file).replaceAll('\\', '/'),
    constants: constantsIn(readFileSync(file, 'utf8')),
  }));
  const everywhere = unambiguous(files.flatMap(({ constants }) => constants));
  return files.map(({ path, constants }) => {
    const named = new Map([...everywhere, ...constants.map(({ name, source }) => [name, source] as const)]);
    return { path, constants, valueOf: ({ source }) => evaluate(source, named) };
  });
}

function dataFile(sources: readonly SourceFile[]): string {
  const limits = sources.flatMap(({ path, constants, valueOf }) =>
    constants.filter(isLimit).map(
      (constant): Limit => ({
        name: constant.name,
        value: valueOf(constant) ?? null,
        unit: unitOf(constant.name),
        file: path,
      }),
    ),
  );
  return `[\n${limits.map((limit) => `  ${JSON.stringify(limit)}`).join(',\n')}\n]\n`;
}

/** The shown value of a constant. @throws Error if the file has no constant of this name */
function valueText(sources: readonly SourceFile[], file: string, name: string): string {
  const source = sources.find(({ path }) => path === file);
  const constant = source?.constants.find((one) => one.name === name);
  const value = constant === undefined ? undefined : source?.valueOf(constant);
  if (value === undefined)
    throw new Error(`tools/user-limits.ts: src/${file} has no number ${name}. Correct the entry.`);
  return withUnit(name, value);
}

/** The value of a constant of any file. @throws Error if several files have different values */
function anyValueText(sources: readonly SourceFile[], name: string): string {
  const found = sources.flatMap(({ constants, valueOf }) =>
    constants.filter((one) => one.name === name).map((one) => [one, valueOf(one)] as const),
  );
  const exported = found.filter(([{ isExported }]) => isExported);
  const [value, ...others] = new Set((exported.length > 0 ? exported : found).map(([, one]) => one));
  if (value === undefined || others.length > 0) throw new Error(`${TEMPLATE}: ${name} has no value, or several.`);
  return withUnit(name, value);
}

function page(sources: readonly SourceFile[], template: string): string {
  const rows = Object.entries(USER_LIMITS).flatMap(([task, limits]) =>
    limits.map(([name, file, meaning], index) => {
      const text = meaning.replace(/\{(\w+)\}/g, (_, other: string) => valueText(sources, file, other));
      return `|${index === 0 ? task : ''}|${text}|${valueText(sources, file, name)}|`;
    }),
  );
  const byTask = `| Task | Limit | Value |\n|---|---|---|\n${rows.join('\n')}`;
  return template.replace(/\{([A-Z][A-Z0-9_]+)\}/g, (_, name: string) =>
    name === 'BY_TASK' ? byTask : anyValueText(sources, name).replace(/ per s$/, ''),
  );
}

if (import.meta.main) {
  const repository = join(import.meta.dirname, '..');
  const sources = readSources(repository);
  const files = [
    ['limits.md', page(sources, readFileSync(join(repository, TEMPLATE), 'utf8'))],
    ['limits.json', dataFile(sources)],
  ] as const;
  for (const [name, text] of files) {
    const file = join(repository, 'docs', name);
    if (!process.argv.includes('--check')) {
      writeFileSync(file, text);
    } else if (!existsSync(file) || readFileSync(file, 'utf8') !== text) {
      console.error(`docs/${name} is out of date. Run "npm run docs".`);
      process.exitCode = 1;
    }
  }
}
