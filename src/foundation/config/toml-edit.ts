/**
 * Changes keys of a TOML text and preserves everything else, including comments and order. It parses only enough syntax
 * to find the start and the end of a statement, in text that a full parser has accepted.
 */
import { parse } from 'smol-toml';

/** A value that fits on one line of TOML. */
export type Inline = string | number | boolean | readonly Inline[] | { readonly [member: string]: Inline };

interface Statement {
  /** The full key, with the key of its table. */
  readonly path: readonly string[];
  /** Names in the key as it is written. */
  readonly ownLength: number;
  /** First part of the full key: `turn_servers` for every line under `[[turn_servers]]`. */
  readonly root: string;
  /** A top-level statement that is not dotted, so it sets the whole value of its key. */
  readonly whole: boolean;
  readonly isHeader: boolean;
  readonly line: number;
  readonly start: number;
  readonly valueStart: number;
  readonly valueEnd: number;
  /** Position after its line break. */
  readonly end: number;
}

/** The line, counted from 1, that first sets a top-level key, or undefined. */
export function lineOf(text: string, key: string): number | undefined {
  return scan(text).find(({ root }) => root === key)?.line;
}

/**
 * The text with the keys set. A key that used `[[tables]]` becomes one line; the tables and their comments are removed.
 */
export function setKeys(text: string, values: ReadonlyMap<string, Inline>): string {
  let result = text;
  for (const [key, value] of values) result = setKey(result, key, inline(value));
  return result;
}

function setKey(text: string, key: string, value: string): string {
  const [first, ...more] = scan(text).filter(({ root }) => root === key);
  if (first?.whole === true && more.length === 0) {
    return text.slice(0, first.valueStart) + value + text.slice(first.valueEnd);
  }
  return insert(without(text, key), `${key} = ${value}`);
}

/** The text with a new line after the last line before any table. */
function insert(text: string, pair: string): string {
  const statements = scan(text);
  const tables = statements.findIndex(({ isHeader }) => isHeader);
  const before = (tables < 0 ? statements : statements.slice(0, tables)).at(-1);
  // A byte order mark stays first.
  const first = text.startsWith('\u{feff}') ? 1 : 0;
  const at = before?.end ?? (tables < 0 ? text.length : first);
  const eol = text.includes('\r\n') ? '\r\n' : '\n';
  const gap = at > first && text[at - 1] !== '\n' ? eol : '';
  return `${text.slice(0, at)}${gap}${pair}${eol}${text.slice(at)}`;
}

/** The text without the statements of a key. Everything between the statements of one table is removed too. */
function without(text: string, key: string): string {
  let result = '';
  let kept = 0;
  let inTable = false;
  for (const { root, isHeader, start, end } of scan(text)) {
    if (root === key) {
      if (!inTable || isHeader) result += text.slice(kept, start);
      kept = end;
    }
    inTable = root === key && (inTable || isHeader);
  }
  return result + text.slice(kept);
}

function startsWith(path: readonly string[], start: readonly string[]): boolean {
  return start.every((name, i) => path[i] === name);
}

/**
 * The text with the value at a path set, in the notation that its table has: a table, dotted keys or one line. A new
 * table is added at the end.
 */
export function setPath(text: string, path: readonly string[], value: Inline): string {
  const statements = scan(text);
  const eol = text.includes('\r\n') ? '\r\n' : '\n';
  const parent = path.slice(0, -1);
  // The value itself, or a table around it that is written in one line.
  const around = statements.find(({ path: own, isHeader }) => !isHeader && startsWith(path, own));
  if (around !== undefined) {
    const before = text.slice(around.valueStart, around.valueEnd);
    const known: unknown = parse(`value = ${before}`)['value'];
    const changed = inline(withMember(known, path.slice(around.path.length), value));
    return text.slice(0, around.valueStart) + changed + text.slice(around.valueEnd);
  }
  // The end of the table, or the last of its dotted keys.
  const header = statements.findIndex(({ path: own, isHeader }) => isHeader && own.join('\n') === parent.join('\n'));
  const next = statements.findIndex(({ isHeader }, i) => isHeader && i > header);
  const last = header < 0 ? undefined : statements[(next < 0 ? statements.length : next) - 1];
  if (last !== undefined) return insertAt(text, last.end, `${keyText(path.slice(-1))} = ${inline(value)}${eol}`, eol);
  const dotted = statements.findLast(
    ({ path: own, ownLength, isHeader }) =>
      !isHeader && startsWith(own, parent) && own.length - ownLength < path.length - 1,
  );
  if (dotted !== undefined) {
    const key = keyText(path.slice(dotted.path.length - dotted.ownLength));
    return insertAt(text, dotted.end, `${key} = ${inline(value)}${eol}`, eol);
  }
  const isTable = typeof value === 'object' && !isList(value);
  const lines = isTable
    ? [`[${keyText(path)}]`, ...Object.entries(value).map(([name, one]) => `${keyText([name])} = ${inline(one)}`)]
    : [`[${keyText(parent)}]`, `${keyText(path.slice(-1))} = ${inline(value)}`];
  const gap = text.trim() === '' ? '' : eol;
  return insertAt(text, text.length, `${gap}${lines.join(eol)}${eol}`, eol);
}

