/**
 * MCP messages (JSON-RPC) of strangers. Some parsers read names without case, accept repeated names and use the last
 * one, or skip a byte order mark. A message that they could read differently is refused.
 */
import { RPC_MEMBERS } from './domain/services.ts';
import { SvcError } from './errors.ts';
import { isObject, parseIntegers, parseJson } from './json.ts';

/** Members of `params` that clients, servers or svcd act on. */
const PARAM_MEMBERS = [
  '_meta',
  'name',
  'arguments',
  'uri',
  'cursor',
  'requestId',
  'progressToken',
  'protocolVersion',
  'capabilities',
  'clientInfo',
  'level',
  'ref',
  'argument',
  'context',
  'task',
  'taskId',
] as const;
/** The same for `_meta`. */
const META_MEMBERS = ['progressToken', 'traceparent', 'tracestate', 'baggage'] as const;
/** Prefixes of members of `_meta`. Only svcd writes the first one. */
const META_PREFIXES = ['svcd/', 'io.modelcontextprotocol/'] as const;

interface KnownNames {
  readonly names: ReadonlySet<string>;
  readonly folded: ReadonlySet<string>;
  readonly prefixes: readonly string[];
}

function known(names: readonly string[], prefixes: readonly string[] = []): KnownNames {
  return { names: new Set(names), folded: new Set(names.map(foldedName)), prefixes };
}

const PLAIN = /^[!-~]*$/;
/** Marks and characters that some parsers skip. */
const SKIPPED = /[\p{M}\p{C}\p{Z}\p{Default_Ignorable_Code_Point}]/gu;

const SEPARATORS = /[_-]/g;
/** Parsers in C may end a name at the first one. */
const CONTROL = /\p{Cc}/u;

/**
 * A name as the most tolerant parser compares it: without case, forms, accents, invisible characters, `_` and `-`.
 */
export function foldedName(name: string): string {
  if (PLAIN.test(name)) return name.toLowerCase().replaceAll(SEPARATORS, '');
  // Upper case first: U+0131 and U+017F only have plain capitals.
  const folded = name.normalize('NFKD').toUpperCase().toLowerCase();
  return folded.normalize('NFKD').replaceAll(SKIPPED, '').replaceAll(SEPARATORS, '');
}

const MESSAGE = known(RPC_MEMBERS);
const PARAMS = known(PARAM_MEMBERS);
const META = known(META_MEMBERS, META_PREFIXES);

function twinAmong(value: unknown, { names, folded, prefixes }: KnownNames): string | undefined {
  if (!isObject(value)) return undefined;
  const seen = new Set<string>();
  for (const name of Object.keys(value)) {
    const plain = foldedName(name);
    const isTwin = folded.has(plain) || prefixes.some((one) => plain.startsWith(one) && !name.startsWith(one));
    if (seen.has(plain) || (isTwin && !names.has(name)) || CONTROL.test(name)) return name;
    seen.add(plain);
  }
  return undefined;
}

/**
 * A member of a message, its `params` or its `_meta` that differs only in case or form from a known one or from another
 * one, or has control characters. Undefined if there is none.
 */
export function twinIn(message: unknown): string | undefined {
  const params = isObject(message) ? message['params'] : undefined;
  const meta = isObject(params) ? params['_meta'] : undefined;
  return twinAmong(message, MESSAGE) ?? twinAmong(params, PARAMS) ?? twinAmong(meta, META);
}

/** The reason for refusing a message with a twin, or with a repeated member. */
export function refusedMember(name: string): string {
  return `The member ${JSON.stringify(name.slice(0, 64))} is not allowed: it repeats another one, or is spelled differently.`;
}

/** Methods about tools that use none. */
const TOOL_LISTS: ReadonlySet<string> = new Set(['tools/list', 'notifications/tools/list_changed']);

/**
 * True if a method uses a tool for some reader: `tools/call`, any other spelling or extension with "tool", and methods
 * that are not plain ASCII.
 */
export function usesTool(method: unknown): boolean {
  if (typeof method !== 'string' || TOOL_LISTS.has(method)) return false;
  return (
    !PLAIN.test(method) ||
    method
      .toLowerCase()
      .replaceAll(/[^a-z]/g, '')
      .includes('tool')
  );
}

/** Nested objects whose names are compared: a message, its `params`, and `_meta` or the arguments. */
const COMPARED_LEVELS = 3;

/** The index of the quote that ends a string. */
function stringEnd(text: string, start: number): number {
  for (let at = text.indexOf('"', start + 1); at >= 0; at = text.indexOf('"', at + 1)) {
    let escapes = 0;
    while (text[at - 1 - escapes] === '\\') escapes++;
    if (escapes % 2 === 0) return at;
  }
  return text.length;
}

/**
 * A name that one of the outermost objects of a valid JSON text contains twice. Undefined if there is none. Escapes
 * count as the characters that they stand for.
 */
export function repeatedName(text: string): string | undefined {
  // One entry for each open bracket: the names of an object; null for a list, or for an object that is not compared.
  const open: (Set<string> | null)[] = [];
  let objects = 0;
  const isObjectAt: boolean[] = [];
  let isName = false;
  for (let i = 0; i < text.length; i++) {
    switch (text[i]) {
      case '{':
        open.push(++objects <= COMPARED_LEVELS ? new Set() : null);
        isObjectAt.push(true);
        isName = true;
        break;
      case '[':
        open.push(null);
        isObjectAt.push(false);
        isName = false;
        break;
      case '}':
      case ']':
        open.pop();
        if (isObjectAt.pop() === true) objects--;
        isName = false;
        break;
      case ',':
        isName = isObjectAt.at(-1) === true;
        break;
      case '"': {
        const end = stringEnd(text, i);
        const names = isName ? open.at(-1) : null;
        if (names !== null && names !== undefined) {
          const written = text.slice(i + 1, end);
          const name = written.includes('\\') ? String(JSON.parse(`"${written}"`)) : written;
          if (names.has(name)) return name;
          names.add(name);
        }
        isName = false;
        i = end;
        break;
      }
      default:
    }
  }
  return undefined;
}

/** Fails for a byte order mark, which `JSON.parse` does not accept. */
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Parses the bytes of one message or of a batch. Write the result to pass it on, never the bytes. Check each message
 * with `twinIn`.
 * @param integer see `parseIntegers`
 * @throws SvcError `invalid_json`, also for a byte order mark, a second value, invalid UTF-8 and repeated names
 */
export function parseMessage(bytes: Uint8Array, integer?: (digits: string) => unknown): unknown {
  let text: string;
  try {
    text = utf8.decode(bytes);
  } catch {
    throw new SvcError('invalid_json');
  }
  parseJson(text);
  const repeated = repeatedName(text);
  if (repeated !== undefined) throw new SvcError('invalid_json', { message: refusedMember(repeated) });
  return parseIntegers(text, integer);
}
