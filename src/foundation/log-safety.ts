/**
 * Sanitizes log lines: redacts secrets that were passed by mistake, and escapes and shortens remote input. Callers
 * still must not pass secrets.
 */
import { SvcError } from './errors.ts';
import type { LogFields } from './log.ts';

const HIDDEN = '[hidden]';
const SECRET_NAME = /token|secret|private|passw|passphrase|seed|authorization|credential|cookie|mnemonic/i;
const BEARER = /\b(bearer|basic)\s+[^\s",;]+/gi;
/** Field names that the log line itself uses. */
const RESERVED: ReadonlySet<string> = new Set(['level', 'time', 'component', 'msg']);

/** Maximum length of one value in a log line, in characters. */
const MAX_TEXT_LENGTH = 2000;
/** Maximum nesting depth of a value in a log line. */
const MAX_DEPTH = 5;
/** Maximum number of members of one object or list in a log line. */
const MAX_MEMBERS = 50;

/** Fields that may be logged: plain JSON values without secrets, bounded in size. */
export function safeFields(fields: LogFields): Record<string, unknown> {
  return Object.fromEntries(
    members(fields).map(([name, value]) => [RESERVED.has(name) ? `${name}_` : name, safeMember(name, value, 1)]),
  );
}

/** Redacts credentials of HTTP headers in a text and shortens it. */
export function safeLogText(text: string): string {
  const short = text.length > MAX_TEXT_LENGTH ? `${text.slice(0, MAX_TEXT_LENGTH)}… (${text.length} characters)` : text;
  return short.replace(BEARER, `$1 ${HIDDEN}`);
}

function members(value: object): [string, unknown][] {
  return Object.entries(value).slice(0, MAX_MEMBERS);
}

function safeMember(name: string, value: unknown, depth: number): unknown {
  const harmless = value === null || value === undefined || typeof value === 'boolean';
  return SECRET_NAME.test(name) && !harmless ? HIDDEN : safeValue(value, depth);
}

function safeValue(value: unknown, depth: number): unknown {
  switch (typeof value) {
    case 'string':
      return safeLogText(value);
    case 'number':
      return Number.isFinite(value) ? value : String(value);
    case 'bigint':
      return String(value);
    case 'object':
      return value === null ? null : safeObject(value, depth);
    case 'boolean':
      return value;
    default:
      return undefined;
  }
}

function safeObject(value: object, depth: number): unknown {
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`;
  if (depth >= MAX_DEPTH) return '[…]';
  if (Array.isArray(value)) return value.slice(0, MAX_MEMBERS).map((item) => safeValue(item, depth + 1));
  if (value instanceof Error) return safeError(value, depth);
  if ('toJSON' in value && typeof value.toJSON === 'function') return safeValue(value.toJSON(), depth + 1);
  const prototype: unknown = Object.getPrototypeOf(value);
  // Fields of class instances are private and may be keys.
  if (prototype !== Object.prototype && prototype !== null) return `[${value.constructor.name}]`;
  return Object.fromEntries(members(value).map(([name, member]) => [name, safeMember(name, member, depth + 1)]));
}

/** An SvcError is complete with code and message; other errors need their stack. */
function safeError(error: Error, depth: number): Record<string, unknown> {
  const code: unknown = 'code' in error ? error.code : undefined;
  const expected = error instanceof SvcError;
  return {
    type: error.name,
    code: safeValue(code, depth + 1),
    message: safeLogText(error.message),
    details: expected ? safeValue(error.details, depth + 1) : undefined,
    stack: expected || error.stack === undefined ? undefined : safeLogText(error.stack),
    cause: safeValue(error.cause, depth + 1),
  };
}