/** The text without the value at a path, and without its tables. Comments before them stay. */
export function removePath(text: string, path: readonly string[]): string {
  const statements = scan(text);
  const around = statements.find(
    ({ path: own, isHeader }) => !isHeader && own.length < path.length && startsWith(path, own),
  );
  if (around !== undefined) {
    const known: unknown = parse(`value = ${text.slice(around.valueStart, around.valueEnd)}`)['value'];
    const changed = inline(withMember(known, path.slice(around.path.length), undefined));
    return text.slice(0, around.valueStart) + changed + text.slice(around.valueEnd);
  }
  let result = '';
  let kept = 0;
  let inTable = false;
  for (const { path: own, isHeader, start, end } of statements) {
    const isPart = startsWith(own, path);
    if (isPart) {
      if (!inTable || isHeader) result += text.slice(kept, start);
      kept = end;
    }
    inTable = isPart && (inTable || isHeader);
  }
  // The empty line that separated the last table from the rest.
  const rest = text.slice(kept);
  return kept > 0 && rest === '' ? result.replace(/(\r?\n)(?:[ \t]*\r?\n)+$/, '$1') : result + rest;
}

function insertAt(text: string, at: number, lines: string, eol: string): string {
  const gap = at > 0 && text[at - 1] !== '\n' ? eol : '';
  return `${text.slice(0, at)}${gap}${lines}${text.slice(at)}`;
}

function withMember(value: unknown, path: readonly string[], member: Inline | undefined): Inline {
  const [name, ...rest] = path;
  if (name === undefined) return member ?? {};
  const members: Record<string, Inline> = isTable(value) ? { ...value } : {};
  if (rest.length === 0 && member === undefined) delete members[name];
  else members[name] = withMember(members[name], rest, member);
  return members;
}

function isTable(value: unknown): value is { readonly [member: string]: Inline } {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function keyText(path: readonly string[]): string {
  return path.map((name) => (/^[A-Za-z0-9_-]+$/.test(name) ? name : JSON.stringify(name))).join('.');
}

function inline(value: Inline): string {
  // Strings, numbers and booleans of JSON are valid TOML, unless a text contains DEL or half a surrogate pair.
  if (typeof value !== 'object') return JSON.stringify(value);
  if (isList(value)) return `[${value.map(inline).join(', ')}]`;
  const members = Object.entries(value).map(([name, member]) => `${keyText([name])} = ${inline(member)}`);
  return members.length === 0 ? '{}' : `{ ${members.join(', ')} }`;
}

function isList(value: object): value is readonly Inline[] {
  return Array.isArray(value);
}

function scan(text: string): Statement[] {
  const statements: Statement[] = [];
  let table: readonly string[] | null = null;
  let line = 1;
  let counted = 0;
  for (let at = nextStatement(text, 0); at < text.length; at = nextStatement(text, at)) {
    for (; counted < at; counted += 1) if (text[counted] === '\n') line += 1;
    const isHeader = text[at] === '[';
    const equals = isHeader ? at : endOfKey(text, at);
    const path = parse(isHeader ? text.slice(at, endOfValue(text, at)) : `${text.slice(at, equals)}=0`);
    const own = namesIn(path);
    if (isHeader) table = own;
    const full = isHeader ? own : [...(table ?? []), ...own];
    const [root = ''] = full;
    const valueStart = isHeader ? at : skipBlanks(text, equals + 1);
    const valueEnd = endOfValue(text, valueStart);
    const lineBreak = text.indexOf('\n', valueEnd);
    const end = lineBreak < 0 ? text.length : lineBreak + 1;
    const whole = table === null && own.length === 1;
    const ownLength = own.length;
    statements.push({ path: full, ownLength, root, whole, isHeader, line, start: at, valueStart, valueEnd, end });
    at = end;
  }
  return statements;
}

/** The names of a parsed key or header. */
function namesIn(parsed: unknown): string[] {
  const [[name, value] = []] = Object.entries(Object(Array.isArray(parsed) ? parsed[0] : parsed));
  return name === undefined ? [] : [name, ...(value === 0 ? [] : namesIn(value))];
}

function nextStatement(text: string, from: number): number {
  let at = from;
  while (at < text.length) {
    if (text[at] === '#') at = endOfLine(text, at);
    else if (/\s/.test(text.charAt(at))) at += 1;
    else break;
  }
  return at;
}

function skipBlanks(text: string, from: number): number {
  let at = from;
  while (text[at] === ' ' || text[at] === '\t') at += 1;
  return at;
}

function endOfLine(text: string, from: number): number {
  const lineBreak = text.indexOf('\n', from);
  return lineBreak < 0 ? text.length : lineBreak;
}

/** Position of the `=` after a key. */
function endOfKey(text: string, from: number): number {
  let at = from;
  while (at < text.length && text[at] !== '=') at = isQuote(text[at]) ? endOfString(text, at) : at + 1;
  return at;
}

/** Position after the last character of a value or a table header. */
function endOfValue(text: string, from: number): number {
  let depth = 0;
  let end = from;
  for (let at = from; at < text.length; ) {
    const char = text.charAt(at);
    if (char === '#') {
      if (depth === 0) break;
      at = endOfLine(text, at);
      continue;
    }
    if (char === '\n' && depth === 0) break;
    if (char === '[' || char === '{') depth += 1;
    if (char === ']' || char === '}') depth -= 1;
    at = isQuote(char) ? endOfString(text, at) : at + 1;
    if (!/\s/.test(char)) end = at;
  }
  return end;
}

function isQuote(char: string | undefined): char is '"' | "'" {
  return char === '"' || char === "'";
}

/** Position after a string of any of the four kinds. */
function endOfString(text: string, from: number): number {
  const quote = text.charAt(from);
  const triple = quote.repeat(3);
  const delimiter = text.startsWith(triple, from) ? triple : quote;
  let at = from + delimiter.length;
  while (at < text.length && !text.startsWith(delimiter, at)) at += quote === '"' && text[at] === '\\' ? 2 : 1;
  at += delimiter.length;
  // A multi-line string may contain one or two quotes directly before its three closing quotes.
  if (delimiter === triple && text[at] === quote) at += text[at + 1] === quote ? 2 : 1;
  return at;
}
