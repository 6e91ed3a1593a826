/**
 * Finds facts that are stated twice: numbers, lists and patterns in two files, bare numbers as schema bounds, one name
 * exported twice in a folder, and figures in the docs that differ from the sources. Each finding suggests a fix.
 *
 * A figure in a page is checked if an HTML comment with the name of its constant follows it: `64 KiB<!-- MAX_TEXT_BYTES
 * -->`.
 */
import { globSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path/posix';
import { constantsIn, evaluate, unambiguous } from './limits-doc.ts';

export interface Source {
  readonly path: string;
  readonly text: string;
}

/** Constants of one name and value that are independent, with the reason. */
const SEVERAL_FACTS: Readonly<Record<string, string>> = {
  VERSION: 'each format counts its own versions',
  ROW_OVERHEAD_BYTES: 'an estimate for each table',
  ...Object.fromEntries(
    [
      'BUSY_RETRY_S',
      'CONCURRENCY',
      'FRESH_MS',
      'IDLE_MS',
      'LOOKUP_TIMEOUT_MS',
      'MAX_CACHED',
      'MAX_REMEMBERED',
      'MAX_RETRY_MS',
      'OPEN_TIMEOUT_MS',
      'PURGE_AGAIN_MS',
      'REQUEST_TIMEOUT_MS',
      'RETRY_FIRST_MS',
      'RETRY_JITTER',
      'RETRY_MS',
      'SWEEP_MS',
    ].map((name) => [name, 'each part is tuned separately']),
  ),
};

/** Released schemas must not change with a constant of today. */
const FROZEN = /foundation\/store\/schema|record-store-schema/;

interface Constant {
  readonly name: string;
  readonly path: string;
  /** The same text for the same value. */
  readonly value: string;
  readonly isExported: boolean;
}

const CONSTANT = /^(export )?const ([A-Z][A-Z0-9_]*)(?:: [^=\n]+)? =\s+([\s\S]*?);$/gm;
const STRING = /'((?:[^'\\\n]|\\.)*)'/g;
/** A pattern, as a literal or as the text of one. */
const PATTERN = /^(?:\/\^?(.{8,}?)\$?\/[a-z]*|'\^(.{6,})\$')$/;

function withoutComments(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(?<!:)\/\/ .*$/gm, '');
}

/** The members of a list in sorted order. */
function textsOf(list: string): string {
  const texts = [...list.matchAll(STRING)].map(([, text = '']) => text);
  return JSON.stringify(texts.sort((a, b) => (a < b ? -1 : 1)));
}

/**
 * The constants of a file: numbers by name, patterns by value. Constants computed from other names are not included.
 */
function constantsOf({ path, text }: Source): Constant[] {
  return [...withoutComments(text).matchAll(CONSTANT)].flatMap(([, exported, name = '', source = '']) => {
    const [, literal, quoted] = PATTERN.exec(source) ?? [];
    const value = literal ?? quoted ?? evaluate(source.replace(/\s+/g, ' ').trim(), new Map());
    return value === undefined ? [] : [{ name, path, value: String(value), isExported: exported !== undefined }];
  });
}

/** Words without meaning for the comparison: `MAX_LABEL`, `LABEL_MAX` and `MAX_LABEL_CHARS` are one name. */
const IDLE_WORDS = new Set(['MAX', 'CHARS', 'CHARACTERS', 'LENGTH', 'COUNT']);

function meaningOf({ name, value }: Constant): string {
  if (Number.isNaN(Number(value))) return '';
  const words = name.split('_').filter((word) => !IDLE_WORDS.has(word));
  return words.length === 0 ? name : words.sort((a, b) => (a < b ? -1 : 1)).join(' ');
}

function grouped<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) groups.set(keyOf(item), [...(groups.get(keyOf(item)) ?? []), item]);
  return groups;
}

function filesOf(items: readonly { readonly path: string }[]): readonly string[] {
  return [...new Set(items.map(({ path }) => path))].sort((a, b) => (a < b ? -1 : 1));
}

const OWNER =
  'Define it in one file and import it there. Facts that declarations and capabilities share belong to src/foundation/domain/.';

function numbersTwice(constants: readonly Constant[]): string[] {
  return [...grouped(constants, (constant) => `${meaningOf(constant)} ${constant.value}`).values()]
    .filter((group) => filesOf(group).length > 1 && !group.every(({ name }) => Object.hasOwn(SEVERAL_FACTS, name)))
    .map((group) => {
      const places = group.map(({ name, path }) => `${name} (${path})`).join(', ');
      return `one fact in several files: ${places} are all ${group[0]?.value}. ${OWNER} If they are independent, add the reason to SEVERAL_FACTS.`;
    });
}

const LIST = /'[\w.:-]+'(?:\s*\|\s*'[\w.:-]+'){2,}|\[(?:\s*'[\w.:-]+',?){3,}\s*\]/g;

/** Lists and unions of at least three strings. */
function listsTwice(sources: readonly Source[]): string[] {
  const lists = sources.flatMap(({ path, text }) =>
    [...withoutComments(text).matchAll(LIST)].map(([list]) => ({ path, texts: textsOf(list) })),
  );
  return [...grouped(lists, ({ texts }) => texts)]
    .filter(([, group]) => filesOf(group).length > 1)
    .map(
      ([texts, group]) =>
        `one list in several files: ${texts} is in ${filesOf(group).join(' and ')}. ${OWNER} Its type is \`(typeof LIST)[number]\`.`,
    );
}

