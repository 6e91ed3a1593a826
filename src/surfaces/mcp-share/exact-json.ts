/**
 * JSON whose large integers stay what they are: beyond 2^53 a number of JavaScript would be another one, such as an id of
 * a database or the bound of a schema (`9223372036854775807`). `JSON.stringify` writes them as they came.
 */
import { randomBytes } from 'node:crypto';
import { isObject, memberOf } from '../../foundation/json.ts';

/** Only a text with so many digits in a row can hold one. */
const MANY_DIGITS = /\d{16}/;
const INTEGER = /^-?\d+$/;
/** Random bytes in the mark of one bridge: no message can hold it by chance, or on purpose. */
const INTEGER_MARK_BYTES = 16;

const rawJson: unknown = Reflect.get(JSON, 'rawJSON');

/** What `JSON.stringify` writes as these digits. */
function large(digits: string): unknown {
  return typeof rawJson === 'function' ? Reflect.apply(rawJson, JSON, [digits]) : Number(digits);
}

/** The value of a text, each large integer in it as `keep` gives it. @throws SyntaxError */
function parseWith(text: string, keep: (digits: string) => unknown): unknown {
  if (!MANY_DIGITS.test(text)) return JSON.parse(text);
  return JSON.parse(text, (...[, value, context]: unknown[]) => {
    if (typeof value !== 'number' || Number.isSafeInteger(value)) return value;
    const source = memberOf(context, 'source');
    return typeof source === 'string' && INTEGER.test(source) ? keep(source) : value;
  });
}

/** A message as `JSON.parse` reads it but for large integers; its id is a number in any case. @throws SyntaxError */
export function parseExact(text: string): unknown {
  const value = parseWith(text, large);
  if (!isObject(value) || !isObject(value['id'])) return value;
  return { ...value, id: Number(JSON.stringify(value['id'])) };
}

/** Has large integers pass a reader that knows only numbers: as texts with a mark, which are made integers again behind it. */
export class LargeIntegers {
  readonly #mark = `${randomBytes(INTEGER_MARK_BYTES).toString('hex')}:`;
  #seen = false;

  /** A JSON text for that reader; anything else stays as it is. */
  marked(text: string): string {
    if (!MANY_DIGITS.test(text)) return text;
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

  /** What the reader made of such texts. */
  restored<T>(message: T): T;
  restored(value: unknown): unknown {
    if (!this.#seen) return value;
    if (typeof value === 'string') return value.startsWith(this.#mark) ? large(value.slice(this.#mark.length)) : value;
    if (Array.isArray(value)) return value.map((item: unknown) => this.restored(item));
    if (!isObject(value)) return value;
    return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, this.restored(member)]));
  }

  /** The lines of a stream of events for that reader. @param lines whole ones, and the beginning of the next */
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
