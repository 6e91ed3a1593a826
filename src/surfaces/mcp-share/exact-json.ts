/** Messages of MCP servers as JSON that preserves large integers, such as database IDs and schema limits. */
import { randomBytes } from 'node:crypto';
import { type JSONRPCMessage, parseJSONRPCMessage } from '@modelcontextprotocol/server';
import { isObject, mayHaveLargeInteger, parseIntegers, rawNumber } from '../../foundation/json.ts';
import { MAX_SHARED_MESSAGE_BYTES } from './limits.ts';

// A reader of line-delimited messages like that of the SDK's stdio transports, except that it preserves large
// integers.

const LINE_FEED = 0x0a;
/** First bytes of a line with a message: `{` or whitespace, and `[`, which is then rejected as a batch. */
const MESSAGE_START_BYTES = new Set([0x7b, 0x5b, 0x20, 0x09]);

export class ExactLines {
  #chunks: Buffer[] = [];
  #length = 0;
  readonly #lines: Buffer[] = [];

  /** @throws Error if a message is too long */
  append(chunk: Buffer): void {
    let from = 0;
    for (let at = chunk.indexOf(LINE_FEED); at >= 0; at = chunk.indexOf(LINE_FEED, from)) {
      const first = this.#chunks[0]?.[0] ?? chunk[from] ?? LINE_FEED;
      // Skips other lines early. A flood of them, such as empty lines, must not delay the servers of other callers.
      if (MESSAGE_START_BYTES.has(first)) this.#lines.push(Buffer.concat([...this.#chunks, chunk.subarray(from, at)]));
      this.#chunks = [];
      this.#length = 0;
      from = at + 1;
    }
    const rest = chunk.subarray(from);
    this.#length += rest.length;
    if (rest.length > 0) this.#chunks.push(rest);
    if (this.#length <= MAX_SHARED_MESSAGE_BYTES) return;
    this.clear();
    throw new Error(`a message is longer than ${MAX_SHARED_MESSAGE_BYTES} bytes`);
  }

  /**
   * The next complete message, or null. Lines that are not JSON are skipped.
   * @throws Error for other JSON
   */
  readMessage(): JSONRPCMessage | null {
    for (;;) {
      const line = this.#lines.shift();
      if (line === undefined) return null;
      try {
        return parseJSONRPCMessage(parseExact(line.toString('utf8')));
      } catch (error) {
        if (!(error instanceof SyntaxError)) throw error;
      }
    }
  }

  clear(): void {
    this.#chunks = [];
    this.#length = 0;
    this.#lines.length = 0;
  }
}

/** Replaces the reader of an SDK stdio transport, which has no option for it. Call it before the transport starts. */
export function keepLargeIntegers<T extends object>(transport: T): T {
  // Fail if the SDK no longer has this field. Setting an unused field would have no effect.
  if (!Reflect.has(transport, '_readBuffer')) throw new Error('the SDK transport no longer has a _readBuffer');
  Reflect.set(transport, '_readBuffer', new ExactLines());
  return transport;
}

/** Random bytes in the mark of one bridge, so that no message can contain it by chance or on purpose. */
const INTEGER_MARK_BYTES = 16;

/**
 * Like `JSON.parse`, but preserves large integers. The ID of a message is always a number.
 * @throws SyntaxError
 */
export function parseExact(text: string): unknown {
  const value = parseIntegers(text);
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
    if (!mayHaveLargeInteger(text)) return text;
    try {
      return JSON.stringify(
        parseIntegers(text, (digits) => {
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
