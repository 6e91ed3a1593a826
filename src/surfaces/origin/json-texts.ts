/** Replaces single strings in a JSON document and leaves every other byte unchanged, including long numbers. */

/** The path of a string: member names separated by `/`, and `[]` for list items; see `TOO_LONG`. */
type Change = (path: string, value: string) => string | null;

/** Longest path that is reported, characters: names can be as long as the document. */
const MAX_REPORTED_PATH_CHARS = 256;
/** Replaces a longer path. */
const TOO_LONG = '…';

const STRING = /"(?:[^"\\]|\\.)*"/y;
const OTHER = /[^"[\]{},:]+/y;

/** An open object or list. */
interface Open {
  readonly isList: boolean;
  readonly path: string;
  /** The name whose value comes next, or null if a name comes next. */
  name: string | null;
}

function below({ isList, path, name }: Open): string {
  const step = isList ? '[]' : (name ?? '');
  if (path === TOO_LONG || path.length + step.length > MAX_REPORTED_PATH_CHARS) return TOO_LONG;
  return path === '' ? step : `${path}/${step}`;
}

/**
 * A JSON text with some strings replaced. Member names do not change.
 * @param json valid JSON
 * @param change returns the new string, or null to keep it
 */
export function withTexts(json: string, change: Change): string {
  const open: Open[] = [];
  const parts: string[] = [];
  let kept = 0;
  for (let at = 0; at < json.length; ) {
    const top = open.at(-1);
    const char = json[at];
    const pattern = char === '"' ? STRING : OTHER;
    pattern.lastIndex = at;
    if (char === '{' || char === '[') {
      const path = top === undefined ? '' : below(top);
      open.push({ isList: char === '[', path, name: null });
    } else if (char === '}' || char === ']') open.pop();
    else if (char === ',') {
      if (top !== undefined) top.name = null;
    } else if (char === '"' && pattern.test(json)) {
      const value = textOf(json.slice(at, pattern.lastIndex));
      if (top !== undefined && !top.isList && top.name === null) top.name = value;
      else {
        const changed = change(top === undefined ? '' : below(top), value);
        if (changed !== null) {
          parts.push(json.slice(kept, at), JSON.stringify(changed));
          kept = pattern.lastIndex;
        }
      }
      at = pattern.lastIndex;
      continue;
    } else if (pattern.test(json)) {
      at = pattern.lastIndex;
      continue;
    }
    at++;
  }
  return parts.join('') + json.slice(kept);
}

function textOf(literal: string): string {
  if (!literal.includes('\\')) return literal.slice(1, -1);
  const value: unknown = JSON.parse(literal);
  return typeof value === 'string' ? value : '';
}

const [QUOTE, BACKSLASH, SPACE] = [0x22, 0x5c, 0x20];
const OPENERS: ReadonlySet<number> = new Set([0x5b, 0x7b]);
const CLOSERS: ReadonlySet<number> = new Set([0x5d, 0x7d]);

/** Parses JSON in parts: true once its first list or object is complete, and immediately for other values. */
export function isFirstValueOver(): (part: Uint8Array) => boolean {
  let depth = 0;
  let isOver = false;
  let isText = false;
  let isEscaped = false;
  return (part) => {
    for (const byte of part) {
      if (isOver) break;
      if (isEscaped) isEscaped = false;
      else if (isText && byte === BACKSLASH) isEscaped = true;
      else if (byte === QUOTE && depth > 0) isText = !isText;
      else if (isText) continue;
      else if (OPENERS.has(byte)) depth++;
      else if (CLOSERS.has(byte)) isOver = --depth <= 0;
      else if (depth === 0 && byte > SPACE) isOver = true;
    }
    return isOver;
  };
}
