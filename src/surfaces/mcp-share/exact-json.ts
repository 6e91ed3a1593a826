/**
 * JSON that preserves large integers. JavaScript numbers are inexact beyond 2^53, which would change database IDs or
 * schema limits (`9223372036854775807`). `JSON.stringify` writes the original digits.
 */
import { randomBytes } from 'node:crypto';
import { isObject, memberOf } from '../../foundation/json.ts';

/** Only a text with this many consecutive digits can contain a large integer. */
const LARGE_NUMBER = /\d{16}/;
const INTEGER = /^-?\d+$/;
/** Random bytes in the mark of one bridge, so that no message can contain it by chance or on purpose. */
const INTEGER_MARK_BYTES = 16;

const rawJson: unknown = Reflect.get(JSON, 'rawJSON');

/** A value that `JSON.stringify` writes as these digits. */
function rawNumber(digits: string): unknown {
  return typeof rawJson === 'function' ? Reflect.apply(rawJson, JSON, [digits]) : Number(digits);
}

/**
 * Parses a text and replaces each large integer by the result of `keep`.
 * @throws SyntaxError
 */
function parseWith(text: string, keep: (digits: string) => unknown): unknown {
  if (!LARGE_NUMBER.test(text)) return JSON.parse(text);
  return JSON.parse(text, (...[, value, context]: unknown[]) => {
    if (typeof value !== 'number' || Number.isSafeInteger(value)) return value;
    const source = memberOf(context, 'source');
    return typeof source === 'string' && INTEGER.test(source) ? keep(source) : value;
  });
}

/**
 * Like `JSON.parse`, but preserves large integers. The ID of a message is always a number.
 * @throws SyntaxError
 */
export function parseExact(text: string): unknown {
  const value = parseWith(text, rawNumber);
  if (!isObject(value) || !isObject(value['id'])) return value;
  return { ...value, id: Number(JSON.stringify(value['id'])) };
}

/**
 * Passes large integers through a reader that only supports numbers. They become marked strings, and integers again
 * after the reader.
 */
export class LargeIntegers {
  readonly #mark = `${randomBytes(INTEGER_MARK_BYTES).toString('hex')}:`;
  #seen = false;

  /** Marks a JSON text for the reader. Other text is unchanged. */
  marked(text: string): string {
    if (!LARGE_NUMBER.test(text)) return text;
    try {
      return JSON.stringify(
        parseWith(text, (digits) => {
          this.#seen = true;
          return `${this.#mark}${digits}`;
        }),
      );
    } catch {
      return text;
    }
  }

  /** Restores the integers in the reader's result. */
  restored<T>(message: T): T;
  restored(value: unknown): unknown {
    if (!this.#seen) return value;
    if (typeof value === 'string')
      return value.startsWith(this.#mark) ? rawNumber(value.slice(this.#mark.length)) : value;
    if (Array.isArray(value)) return value.map((item: unknown) => this.restored(item));
    if (!isObject(value)) return value;
    return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, this.restored(member)]));
  }

  /**
   * Marks the lines of an event stream for the reader.
   * @param lines complete lines, and the start of the next one
   */
  markedEvents(lines: AsyncIterable<Uint8Array>): AsyncIterable<string> {
    return markedLines(lines, (text) => this.marked(text));
  }
}

const DATA = /^data: ?/;

async function* markedLines(source: AsyncIterable<Uint8Array>, marked: (text: string) => string) {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of source) {
    const lines = `${rest}${decoder.decode(chunk, { stream: true })}`.split('\n');
    rest = lines.pop() ?? '';
    const whole = lines.map((line) => (DATA.test(line) ? `data: ${marked(line.replace(DATA, ''))}\n` : `${line}\n`));
    if (whole.length > 0) yield whole.join('');
  }
  yield `${rest}${decoder.decode()}`;
}
