/** Reads JSON bodies. */
import { SvcError } from '../../foundation/errors.ts';

/** The largest JSON body. */
export const JSON_BODY_LIMIT_BYTES = 1024 * 1024;
/** Arrays and objects inside each other: deeper ones would exhaust the stack of whatever walks them. */
const MAX_JSON_DEPTH = 64;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPENERS = new Set([0x5b, 0x7b]);
const CLOSERS = new Set([0x5d, 0x7d]);

const utf8 = new TextDecoder('utf-8', { fatal: true });

function isTooDeep(bytes: Uint8Array): boolean {
  let depth = 0;
  let inString = false;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i] ?? 0;
    if (inString) {
      if (byte === BACKSLASH) i++;
      else if (byte === QUOTE) inString = false;
    } else if (byte === QUOTE) inString = true;
    else if (OPENERS.has(byte)) {
      if (++depth > MAX_JSON_DEPTH) return true;
    } else if (CLOSERS.has(byte)) depth--;
  }
  return false;
}

/** A key that turns into something else than a key where a careless copy is made. */
function hasPoison(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return Object.hasOwn(value, '__proto__') || Object.values(value).some(hasPoison);
}

/**
 * The value of a JSON body; undefined for an empty one.
 * @throws SvcError `invalid_json`
 */
export function parseJsonBody(bytes: Uint8Array): unknown {
  if (bytes.length === 0) return undefined;
  if (isTooDeep(bytes))
    throw new SvcError('invalid_json', { message: `The body is nested more than ${MAX_JSON_DEPTH} deep.` });
  let value: unknown;
  let text: string;
  try {
    text = utf8.decode(bytes);
    value = JSON.parse(text);
  } catch {
    // Without the parser's own error, which quotes the text: it may hold a secret.
    throw new SvcError('invalid_json');
  }
  // Only a text that spells the key, plainly or with escapes, is worth the walk.
  if ((text.includes('__proto__') || text.includes('\\u')) && hasPoison(value))
    throw new SvcError('invalid_json', { message: 'The body must not have a key named "__proto__".' });
  return value;
}
