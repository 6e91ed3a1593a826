/** Parses untrusted JSON and reads values from it safely. */
import { SvcError } from './errors.ts';

/** Maximum nesting depth. Deeper values would exhaust the stack of recursive code. */
const MAX_JSON_DEPTH = 64;

export const QUOTE = 0x22;
export const BACKSLASH = 0x5c;
const OPENERS = new Set([0x5b, 0x7b]);
const CLOSERS = new Set([0x5d, 0x7d]);

/** True if a JSON text is nested more than `max` levels deep. */
export function isNestedDeeper(text: string, max: number): boolean {
  let depth = 0;
  let inString = false;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (inString) {
      if (code === BACKSLASH) i++;
      else if (code === QUOTE) inString = false;
    } else if (code === QUOTE) inString = true;
    else if (OPENERS.has(code)) {
      if (++depth > max) return true;
    } else if (CLOSERS.has(code)) depth--;
  }
  return false;
}

/** Characters that precede a value other than the first: `,` `[` `{`. */
const BEFORE_VALUES = new Set([0x2c, ...OPENERS]);

/** True if a JSON text has more than `max` values, at any depth. */
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

/** True if a value has a `__proto__` key, which a careless copy would turn into a prototype. */
function hasPoison(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return Object.hasOwn(value, '__proto__') || Object.values(value).some(hasPoison);
}

/**
 * Parses a JSON text.
 * @throws SvcError `invalid_json`, also if it is nested too deep or has a key named "__proto__"
 */
export function parseJson(text: string): unknown {
  if (isNestedDeeper(text, MAX_JSON_DEPTH))
    throw new SvcError('invalid_json', {
      message: `The JSON is nested more than ${MAX_JSON_DEPTH} levels deep. Send a flatter document.`,
    });
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // Omits the parser's error, which quotes the text: it may contain a secret.
    throw new SvcError('invalid_json');
  }
  // Only search the value if the text can contain the key, plain or escaped.
  if ((text.includes('__proto__') || text.includes('\\u')) && hasPoison(value))
    throw new SvcError('invalid_json', {
      message: 'The JSON contains the key "__proto__", which is not allowed. Remove it.',
    });
  return value;
}

/** Parses a JSON text; undefined if `parseJson` would throw. */
export function readJson(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

// JSON that preserves large integers. JavaScript numbers are inexact beyond 2^53, which would change database IDs or
// limits of schemas (`9223372036854775807`).

/** Only a text with this many consecutive digits can contain a large integer. */
const LARGE_NUMBER = /\d{16}/;
const INTEGER = /^-?\d+$/;

const rawJson: unknown = Reflect.get(JSON, 'rawJSON');

/** A value that `JSON.stringify` writes as these digits. */
export function rawNumber(digits: string): unknown {
  return typeof rawJson === 'function' ? Reflect.apply(rawJson, JSON, [digits]) : Number(digits);
}

/** True for a large integer of `parseIntegers`. */
export function isRawNumber(value: unknown): boolean {
  const check: unknown = Reflect.get(JSON, 'isRawJSON');
  return typeof check === 'function' && Reflect.apply(check, JSON, [value]) === true;
}

export function mayHaveLargeInteger(text: string): boolean {
  return LARGE_NUMBER.test(text);
}

/**
 * Parses a text and replaces each large integer by the result of `keep`. Without it, `JSON.stringify` writes the
 * original digits.
 * @throws SyntaxError
 */
export function parseIntegers(text: string, keep: (digits: string) => unknown = rawNumber): unknown {
  if (!mayHaveLargeInteger(text)) return JSON.parse(text);
  return JSON.parse(text, (...[, value, context]: unknown[]) => {
    if (typeof value !== 'number' || Number.isSafeInteger(value)) return value;
    const source = memberOf(context, 'source');
    return typeof source === 'string' && INTEGER.test(source) ? keep(source) : value;
  });
}

/** True for a JSON object. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Reads a nested member of an unknown value; undefined if it does not exist. */
export function memberOf(value: unknown, ...path: readonly string[]): unknown {
  let member: unknown = value;
  for (const key of path) {
    if (typeof member !== 'object' || member === null) return undefined;
    member = Reflect.get(member, key);
  }
  return member;
}

/** Reads a string member; empty if it is not a string. */
export function textMember(value: unknown, name: string): string {
  const member = memberOf(value, name);
  return typeof member === 'string' ? member : '';
}

/** Reads the strings of a list member. */
export function listMember(value: unknown, name: string): readonly string[] {
  const member = memberOf(value, name);
  return Array.isArray(member) ? member.filter((item) => typeof item === 'string') : [];
}
