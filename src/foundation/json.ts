/** Reads JSON that others may have written, and looks into it without trust. */
import { SvcError } from './errors.ts';

/** Arrays and objects inside each other: deeper ones would exhaust the stack of whatever walks them. */
const MAX_JSON_DEPTH = 64;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPENERS = new Set([0x5b, 0x7b]);
const CLOSERS = new Set([0x5d, 0x7d]);

function isTooDeep(text: string): boolean {
  let depth = 0;
  let inString = false;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (inString) {
      if (code === BACKSLASH) i++;
      else if (code === QUOTE) inString = false;
    } else if (code === QUOTE) inString = true;
    else if (OPENERS.has(code)) {
      if (++depth > MAX_JSON_DEPTH) return true;
    } else if (CLOSERS.has(code)) depth--;
  }
  return false;
}

/** What stands before a value other than the first: `,` `[` `{`. */
const BEFORE_VALUES = new Set([0x2c, ...OPENERS]);

/** True for a JSON text with more values than so many, of whatever depth. */
export function hasMoreValues(text: string, max: number): boolean {
  let values = 0;
  let inString = false;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (inString && code === BACKSLASH) i++;
    else if (code === QUOTE) inString = !inString;
    else if (!inString && BEFORE_VALUES.has(code) && ++values > max) return true;
  }
  return false;
}

/** A key that turns into something else than a key where a careless copy is made. */
function hasPoison(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return Object.hasOwn(value, '__proto__') || Object.values(value).some(hasPoison);
}

/**
 * The value of a JSON text.
 * @throws SvcError `invalid_json`, also where it is nested too deep or has a key named "__proto__"
 */
export function parseJson(text: string): unknown {
  if (isTooDeep(text))
    throw new SvcError('invalid_json', {
      message: `The JSON is nested more than ${MAX_JSON_DEPTH} levels deep. Send a flatter document.`,
    });
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // Without the parser's own error, which quotes the text: it may hold a secret.
    throw new SvcError('invalid_json');
  }
  // Only a text that spells the key, plainly or with escapes, is worth the walk.
  if ((text.includes('__proto__') || text.includes('\\u')) && hasPoison(value))
    throw new SvcError('invalid_json', {
      message: 'The JSON contains the key "__proto__", which is not allowed. Remove it.',
    });
  return value;
}

/** The value of a JSON text; undefined where `parseJson` would throw. */
export function readJson(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

/** True for what JSON calls an object. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A member of a value whose members are not known; undefined where it has none such. */
export function memberOf(value: unknown, ...path: readonly string[]): unknown {
  let member: unknown = value;
  for (const key of path) {
    if (typeof member !== 'object' || member === null) return undefined;
    member = Reflect.get(member, key);
  }
  return member;
}

/** A member that is a text; empty where it is none. */
export function textMember(value: unknown, name: string): string {
  const member = memberOf(value, name);
  return typeof member === 'string' ? member : '';
}

/** The texts in a member that is a list. */
export function listMember(value: unknown, name: string): readonly string[] {
  const member = memberOf(value, name);
  return Array.isArray(member) ? member.filter((item) => typeof item === 'string') : [];
}
