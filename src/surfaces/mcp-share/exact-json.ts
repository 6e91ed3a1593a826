/** Messages of MCP servers as JSON that preserves large integers, such as database IDs and schema limits. */
import { randomBytes } from 'node:crypto';
import { createParser } from 'eventsource-parser';
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

  /**
   * Marks the messages of an event stream for the reader.
   * @param change replaces the data of an event before
   */
  async *markedEvents(
    source: AsyncIterable<Buffer>,
    onLong: OnLong,
    change: (data: string) => string,
  ): AsyncGenerator<string> {
    const events = new ChangedEvents(onLong, (data) => this.marked(change(data)));
    for await (const chunk of source) {
      const whole = events.push(chunk);
      if (whole !== '') yield whole;
    }
  }
}

// Event streams of strangers, whose lines have a limit.

/** Receives a message that is too long. @returns the message to read instead, if any */
export type OnLong = (odd: OddMessage) => object | undefined;

/** Changes the data of the events of a stream. */
export class ChangedEvents {
  /** Short lines keep the buffer of the parser small. */
  readonly #lines: EventLines;
  readonly #parser: ReturnType<typeof createParser>;
  #out: string[] = [];

  constructor(onLong: OnLong, change: (data: string) => string) {
    this.#lines = new EventLines(onLong);
    const line = (name: string, value: string): void => void this.#out.push(`${name}: ${value}\n`);
    this.#parser = createParser({
      onEvent: ({ id, event, data }) => {
        if (id !== undefined) line('id', id);
        if (event !== undefined) line('event', event);
        for (const part of change(data).split('\n')) line('data', part);
        this.#out.push('\n');
      },
      onRetry: (ms) => this.#out.push(`retry: ${ms}\n\n`),
      onComment: (text) => this.#out.push(`: ${text}\n\n`),
    });
  }

  /** Returns the complete events of the input so far; empty if no event is complete. */
  push(chunk: Buffer): string {
    this.#parser.feed(this.#lines.push(chunk));
    const text = this.#out.join('');
    this.#out = [];
    return text;
  }
}

/** Passes the lines of an event stream on, without messages that are too long. */
class EventLines {
  readonly #lines = new Lines();
  readonly #onLong: OnLong;
  /** Characters of the present event, which can have several lines. */
  #chars = 0;

  constructor(onLong: OnLong) {
    this.#onLong = onLong;
  }

  /** The lines that the bytes complete, with their line feeds. */
  push(chunk: Buffer): string {
    return this.#lines
      .push(chunk)
      .map((line) => this.#shown(line))
      .join('');
  }

  #shown(line: Buffer | MessageScan): string {
    if (!(line instanceof MessageScan)) {
      const text = line.toString();
      this.#chars = text.trim() === '' ? 0 : this.#chars + text.length;
      return this.#chars > 2 * MAX_SHARED_MESSAGE_BYTES ? '' : `${text}\n`;
    }
    const instead = this.#onLong(line.odd);
    return instead === undefined ? '' : `data: ${JSON.stringify(instead)}\n`;
  }
}
