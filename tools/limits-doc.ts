/**
 * Writes docs/limits.md, the limits that users can reach, and docs/limits.json, every limit and timeout. These are top-level numeric constants that start with
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

function sourceFiles(root: string): string[] {
  return readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => join(root, name))
    .sort((a, b) => (a < b ? -1 : 1));
}

const INTRODUCTION = `# Limits

The limits that you can reach. [Quotas](quotas.md) has the limits for strangers. Sizes and counts are maximums unless
stated otherwise. Configurable limits are in [configuration](configuration.md).

Errors: \`413 too_large\` for sizes, \`413 quota_exceeded\` for quotas, \`429 rate_limited\` for rates and concurrency,
\`504 timeout\` for times.

## Time limits of calls

A call may take as long as it makes progress. It ends when the other side is silent for too long, with \`504 timeout\`.
This holds for the daemon, \`svc\`, the MCP tools and \`svcd/client\`.

| Where | Limit until the response begins, and between its bytes | Change it |
|---|---|---|
| \`POST /fetch/{aid}\` | DEFAULT_CALL_TIMEOUT_MS | \`timeout_ms\` or \`timeout_s\`: up to MAX_CALL_TIMEOUT_MS; 0 for none |
| tool \`svc_fetch\` | the same | \`timeout_s\` |
| \`svc get\`, \`svc post\` | the same | \`--timeout <seconds>\` |
| [local addresses](local-addresses.md), [gateway](gateway.md) | none | close the client's connection |
| \`fetch\` of [\`svcd/client\`](client.md) | none | \`signal\`, such as \`AbortSignal.timeout(5000)\` |
| \`serve()\`, \`svc mcp share\` | none, uploads included | |
| the called node | CALL_STALL_MS; EVENT_STREAM_STALL_MS for \`text/event-stream\` | |

The called node ends every call without a byte in either direction for its limit, whatever the caller asked for. A
service that works longer must send something meanwhile, such as events.

API clients wait CLIENT_TIMEOUT_MS for the daemon, longer than any limit of the daemon. They wait for \`/fetch\` without
a limit, since it has its own.

## Limits by task
`;

/** Constants of INTRODUCTION and their files. */
const CALL_TIMES: readonly (readonly [name: string, file: string])[] = [
  ['DEFAULT_CALL_TIMEOUT_MS', 'foundation/domain/services.ts'],
  ['MAX_CALL_TIMEOUT_MS', 'foundation/domain/services.ts'],
  ['EVENT_STREAM_STALL_MS', 'capabilities/calls/forward.ts'],
  ['CALL_STALL_MS', 'capabilities/calls/forward.ts'],
  ['CLIENT_TIMEOUT_MS', 'operations/client.ts'],
];

const END = `## Complete list

[limits.json](limits.json) has every limit and timeout of the sources with its value, unit and file. \`npm run docs\` writes
both files.
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

function page(sources: readonly SourceFile[]): string {
  const introduction = CALL_TIMES.reduce(
    (text, [name, file]) => text.replace(new RegExp(`\\b${name}\\b`, 'g'), valueText(sources, file, name)),
    INTRODUCTION,
  );
  const rows = Object.entries(USER_LIMITS).flatMap(([task, limits]) =>
    limits.map(([name, file, meaning], index) => {
      const text = meaning.replace(/\{(\w+)\}/g, (_, other: string) => valueText(sources, file, other));
      return `|${index === 0 ? task : ''}|${text}|${valueText(sources, file, name)}|\`${name}\`|`;
    }),
  );
  return [introduction, `| Task | Limit | Value | Constant |\n|---|---|---|---|\n${rows.join('\n')}\n`, END].join('\n');
}

if (import.meta.main) {
  const repository = join(import.meta.dirname, '..');
  const sources = readSources(repository);
  const files = [
    ['limits.md', page(sources)],
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
