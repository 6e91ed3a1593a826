/** Messages of MCP servers as JSON that preserves large integers, such as database IDs and schema limits. */
import { randomBytes } from 'node:crypto';
import { isObject, mayHaveLargeInteger, parseIntegers, rawNumber } from '../../foundation/json.ts';
import { Lines, MAX_SHARED_MESSAGE_BYTES, MessageScan, type OddMessage } from '../mcp/message-reader.ts';

/** Random bytes in the mark of one bridge, so that no message can contain it by chance or on purpose. */
const INTEGER_MARK_BYTES = 16;

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

  /** Marks the lines of an event stream for the reader. */
  async *markedEvents(source: AsyncIterable<Buffer>, onLong: OnLong): AsyncGenerator<string> {
    const lines = new EventLines(onLong, (line) =>
      DATA.test(line) ? `data: ${this.marked(line.replace(DATA, ''))}` : line,
    );
    for await (const chunk of source) {
      const whole = lines.push(chunk);
      if (whole !== '') yield whole;
    }
    yield lines.end();
  }
}

// Event streams of strangers, whose lines have a limit.

const DATA = /^data: ?/;

/** Receives a message that is too long. @returns the message to read instead, if any */
export type OnLong = (odd: OddMessage) => object | undefined;

/** Passes the lines of an event stream on, without messages that are too long. */
export class EventLines {
  readonly #lines = new Lines();
  readonly #onLong: OnLong;
  readonly #change: (line: string) => string;
  /** Characters of the present event, which can have several lines. */
  #chars = 0;

  constructor(onLong: OnLong, change: (line: string) => string = (line) => line) {
    this.#onLong = onLong;
    this.#change = change;
  }

  /** The lines that the bytes complete, with their line feeds. */
  push(chunk: Buffer): string {
    return this.#lines
      .push(chunk)
      .map((line) => this.#shown(line))
      .join('');
  }

  /** The last line, which has no line feed. */
  end(): string {
    const rest = this.#lines.end();
    return rest === null ? '' : this.#shown(rest).slice(0, -1);
  }

  #shown(line: Buffer | MessageScan): string {
    if (!(line instanceof MessageScan)) {
      const text = line.toString();
      this.#chars = text.trim() === '' ? 0 : this.#chars + text.length;
      return this.#chars > 2 * MAX_SHARED_MESSAGE_BYTES ? '' : `${this.#change(text)}\n`;
    }
    const instead = this.#onLong(line.odd);
    return instead === undefined ? '' : `data: ${JSON.stringify(instead)}\n`;
  }
}