const EXPORTED = /^export (?:abstract )?(?:async )?(?:class|function\*?|interface|type|const|enum) (\w+)/gm;

/** Two files of one folder must not export the same name. In different folders the import path distinguishes them. */
function namesTwice(sources: readonly Source[]): string[] {
  const names = sources.flatMap(({ path, text }) =>
    [...text.matchAll(EXPORTED)].map(([, name = '']) => ({ name, path, key: `${dirname(path)} ${name}` })),
  );
  return [...grouped(names, ({ key }) => key).values()]
    .filter((group) => filesOf(group).length > 1)
    .map(
      (group) =>
        `one name for several things in a folder: ${group[0]?.name} is exported by ${filesOf(group).join(' and ')}. Rename one.`,
    );
}

const BOUND = /\b((?:max|min)(?:Length|Items|Properties)|maximum|minimum): ([^,}\n]*\d[^,}\n]*)/g;

/** Schema bounds that are bare numbers. −1, 0 and 1 are allowed. */
function bareBounds({ path, text }: Source): string[] {
  return [...withoutComments(text).matchAll(BOUND)].flatMap(([, keyword = '', source = '']) => {
    const value = evaluate(source.trim(), new Map());
    if (value === undefined || Math.abs(value) <= 1) return [];
    return `a limit without a name: ${keyword}: ${source.trim()} in ${path}. Import its constant, or define one with its unit.`;
  });
}

const FIGURE = /([\d.,]+)(?: ([A-Za-z]+))?<!-- ([A-Z][A-Z0-9_]*) -->/g;

/** In bytes and in milliseconds. */
const UNITS: Readonly<Record<string, number>> = {
  bytes: 1,
  KiB: 1024,
  MiB: 1024 ** 2,
  GiB: 1024 ** 3,
  ms: 1,
  s: 1000,
  seconds: 1000,
  min: 60_000,
  minutes: 60_000,
  h: 3_600_000,
  hours: 3_600_000,
  days: 86_400_000,
};

/** A figure in the unit of a constant. */
function inUnitOf(name: string, figure: string, unit: string | undefined): number {
  const number = Number(figure.replaceAll(',', ''));
  const scale = unit === undefined ? undefined : UNITS[unit];
  return scale === undefined ? number : (number * scale) / (/(?<!_PER)_S$/.test(name) ? 1000 : 1);
}

/** The values of each constant name in the sources. If a name is exported, only exported values count. */
function valuesByName(sources: readonly Source[]): ReadonlyMap<string, ReadonlySet<number | undefined>> {
  const files = sources.map(({ text }) => constantsIn(text));
  const imported = unambiguous(files.flat());
  const values = files.flatMap((constants) => {
    const named = new Map([...imported, ...constants.map(({ name, source }) => [name, source] as const)]);
    return constants.map(({ name, source, isExported }) => ({ name, value: evaluate(source, named), isExported }));
  });
  const meant = [...grouped(values, ({ name }) => name)].map(([name, group]) => {
    const exported = group.filter(({ isExported }) => isExported);
    return [name, new Set((exported.length > 0 ? exported : group).map(({ value }) => value))] as const;
  });
  return new Map(meant);
}

function wrongFigures(pages: readonly Source[], sources: readonly Source[]): string[] {
  const values = valuesByName(sources);
  return pages.flatMap(({ path, text }) =>
    [...text.matchAll(FIGURE)].flatMap(([, figure = '', unit, name = '']) => {
      const [value, ...others] = values.get(name) ?? [];
      if (value === undefined) return `${path} names ${name}, which is not a numeric constant of the sources.`;
      if (others.length > 0) return `${path} names ${name}, which has different values in several files. Rename one.`;
      if (inUnitOf(name, figure, unit) === value) return [];
      return `${path} says ${figure}${unit === undefined ? '' : ` ${unit}`} but ${name} is ${value}. Fix the page or the constant.`;
    }),
  );
}

/** All findings, one line each. */
export function findings(sources: readonly Source[], pages: readonly Source[]): string[] {
  const living = sources.filter(({ path }) => !FROZEN.test(path) && !path.endsWith('.d.ts'));
  return [
    ...numbersTwice(living.flatMap(constantsOf)),
    ...listsTwice(living),
    ...namesTwice(living),
    ...living.flatMap(bareBounds),
    ...wrongFigures(pages, living),
  ];
}

/** Fewer files than this mean that the check did not find the sources. */
const MIN_FILES = 100;

if (import.meta.main) {
  const read = (pattern: string): Source[] =>
    globSync(pattern).map((path) => ({ path: path.replaceAll('\\', '/'), text: readFileSync(path, 'utf8') }));
  const sources = read('src/**/*.ts');
  if (sources.length < MIN_FILES) throw new Error(`only ${sources.length} files were read`);
  const found = findings(sources, read('docs/{,decisions/}*.md'));
  for (const line of found) console.error(line);
  if (found.length > 0) process.exit(1);
  console.log(`facts: ${sources.length} files, no fact is stated twice`);
}
